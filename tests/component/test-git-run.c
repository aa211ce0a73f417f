/* SPDX-License-Identifier: Apache-2.0 */
/* How runs of git end, by themselves and otherwise. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/spawn.h"
#include "support/git-world.h"

enum { DEADLINE_MS = 30 * 1000, SHORT_MS = 700 };

/* ---- a server that takes connections and says nothing: git waits for it in a grandchild ---- */

static int
listen_silently(char **ret_url)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;

    g_assert_cmpint(bind(fd, (struct sockaddr *)&at, sizeof at), ==, 0);
    g_assert_cmpint(listen(fd, 8), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&at, &n), ==, 0);
    *ret_url = g_strdup_printf("http://127.0.0.1:%u/x.git", ntohs(at.sin_port));
    return fd;
}

static void
wait_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    g_assert_cmpint(poll(&wait, 1, DEADLINE_MS), ==, 1);
}

/* Whoever held the other end is gone. */
static void
assert_hung_up(int listener)
{
    char bytes[4096];
    ssize_t n;

    wait_readable(listener);
    autofd fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    do {
        wait_readable(fd);
        n = read(fd, bytes, sizeof bytes);
    } while (n > 0);
}

static void
test_timeout(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *url = NULL;
    autofd listener = listen_silently(&url);
    g_autoptr(GError) error = NULL;
    GitCall call = {.access = GIT_REMOTE,
                    .args = GIT_ARGS("fetch", "--", url, "+refs/heads/*:refs/heads/*"),
                    .timeout_ms = SHORT_MS};

    /* A machine that is busy may not have come as far as the connection. */
    for (struct pollfd wait = {.fd = listener, .events = POLLIN}; wait.revents == 0; call.timeout_ms *= 2) {
        g_clear_error(&error);
        g_assert_false(git_run(world->repo, &call, NULL, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_TIMEOUT);
        g_assert_cmpuint(call.timeout_ms, <, DEADLINE_MS);
        (void)poll(&wait, 1, 0);
    }
    assert_hung_up(listener);
}

typedef struct Cancel {
    int listener;
    gint flag;
} Cancel;

static gpointer
cancel_when_connected(gpointer data)
{
    Cancel *cancel = data;

    wait_readable(cancel->listener);
    g_atomic_int_set(&cancel->flag, 1);
    return NULL;
}

static void
test_cancel(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *url = NULL;
    autofd listener = listen_silently(&url);
    g_autoptr(GError) error = NULL;
    Cancel cancel = {.listener = listener};
    GitCall call = {.access = GIT_REMOTE,
                    .args = GIT_ARGS("fetch", "--", url, "+refs/heads/*:refs/heads/*"),
                    .cancel = &cancel.flag};
    GThread *thread = g_thread_new("cancel", cancel_when_connected, &cancel);

    g_assert_false(git_run(world->repo, &call, NULL, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_CANCELLED);
    g_thread_join(thread);
    assert_hung_up(listener);
}

/* Without leave, whatever the configuration says, no connection is made. */
static void
test_no_network(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *url = NULL;
    autofd listener = listen_silently(&url);
    GitCall call = {.access = GIT_WRITE,
                    .args = GIT_ARGS("fetch", "--", url, "+refs/heads/*:refs/heads/*"),
                    .settings = GIT_ARGS("protocol.http.allow=always")};

    g_assert_false(git_run(world->repo, &call, NULL, NULL));
    g_assert_cmpint(accept4(listener, NULL, NULL, SOCK_CLOEXEC), ==, -1);
    g_assert_cmpint(errno, ==, EAGAIN);
}

/* ---- output ---- */

static bool
take_all(const guint8 *bytes, size_t n, void *ctx)
{
    *(size_t *)ctx += n;
    return true;
}

static bool
take_some(const guint8 *bytes, size_t n, void *ctx)
{
    *(size_t *)ctx += n;
    return false;
}

static void
test_output(void)
{
    enum { BYTES = 3 << 20 };
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *text = g_strnfill(BYTES, 'x');
    g_autofree char *oid = git_world_blob(world, text);
    g_autoptr(GByteArray) out = NULL;
    g_autoptr(GError) error = NULL;
    size_t taken = 0;
    GitCall call = {.args = GIT_ARGS("cat-file", "blob", oid), .output_max = BYTES};

    g_assert_true(git_run(world->repo, &call, &out, &error));
    g_assert_cmpuint(out->len, ==, BYTES);
    g_assert_cmpuint(out->data[BYTES], ==, 0);
    call.output_max = BYTES - 1;
    g_assert_false(git_run(world->repo, &call, NULL, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_LIMIT);
    call.take = take_all;
    call.ctx = &taken;
    g_assert_true(git_run(world->repo, &call, NULL, NULL));
    g_assert_cmpuint(taken, ==, BYTES);
    call.take = take_some;
    taken = 0;
    g_assert_true(git_run(world->repo, &call, NULL, NULL));
    g_assert_cmpuint(taken, <, BYTES);
}

static void
count_line(const char *line, void *ctx)
{
    g_assert_null(strpbrk(line, "\r\n"));
    ++*(guint *)ctx;
}

static void
test_progress(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *oid = git_world_branch(world, "main", "a.txt", "one\n");
    guint lines = 0;
    GitCall call = {.access = GIT_WRITE,
                    .args = GIT_ARGS("bundle", "create", "--progress", "tmp/b", "main"),
                    .progress = count_line,
                    .ctx = &lines};

    g_assert_true(git_run(world->repo, &call, NULL, NULL));
    g_assert_cmpuint(lines, >, 0);
}

/* Paths, credentials and control characters do not come through. */
static void
test_message(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autoptr(GError) error = NULL;
    GitCall call = {.args = GIT_ARGS("rev-parse", "--verify", "a\x1b[31m\a\xc2\x9b b")};
    GitCall fetch = {.access = GIT_WRITE,
                     .args = GIT_ARGS("fetch", "--", "https://me:secret@localhost/x", "a:b")};

    g_assert_false(git_run(world->repo, &call, NULL, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    for (char *p = error->message; *p != '\0'; p = g_utf8_next_char(p))
        g_assert_false(g_unichar_iscntrl(g_utf8_get_char(p)));
    g_clear_error(&error);
    g_assert_false(git_run(world->repo, &fetch, NULL, &error));
    g_assert_null(strstr(error->message, "secret"));
}

static void
test_no_launcher(void)
{
    GitHostSpec host = {.launcher = "/nonexistent/coop-git"};
    g_autoptr(GitRepo) repo = git_repo_new(&host, "x", "/nonexistent");
    g_autoptr(GError) error = NULL;

    g_assert_null(git_text(repo, GIT_READ, GIT_ARGS("version"), &error));
    g_assert_error(error, ERR_DOMAIN, ERR_UNAVAILABLE);
}

/* ---- a git that waits for its input ---- */

typedef struct Waiting {
    int stdin_fd, pidfd;
    pid_t pid;
} Waiting;

static Waiting
waiting_start(const GitWorld *world)
{
    int in[2], out[2];
    GitCall call = {.args = GIT_ARGS("cat-file", "--batch-check")};
    g_auto(GStrv) argv = git_call_argv(world->repo, &call, false);
    g_auto(GStrv) env = git_call_env(world->repo, &call);
    SpawnSpec spec = SPAWN_SPEC_INIT;
    Waiting waiting = {0};
    char byte;

    g_assert_cmpint(pipe2(in, O_CLOEXEC), ==, 0);
    g_assert_cmpint(pipe2(out, O_CLOEXEC), ==, 0);
    spec.argv = (const char *const *)argv;
    spec.env = (const char *const *)env;
    spec.stdin_fd = in[0];
    spec.stdout_fd = out[1];
    waiting.pid = spawn_held(&spec, &waiting.pidfd, NULL);
    g_assert_cmpint(waiting.pid, >, 0);
    /* Its first answer shows that it is git by now. */
    g_assert_cmpint(write(in[1], "x\n", 2), ==, 2);
    wait_readable(out[0]);
    g_assert_cmpint(read(out[0], &byte, 1), ==, 1);
    close(in[0]);
    close(out[0]);
    close(out[1]);
    waiting.stdin_fd = in[1];
    return waiting;
}

static void
waiting_end(Waiting *waiting)
{
    close(waiting->stdin_fd);
    wait_readable(waiting->pidfd);
    g_assert_cmpint(waitpid(waiting->pid, NULL, 0), ==, waiting->pid);
    close(waiting->pidfd);
}

static char *
proc_text(pid_t pid, const char *file)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/%s", (int)pid, file);
    char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static void
test_confinement(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    /* Not close-on-exec, as a library's might be. */
    autofd stray = open("/dev/null", O_RDONLY);
    Waiting waiting = waiting_start(world);
    g_autofree char *status = proc_text(waiting.pid, "status");
    g_autofree char *limits = proc_text(waiting.pid, "limits");
    g_autofree char *folder = g_strdup_printf("/proc/%d/fd", (int)waiting.pid);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);

    g_assert_nonnull(strstr(status, "\nNoNewPrivs:\t1\n"));
    g_assert_nonnull(strstr(status, "\nSeccomp:\t2\n"));
    g_assert_true(g_regex_match_simple("Max core file size +0 +0 ", limits, 0, 0));
    g_assert_true(g_regex_match_simple("Max cpu time +3600 +3600 ", limits, 0, 0));
    /* The three streams and the repository's folder, which is its lock. */
    for (const char *name; (name = g_dir_read_name(dir)) != NULL;)
        g_assert_cmpint(strlen(name) == 1 && name[0] <= '3', ==, true);
    waiting_end(&waiting);
}

/* Whoever started it is killed. */
static void
test_death(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    int told[2];
    pid_t pid;

    g_assert_cmpint(pipe2(told, O_CLOEXEC), ==, 0);
    pid_t starter = fork();

    if (starter == 0) {
        Waiting waiting = waiting_start(world);

        if (write(told[1], &waiting.pid, sizeof waiting.pid) == sizeof waiting.pid) {
            /* The end of its input would end it too. */
            for (;;)
                pause();
        }
        _exit(1);
    }
    g_assert_cmpint(read(told[0], &pid, sizeof pid), ==, sizeof pid);
    autofd pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    g_autofree char *path = g_strdup_printf("/proc/%d/fd/0", (int)pid);
    autofd kept = open(path, O_WRONLY | O_CLOEXEC);

    g_assert_cmpint(pidfd, >=, 0);
    g_assert_cmpint(kept, >=, 0);
    kill(starter, SIGKILL);
    g_assert_cmpint(waitpid(starter, NULL, 0), ==, starter);
    wait_readable(pidfd);
    close(told[0]);
    close(told[1]);
}

/* ---- what is left ---- */

static void
write_old(const GitWorld *world, const char *name)
{
    g_autofree char *path = git_world_file(world, name);
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    git_world_write(world, name, "");
    g_assert_cmpint(utimensat(AT_FDCWD, path, times, 0), ==, 0);
}

static bool
is_there(const GitWorld *world, const char *name)
{
    g_autofree char *path = git_world_file(world, name);

    return access(path, F_OK) == 0;
}

static void
test_stale(void)
{
    static const char *const stale[] = {"repo.git/packed-refs.lock", "repo.git/refs/heads/main.lock",
                                        "repo.git/HEAD.lock", "repo.git/objects/pack/tmp_pack_abc",
                                        "repo.git/objects/ab/tmp_obj_xyz"};
    static const char quarantined[] = "repo.git/objects/tmp_objdir-incoming-x/ab/cd";
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *oid = git_world_branch(world, "main", "a.txt", "one\n");
    g_autoptr(GError) error = NULL;
    guint removed = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(stale); i++)
        write_old(world, stale[i]);
    write_old(world, quarantined);
    git_world_write(world, "repo.git/config.lock", "");
    g_autofree char *folder = git_world_file(world, "repo.git/objects/tmp_objdir-incoming-x");
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    g_assert_cmpint(utimensat(AT_FDCWD, folder, times, 0), ==, 0);
    Waiting waiting = waiting_start(world);

    g_assert_false(git_clear_stale(world->repo, 60, &removed, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_CONFLICT);
    waiting_end(&waiting);
    g_assert_true(git_clear_stale(world->repo, 60, &removed, NULL));
    g_assert_cmpuint(removed, ==, G_N_ELEMENTS(stale) + 1);
    for (size_t i = 0; i < G_N_ELEMENTS(stale); i++)
        g_assert_false(is_there(world, stale[i]));
    g_assert_false(is_there(world, quarantined));
    g_assert_true(is_there(world, "repo.git/config.lock"));
    g_autofree char *now = git_branch_oid(world->repo, "main", NULL);

    g_assert_cmpstr(now, ==, oid);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/git/run/timeout", test_timeout);
    g_test_add_func("/git/run/cancel", test_cancel);
    g_test_add_func("/git/run/no-network", test_no_network);
    g_test_add_func("/git/run/output", test_output);
    g_test_add_func("/git/run/progress", test_progress);
    g_test_add_func("/git/run/message", test_message);
    g_test_add_func("/git/run/no-launcher", test_no_launcher);
    g_test_add_func("/git/run/confinement", test_confinement);
    g_test_add_func("/git/run/death", test_death);
    g_test_add_func("/git/run/stale", test_stale);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "link-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "room.h"

enum { PATIENCE_S = 60, CHANNEL_FD = 3 };

static G_GNUC_NORETURN void
be_pid_1(int channel, int program)
{
    char *argv[] = {(char[]){"init"}, NULL};
    char *env[] = {NULL};
    int null = open("/dev/null", O_RDWR);

    if (getpid() != 1 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(channel, CHANNEL_FD) < 0 || dup2(program, CHANNEL_FD + 1) < 0 ||
        close_range(CHANNEL_FD + 2, ~0U, 0) < 0 || fcntl(CHANNEL_FD + 1, F_SETFD, FD_CLOEXEC) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || !room_furnish())
        _exit(121);
    fexecve(CHANNEL_FD + 1, argv, env);
    _exit(122);
}

static void
on_ready(BoxLink *link, void *ctx)
{
    ((LinkBox *)ctx)->ready++;
}

static void
on_found(BoxLink *link, Run *run, void *ctx)
{
    LinkBox *box = ctx;

    box->found++;
    g_clear_pointer(&box->last_found, run_unref);
    box->last_found = run_ref(run);
    if (box->abandon_found)
        run_abandon(run);
}

static void
on_started(BoxLink *link, Run *run, void *ctx)
{
    g_assert_cmpuint(run_pid(run), >, 1);
    ((LinkBox *)ctx)->started++;
}

static void
on_ended(BoxLink *link, Run *run, void *ctx)
{
    LinkBox *box = ctx;

    g_assert_true(run_has_ended(run));
    box->ended++;
    if (box->forget)
        box_link_forget(link, run);
}

static void
on_oom(BoxLink *link, Run *run, void *ctx)
{
    LinkBox *box = ctx;

    box->oom++;
    g_assert_false(run_has_ended(run));
    if (box->answer_oom)
        box_link_set_oom(link, run, box->is_oom);
}

static void
on_active(BoxLink *link, void *ctx)
{
    ((LinkBox *)ctx)->active++;
}

static void
on_closed(BoxLink *link, const GError *error, void *ctx)
{
    LinkBox *box = ctx;

    g_assert_cmpuint(box->closed++, ==, 0);
    g_assert_cmpuint(box_link_live(link), ==, 0);
    box->error = error != NULL ? g_strdup(error->message) : NULL;
}

void
link_box_attach(LinkBox *box, int fd, const BoxLinkRun *runs, size_t n_runs)
{
    g_autoptr(GError) error = NULL;
    BoxLinkSpec spec = {.loop = box->loop,
                        .fd = fd,
                        .folder = box->folder,
                        .runs = runs,
                        .n_runs = n_runs,
                        .last_run = box->last_run,
                        .events = {on_ready, on_found, on_started, on_ended, on_oom, on_active, on_closed},
                        .ctx = box};

    box->link = box_link_new(&spec, &error);
    g_assert_no_error(error);
}

static LinkBox *
box_new(void)
{
    LinkBox *box = g_new0(LinkBox, 1);

    box->loop = loop_new(NULL);
    box->folder = g_dir_make_tmp("link-XXXXXX", NULL);
    box->kept = -1;
    box->answer_oom = box->forget = true;
    return box;
}

LinkBox *
link_box_scripted(int *ret_peer)
{
    LinkBox *box = box_new();
    int pair[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), ==, 0);
    *ret_peer = pair[1];
    link_box_attach(box, pair[0], NULL, 0);
    return box;
}

LinkBox *
link_box_new(void)
{
    LinkBox *box = box_new();
    int program = open(g_getenv("COOP_INIT"), O_RDONLY | O_CLOEXEC);
    int pair[2];

    g_assert_cmpint(program, >=, 0);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), ==, 0);
    box->pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);
    g_assert_cmpint(box->pid, >=, 0);
    if (box->pid == 0)
        be_pid_1(pair[1], program);
    close(program);
    close(pair[1]);
    box->kept = fcntl(pair[0], F_DUPFD_CLOEXEC, 0);
    link_box_attach(box, pair[0], NULL, 0);
    return box;
}

void
link_box_restart(LinkBox *box, const BoxLinkRun *runs, size_t n_runs)
{
    box_link_free(box->link);
    link_box_attach(box, fcntl(box->kept, F_DUPFD_CLOEXEC, 0), runs, n_runs);
}

static Run *
start_over_link(void *who, const RunSpec *spec, const char *actor, GError **error)
{
    return box_link_start(who, spec, error);
}

FilePlace
link_box_place(LinkBox *box)
{
    return (FilePlace){.loop = box->loop, .who = box->link, .start = start_over_link};
}

static void
remove_folder(const char *folder)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);

        g_assert_cmpint(unlink(path), ==, 0);
    }
    g_clear_pointer(&dir, g_dir_close);
    (void)rmdir(folder);
}

int
link_box_free(LinkBox *box)
{
    int status = 0;

    box_link_free(box->link);
    if (box->kept >= 0)
        close(box->kept);
    if (box->pid > 0)
        g_assert_cmpint(waitpid(box->pid, &status, 0), ==, box->pid);
    g_clear_pointer(&box->last_found, run_unref);
    loop_free(box->loop);
    remove_folder(box->folder);
    g_free(box->folder);
    g_free(box->error);
    g_free(box);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static gboolean
on_patience(gpointer data)
{
    g_error("nothing happens");
    return G_SOURCE_REMOVE;
}

void
turn_until(bool (*done)(void *data), void *data)
{
    guint id = g_timeout_add_seconds(PATIENCE_S, on_patience, NULL);

    while (!done(data))
        g_main_context_iteration(NULL, TRUE);
    g_source_remove(id);
}

typedef struct Count {
    const guint *count;
    guint n;
} Count;

static bool
is_counted(void *data)
{
    const Count *c = data;

    return *c->count >= c->n;
}

void
turn_until_count(const guint *count, guint n)
{
    Count c = {count, n};

    turn_until(is_counted, &c);
}

static bool
is_ended(void *data)
{
    return run_has_ended(data);
}

void
turn_until_ended(Run *run)
{
    turn_until(is_ended, run);
}

void
turn_some(guint n)
{
    while (n-- > 0)
        g_main_context_iteration(NULL, FALSE);
}

static Run *
start(LinkBox *box, unsigned flags, const char *line, const RunSink *sink, void *ctx)
{
    const char *const argv[] = {"/bin/sh", "-c", line, NULL};
    RunSpec spec = {.flags = flags, .argv = argv, .user = "", .cwd = "/", .sink = sink, .ctx = ctx};
    g_autoptr(GError) error = NULL;
    Run *run = box_link_start(box->link, &spec, &error);

    g_assert_no_error(error);
    if (sink == NULL)
        box->last_run = run_id(run);
    return run;
}

Run *
link_box_shell(LinkBox *box, unsigned flags, const char *line)
{
    return start(box, flags, line, NULL, NULL);
}

Run *
link_box_stream(LinkBox *box, unsigned flags, const char *line, const RunSink *sink, void *ctx)
{
    return start(box, flags, line, sink, ctx);
}

static void
on_wake(void *data)
{
    ((Followed *)data)->go = true;
}

void
followed_begin(Followed *f, Run *run, guint64 out, guint64 err)
{
    *f = (Followed){.out = {g_byte_array_new(), g_byte_array_new()}, .at = {out, err}, .go = true};
    f->follower = run_follow(run, out, err, on_wake, f);
}

bool
followed_step(Followed *f)
{
    RunPiece piece;
    RunStep step = run_follower_next(f->follower, &piece);
    int s = (int)piece.stream - STREAM_STDOUT;

    f->go = step != RUN_STEP_WAIT;
    if (step == RUN_STEP_DATA || step == RUN_STEP_GAP) {
        g_assert_cmpuint(piece.offset, ==, f->at[s]);
        g_assert_cmpuint(piece.n, >, 0);
        f->at[s] += piece.n;
    }
    if (step == RUN_STEP_DATA)
        g_byte_array_append(f->out[s], piece.bytes, (guint)piece.n);
    else if (step == RUN_STEP_GAP)
        f->gaps[s] += piece.n;
    f->ended = step == RUN_STEP_END;
    f->failed = step == RUN_STEP_FAILED;
    return f->go && !f->ended && !f->failed;
}

static bool
is_followed(void *data)
{
    Followed *f = data;

    while (f->go && followed_step(f))
        ;
    return f->ended || f->failed;
}

void
followed_to_end(Followed *f)
{
    turn_until(is_followed, f);
    g_assert_true(f->ended);
}

char *
followed_text(const Followed *f, int stream)
{
    const GByteArray *bytes = f->out[stream];

    return bytes->len > 0 ? g_strndup((const char *)bytes->data, bytes->len) : g_strdup("");
}

void
followed_clear(Followed *f)
{
    run_follower_free(f->follower);
    g_byte_array_unref(f->out[0]);
    g_byte_array_unref(f->out[1]);
}

char *
run_text(Run *run, int stream)
{
    Followed f;

    followed_begin(&f, run, 0, 0);
    followed_to_end(&f);
    char *text = followed_text(&f, stream);
    followed_clear(&f);
    return text;
}

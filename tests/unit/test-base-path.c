/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/path.h"

/* A folder of its own for each test. */
typedef struct Tree {
    char *root;
    int fd;
} Tree;

static void
tree_init(Tree *t, gconstpointer unused)
{
    t->root = g_dir_make_tmp("coop-path-XXXXXX", NULL);
    t->fd = open(t->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(t->fd, >=, 0);
}

static void
remove_below(int dir_fd)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", dir_fd);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir)) != NULL) {
        if (unlinkat(dir_fd, name, 0) == 0)
            continue;
        autofd sub = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        remove_below(sub);
        g_assert_no_errno(unlinkat(dir_fd, name, AT_REMOVEDIR));
    }
}

static void
tree_clear(Tree *t, gconstpointer unused)
{
    remove_below(t->fd);
    close(t->fd);
    g_assert_no_errno(rmdir(t->root));
    g_free(t->root);
}

static char *
tree_path(const Tree *t, const char *name)
{
    return g_build_filename(t->root, name, NULL);
}

static guint
count_entries(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    guint n = 0;

    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

static mode_t
mode_of(const char *path)
{
    struct stat st;

    g_assert_no_errno(lstat(path, &st));
    return st.st_mode & 07777;
}

static void
test_normal(void)
{
    static const struct {
        const char *path;
        bool want;
    } cases[] = {
        {"/a", true},     {"/a/b.c/..d", true}, {"/...", true}, {"", false},        {"/", false},
        {"a", false},     {"/a/", false},       {"//a", false}, {"/a/../b", false}, {"/..", false},
        {"/a/..", false}, {"/./a", false},      {"/.", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("path '%s'", cases[i].path);
        g_assert_true(path_is_normal(cases[i].path) == cases[i].want);
    }
}

static void
check_private_dir(const char *path, mode_t mode, int kind, const char *text)
{
    g_autoptr(GError) error = NULL;
    bool ok = path_make_private_dir(path, mode, &error);

    g_test_message("'%s'", path);
    if (kind < 0) {
        g_assert_no_error(error);
        g_assert_true(ok);
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, ERR_DOMAIN, kind);
    g_assert_nonnull(strstr(error->message, text));
}

static void
test_private_dir(Tree *t, gconstpointer unused)
{
    g_autofree char *deep = tree_path(t, "a/b/c");
    g_autofree char *middle = tree_path(t, "a/b");
    g_autofree char *slash = tree_path(t, "d/e/");
    g_autofree char *file = tree_path(t, "file");
    g_autofree char *below = tree_path(t, "file/x");
    g_autofree char *link = tree_path(t, "link");

    check_private_dir(deep, 0700, -1, NULL);
    g_assert_cmpint(mode_of(deep), ==, 0700);
    g_assert_cmpint(mode_of(middle), ==, 0755);
    check_private_dir(deep, 0700, -1, NULL);
    check_private_dir(slash, 0700, -1, NULL);
    g_assert_cmpint(mode_of(slash), ==, 0700);

    g_assert_no_errno(chmod(deep, 0500));
    check_private_dir(deep, 0700, -1, NULL);
    g_assert_no_errno(chmod(deep, 0750));
    check_private_dir(deep, 0750, -1, NULL);
    check_private_dir(deep, 0700, ERR_DENIED, "chmod 0700");
    g_assert_cmpint(mode_of(deep), ==, 0750);
    g_assert_no_errno(chmod(deep, 0701));
    check_private_dir(deep, 0700, ERR_DENIED, "mode 0701");

    g_assert_true(g_file_set_contents(file, "x", -1, NULL));
    check_private_dir(file, 0700, ERR_INVALID, "not a folder");
    check_private_dir(below, 0700, ERR_NOT_FOUND, "file");
    g_assert_no_errno(chmod(deep, 0700));
    g_assert_no_errno(symlink(deep, link));
    check_private_dir(link, 0700, ERR_INVALID, "not a folder");
}

/* "/usr" is root's.  Root itself may find a folder that it has given to a user. */
static void
test_foreign_dir(void)
{
    int status;

    if (geteuid() != 0) {
        check_private_dir("/usr", 0700, ERR_DENIED, "belongs to another user");
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        g_autoptr(GError) error = NULL;

        if (setresuid(65534, 65534, 65534) < 0)
            _exit(2);
        bool refused = !path_make_private_dir("/usr", 0755, &error) && err_kind(error) == ERR_DENIED &&
                       strstr(error->message, "another user (uid 0)") != NULL;
        _exit(refused ? 0 : 1);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status));
    g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

static void
test_root_and_given_dir(Tree *t, gconstpointer unused)
{
    g_autofree char *path = tree_path(t, "given");

    if (geteuid() != 0)
        return;
    g_assert_no_errno(mkdir(path, 0700));
    g_assert_no_errno(chown(path, 65534, 65534));
    check_private_dir(path, 0700, -1, NULL);
}

static void
test_write_atomic(Tree *t, gconstpointer unused)
{
    g_autofree char *path = tree_path(t, "file");
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    gsize n;
    mode_t before = umask(077);

    g_assert_true(path_write_atomic(path, "one", 3, 0644, &error));
    g_assert_no_error(error);
    g_assert_cmpint(mode_of(path), ==, 0644);
    g_assert_true(path_write_atomic(path, "a\0b", 3, 0600, &error));
    g_assert_cmpint(mode_of(path), ==, 0600);
    umask(before);
    g_assert_true(g_file_get_contents(path, &text, &n, NULL));
    g_assert_cmpmem(text, n, "a\0b", 3);
    g_assert_true(path_write_atomic(path, NULL, 0, 0600, &error));
    g_assert_cmpuint(count_entries(t->root), ==, 1);
}

static void
test_write_atomic_failures(Tree *t, gconstpointer unused)
{
    g_autofree char *file = tree_path(t, "file");
    g_autofree char *folder = tree_path(t, "folder");
    g_autofree char *nowhere = tree_path(t, "no/where");
    g_autofree char *text = NULL;
    g_autofree char *big = g_malloc0(1 << 20);
    struct rlimit limit, small;

    g_assert_true(path_write_atomic(file, "old", 3, 0600, NULL));
    g_assert_no_errno(mkdir(folder, 0700));
    g_autoptr(GError) error = NULL;
    g_assert_false(path_write_atomic(folder, "x", 1, 0600, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_clear_error(&error);
    g_assert_false(path_write_atomic(nowhere, "x", 1, 0600, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_NOT_FOUND);
    g_clear_error(&error);

    /* A disk that is full in the middle of the write, as far as the writer can tell. */
    (void)signal(SIGXFSZ, SIG_IGN);
    g_assert_no_errno(getrlimit(RLIMIT_FSIZE, &limit));
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = limit.rlim_max};
    g_assert_no_errno(setrlimit(RLIMIT_FSIZE, &small));
    bool ok = path_write_atomic(file, big, 1 << 20, 0600, &error);
    g_assert_no_errno(setrlimit(RLIMIT_FSIZE, &limit));
    g_assert_false(ok);
    g_assert_error(error, ERR_DOMAIN, ERR_LIMIT);

    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "old");
    g_assert_cmpuint(count_entries(t->root), ==, 2);
}

static void
test_open_beneath(Tree *t, gconstpointer unused)
{
    static const struct {
        const char *path;
        int kind; /* -1: opens */
    } cases[] = {
        {"dir/file", -1},
        {".", -1},
        {"dir/../dir/file", -1},
        {"in", -1},
        {"dir/up", -1},
        {"dir/./file", -1},
        {"", ERR_NOT_FOUND},
        {"none", ERR_NOT_FOUND},
        {"dir/file/x", ERR_NOT_FOUND},
        {"..", ERR_INVALID},
        {"dir/../..", ERR_INVALID},
        {"/", ERR_INVALID},
        {"/etc/passwd", ERR_INVALID},
        {"out", ERR_INVALID},
        {"out-dir/passwd", ERR_INVALID},
        {"absolute", ERR_INVALID},
        {"loop", ERR_INVALID},
    };
    autofd dir = -1;

    g_assert_no_errno(mkdirat(t->fd, "dir", 0755));
    dir = openat(t->fd, "dir", O_RDONLY | O_CLOEXEC);
    close(openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    g_assert_no_errno(symlinkat("dir/file", t->fd, "in"));
    g_assert_no_errno(symlinkat("../in", dir, "up"));
    g_assert_no_errno(symlinkat("../../../../../../etc/passwd", t->fd, "out"));
    g_assert_no_errno(symlinkat("../../../../../../etc", t->fd, "out-dir"));
    g_assert_no_errno(symlinkat("/etc/passwd", t->fd, "absolute"));
    g_assert_no_errno(symlinkat("loop", t->fd, "loop"));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        autofd fd = open_beneath(t->fd, cases[i].path, O_RDONLY, 0, &error);

        g_test_message("'%s'", cases[i].path);
        if (cases[i].kind < 0) {
            g_assert_no_error(error);
            g_assert_cmpint(fcntl(fd, F_GETFD), ==, FD_CLOEXEC);
        } else {
            g_assert_cmpint(fd, ==, -1);
            g_assert_error(error, ERR_DOMAIN, cases[i].kind);
        }
    }
}

static void
test_create_beneath(Tree *t, gconstpointer unused)
{
    g_autofree char *elsewhere = g_strdup_printf("%s.victim", t->root);
    g_autofree char *victim_link = g_strdup_printf("../%s.victim", strrchr(t->root, '/') + 1);
    g_autoptr(GError) error = NULL;
    struct stat st;

    autofd fd = open_beneath(t->fd, "made", O_WRONLY | O_CREAT | O_EXCL, 0640, &error);
    g_assert_no_error(error);
    g_assert_no_errno(fstat(fd, &st));
    g_assert_cmpint(st.st_mode & 07777, ==, 0640);

    autofd unnamed = open_beneath(t->fd, ".", O_WRONLY | O_TMPFILE, 0600, &error);
    if (unnamed < 0) {
        g_assert_error(error, ERR_DOMAIN, ERR_UNAVAILABLE);
        g_clear_error(&error);
    } else {
        g_assert_no_errno(fstat(unnamed, &st));
        g_assert_cmpint(st.st_mode & 07777, ==, 0600);
    }
    g_assert_no_errno(symlinkat(victim_link, t->fd, "trap"));
    g_assert_cmpint(open_beneath(t->fd, "trap", O_WRONLY | O_CREAT, 0600, &error), ==, -1);
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_assert_cmpint(access(elsewhere, F_OK), ==, -1);
}

/* Links that are no paths: they lead to wherever an open file is. */
static void
test_magic_links(void)
{
    static const char *const paths[] = {"fd/0", "cwd", "root/etc/passwd", "exe", "task/../fd/0"};
    autofd proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    g_assert_cmpint(proc, >=, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", paths[i]);
        g_assert_cmpint(open_beneath(proc, paths[i], O_RDONLY, 0, &error), ==, -1);
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
    autofd status = open_beneath(proc, "status", O_RDONLY, 0, NULL);
    g_assert_cmpint(status, >=, 0);
}

typedef struct Renamer {
    int dir;
    gint stop;
} Renamer;

enum { OPENS = 3000 };

static gpointer
run_renamer(gpointer data)
{
    Renamer *r = data;

    while (!g_atomic_int_get(&r->stop)) {
        (void)renameat(r->dir, "x", r->dir, "d/x");
        (void)renameat(r->dir, "d/x", r->dir, "x");
    }
    return NULL;
}

/* The kernel gives up on ".." when anything is renamed meanwhile, and wants to be asked again. */
static void
test_open_among_renames(Tree *t, gconstpointer unused)
{
    Renamer r = {.dir = t->fd};

    g_assert_no_errno(mkdirat(t->fd, "x", 0755));
    g_assert_no_errno(mkdirat(t->fd, "d", 0755));
    close(openat(t->fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    GThread *thread = g_thread_new("renamer", run_renamer, &r);
    for (int i = 0; i < OPENS; i++) {
        g_autoptr(GError) error = NULL;
        autofd fd = open_beneath(t->fd, "d/../d/../d/../d/../d/../f", O_RDONLY, 0, &error);

        g_assert_no_error(error);
        g_assert_cmpint(fd, >=, 0);
    }
    g_atomic_int_set(&r.stop, 1);
    g_thread_join(thread);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/path/normal", test_normal);
    g_test_add_func("/path/private-dir/foreign", test_foreign_dir);
    g_test_add_func("/path/open-beneath/magic-links", test_magic_links);
#define add(name, func) g_test_add(name, Tree, NULL, tree_init, func, tree_clear)
    add("/path/private-dir/modes", test_private_dir);
    add("/path/private-dir/root-and-given", test_root_and_given_dir);
    add("/path/write-atomic/whole", test_write_atomic);
    add("/path/write-atomic/failures", test_write_atomic_failures);
    add("/path/open-beneath/paths", test_open_beneath);
    add("/path/open-beneath/create", test_create_beneath);
    add("/path/open-beneath/renames", test_open_among_renames);
#undef add
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The file operations of init, as the box's user, on what a box may hold. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init-fixture.h"
#include "room.h"
#include "wire/builtin.h"

static TestRun *
write_op(TestBox *box, const char *line, const char *text, bool whole)
{
    TestRun *run = box_op_start(box, START_STDIN, line);

    if (*text != '\0')
        box_write(box, run, 0, text, strlen(text));
    if (whole)
        box_send(box, (FrameHead){.type = FRAME_STDIN_CLOSE, .run = run->id}, NULL);
    return run;
}

static void
take_entry(const TestRun *run, size_t *at, BuiltinEntry *ret_entry, char **ret_name)
{
    g_assert_cmpuint(run->out[0]->len - *at, >=, sizeof *ret_entry);
    memcpy(ret_entry, run->out[0]->data + *at, sizeof *ret_entry);
    *at += sizeof *ret_entry;
    g_assert_cmpuint(run->out[0]->len - *at, >=, (size_t)ret_entry->name_bytes + ret_entry->target_bytes);
    *ret_name = g_strndup((const char *)run->out[0]->data + *at,
                          (gsize)ret_entry->name_bytes + ret_entry->target_bytes);
    *at += (size_t)ret_entry->name_bytes + ret_entry->target_bytes;
}

static const char furniture[] =
    "cd /tmp; mkdir -p d/e/f; echo hello > d/file; chmod 640 d/file; ln -s file d/link; ln -s / d/e/root; "
    "ln -s /proc/self/fd d/magic; mkfifo d/fifo; echo x > d/e/x; mkdir closed; echo y > closed/y; chmod 0 "
    "closed; "
    "ln -s nowhere d/dangling";

static const struct {
    const char *line;
    int error;
} refusals[] = {
    {"nothing", ENOSYS},
    {"stat", EINVAL},
    {"stat a b", EINVAL},
    {"stat no", ENOENT},
    {"stat closed/y", EACCES},
    {"stat d/file/x", ENOTDIR},
    {"read no 0 -", ENOENT},
    {"read d 0 -", EISDIR},
    {"read d/fifo 0 -", EINVAL},
    {"read /dev/zero 0 -", EINVAL},
    {"read /proc/self/status 0 -", EACCES},
    {"read d/magic/0 0 -", ELOOP},
    {"read d/file -1 -", EINVAL},
    {"read d/file 0 99999999999999999999", EINVAL},
    {"read closed/y 0 -", EACCES},
    {"list d/file 0 10", ENOTDIR},
    {"list d 0 0", EINVAL},
    {"list d 0 4097", EINVAL},
    {"list /proc 0 10", EACCES},
    {"write d 644 -", EISDIR},
    {"write d/fifo 644 -", EINVAL},
    {"write no/file 644 -", ENOENT},
    {"write closed/z 644 -", EACCES},
    {"write /etc/mine 644 -", EACCES},
    {"write /etc/passwd - -", EACCES},
    {"write x 888 -", EINVAL},
    {"write x/ 644 -", EISDIR},
    {"mkdir d/file/x 755", ENOTDIR},
    {"mkdir d/file 755", EEXIST},
    {"mkdir /etc/mine 755", EACCES},
    {"move no here keep", ENOENT},
    {"move d/file d/e keep", EEXIST},
    {"move d d/e/inside replace", EINVAL},
    {"move d/file x maybe", EINVAL},
    {"remove no one", ENOENT},
    {"remove d one", ENOTEMPTY},
    {"remove / tree", EINVAL},
    {"remove d/.. tree", EINVAL},
    {"remove no tree", ENOENT},
    {"remove /etc/passwd tree", EACCES},
    {"chmod no 644", ENOENT},
    {"chmod /etc/passwd 666", EPERM},
    {"chmod d/file 9", EINVAL},
};

static void
test_refusals(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, furniture, "");
    for (guint i = 0; i < G_N_ELEMENTS(refusals); i++) {
        TestRun *run = box_op(box, refusals[i].line);

        g_test_message("%s: %s", refusals[i].line, g_strerror(run->end.code));
        g_assert_cmpint(run->end.code, ==, refusals[i].error);
        box_forget(box, run);
    }
    g_autofree char *name = g_strnfill(300, 'n');
    g_autofree char *line = g_strdup_printf("write %s 644 -", name);
    g_assert_cmpint(box_op(box, line)->end.code, ==, ENAMETOOLONG);
    box_expect(box, "ls -A /tmp", "closed\nd\n");
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_reads(void)
{
    BuiltinEntry entry;

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, furniture, "");
    const struct {
        const char *line, *name, *rest;
        uint32_t mode;
        uint64_t size;
    } cases[] = {
        {"stat d/file", "file", "", S_IFREG | 0640, 6},
        {"stat d/link", "linkfile", "", S_IFLNK | 0777, 4},
        {"stat d/fifo", "fifo", "", S_IFIFO | 0644, 0},
        {"read d/file 0 -", "file", "hello\n", S_IFREG | 0640, 6},
        {"read d/link 1 3", "link", "ell", S_IFREG | 0640, 6},
        {"read d/file 6 5", "file", "", S_IFREG | 0640, 6},
        {"read d/file 100 -", "file", "", S_IFREG | 0640, 6},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestRun *run = box_op(box, cases[i].line);
        g_autofree char *name = NULL;
        size_t at = 0;

        g_test_message("%s", cases[i].line);
        g_assert_cmpint(run->end.code, ==, 0);
        take_entry(run, &at, &entry, &name);
        g_assert_cmpstr(name, ==, cases[i].name);
        g_assert_cmpuint(entry.mode, ==, cases[i].mode);
        g_assert_cmpuint(entry.size, ==, cases[i].size);
        g_assert_cmpuint(entry.uid, ==, 1000);
        g_assert_cmpmem(run->out[0]->data + at, run->out[0]->len - at, cases[i].rest, strlen(cases[i].rest));
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_list(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *cursor = g_strdup("0");
    guint pages = 0;

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, "mkdir /tmp/many; cd /tmp/many; seq 1000 | xargs touch; ln -s away link", "");
    do {
        g_autofree char *line = g_strdup_printf("list many %s 70", cursor);
        TestRun *run = box_op(box, line);
        size_t at = 0;
        guint n = 0;

        g_assert_cmpint(run->end.code, ==, 0);
        for (;; n++) {
            BuiltinEntry entry;
            char *name;

            take_entry(run, &at, &entry, &name);
            if (entry.name_bytes == 0) {
                g_free(cursor);
                cursor = g_strdup_printf("%" G_GUINT64_FORMAT, entry.size);
                g_free(name);
                break;
            }
            g_assert_true(g_hash_table_add(seen, name));
        }
        g_assert_cmpuint(n, <=, 70);
        g_assert_cmpuint(at, ==, run->out[0]->len);
        g_assert_cmpuint(++pages, <, 100);
        box_forget(box, run);
    } while (strcmp(cursor, "0") != 0);
    g_assert_cmpuint(g_hash_table_size(seen), ==, 1001);
    g_assert_true(g_hash_table_contains(seen, "linkaway"));
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_writes(void)
{
    static const struct {
        const char *line, *text;
        int error;
        const char *look, *shows;
    } cases[] = {
        {"write new 755 3", "abc", 0, "cat new; stat -c ' %a' new", "abc 755\n"},
        {"write new - -", "", 0, "cat new; stat -c ' %a' new", " 755\n"},
        {"write d/link - -", "through", 0, "cat d/file; test -L d/link; stat -c ' %a' d/file",
         "through 640\n"},
        {"write other - -", "x", 0, "stat -c '%a %u' other", "644 1000\n"},
        {"write new - 4", "abc", EPIPE, "cat new", ""},
        {"write new 644 2", "abc", 0, "cat new", "ab"},
        {"mkdir p/q/r 700", "", 0, "stat -c %a p p/q p/q/r", "755\n755\n700\n"},
        {"mkdir p/q/r/ 700", "", 0, "ls p/q", "r\n"},
        {"move new p/q/new keep", "", 0, "cat p/q/new", "ab"},
        {"move other p/q/new replace", "", 0, "cat p/q/new", "x"},
        {"chmod p/q/new 600", "", 0, "stat -c %a p/q/new", "600\n"},
        {"remove p/q/new one", "", 0, "ls p/q", "r\n"},
        {"remove p/q/r one", "", 0, "ls p/q", ""},
        {"remove d/dangling one", "", 0, "ls d/dangling 2>/dev/null", ""},
        {"remove d tree", "", 0, "ls; test -d /usr && echo usr", "closed\np\nusr\n"},
        {"remove closed tree", "", EACCES, "ls", "closed\np\n"},
    };

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, furniture, "");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestRun *run = write_op(box, cases[i].line, cases[i].text, true);
        g_autofree char *look = g_strdup_printf("cd /tmp; %s", cases[i].look);

        g_test_message("%s", cases[i].line);
        box_until_ended(box, run);
        g_assert_cmpint(run->end.code, ==, cases[i].error);
        box_expect(box, look, cases[i].shows);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

typedef struct Taken {
    const TestRun *run;
    uint64_t n;
} Taken;

static bool
took_input(TestBox *box, void *data)
{
    const Taken *taken = data;

    return taken->run->in_acked == taken->n;
}

/* Killed in the middle: the file is as it was, and nothing lies beside it. */
static void
test_killed_write(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, "mkdir /tmp/w; echo old > /tmp/w/file", "");
    g_autofree char *part = g_strnfill(FRAME_DATA_MAX, 'p');
    TestRun *run = write_op(box, "write w/file 644 1000000", part, false);
    Taken taken = {run, FRAME_DATA_MAX};
    /* More than a pipe holds: some of it is in the file. */
    for (; taken.n < 14 * FRAME_DATA_MAX; taken.n += FRAME_DATA_MAX) {
        box_until(box, took_input, &taken);
        box_write(box, run, taken.n, part, FRAME_DATA_MAX);
    }
    box_until(box, took_input, &taken);
    box_send(box, (FrameHead){.type = FRAME_SIGNAL, .run = run->id, .value = 9}, NULL);
    box_until_ended(box, run);
    g_assert_cmpuint(run->end.reason, ==, REASON_SIGNAL);
    box_expect(box, "cd /tmp/w; ls -A; cat file", "file\nold\n");
    g_assert_cmpint(box_free(box), ==, 0);
}

/* A folder and a link change places as fast as they can. */
static const char swapper[] =
    "exec python3 -c '\n"
    "import ctypes, os\n"
    "swap = ctypes.CDLL(None).renameat2\n"
    "os.chdir(\"/tmp\")\n"
    "os.makedirs(\"s\", exist_ok=True)\n"
    "os.makedirs(\"o/dir/full\", exist_ok=True)\n"
    "os.symlink(\"/tmp/keep\", \"o/link\")\n"
    "print(\"go\", flush=True)\n"
    "while True:\n"
    "    for call in (lambda: os.makedirs(\"s/x/full\"), lambda: os.symlink(\"/tmp/keep\", \"o/link\")):\n"
    "        try: call()\n"
    "        except OSError: pass\n"
    "    for i in range(8): swap(-100, b\"s/x\", -100, b\"o/link\", 2)\n"
    "' 2>&1";

/* Deep, wide, and changed by another while it goes. */
static void
test_remove_hostile(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(
        box,
        "mkdir /tmp/keep; echo safe > /tmp/keep/file; mkdir /tmp/t; cd /tmp/t; i=0; while [ $i -lt 120 ]; "
        "do mkdir d; "
        "touch f; cd d; i=$((i+1)); done; cd /tmp/t; mkdir wide; cd wide; seq 3000 | xargs touch",
        "");
    TestRun *run = box_op(box, "remove t tree");
    g_assert_cmpint(run->end.code, ==, 0);
    box_expect(box, "mkdir /tmp/t; cd /tmp/t; i=0; while [ $i -lt 140 ]; do mkdir d; cd d; i=$((i+1)); done",
               "");
    run = box_op(box, "remove t tree");
    g_assert_cmpint(run->end.code, ==, ELOOP);
    box_expect(box, "rm -rf /tmp/t", "");
    TestRun *swap = box_shell(box, box->next_id++, 0, swapper);
    box_until_bytes(box, swap, 3);
    for (guint i = 0; i < 200; i++)
        box_forget(box, box_op(box, "remove s tree"));
    box_expect(box, "cat /tmp/keep/file", "safe\n");
    g_assert_cmpint(box_free(box), ==, 0);
}

/* ---- descriptors that come along ---- */

/* A pipe; the run gets the end that reads or writes. */
static TestRun *
piped_op(TestBox *box, uint32_t flags, bool reads, const char *line, int *ret_mine)
{
    int fds[2];

    g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
    box->pass_fd = fds[reads ? 0 : 1];
    TestRun *run = box_op_start(box, flags, line);
    close(fds[reads ? 0 : 1]);
    *ret_mine = fds[reads ? 1 : 0];
    return run;
}

/* Until the end, which is there only when nobody else has kept the other one. */
static GByteArray *
read_to_end(int fd)
{
    GByteArray *all = g_byte_array_new();
    guint8 bytes[4096];
    ssize_t n;

    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        g_byte_array_append(all, bytes, (guint)n);
    g_assert_cmpint(n, ==, 0);
    close(fd);
    return all;
}

static void
test_descriptors(void)
{
    static const struct {
        uint32_t flags;
        bool passed;
        int error;
    } refused[] = {
        {START_OUT_FD, false, EBADF},
        {START_IN_FD, false, EBADF},
        {START_IN_FD | START_OUT_FD, true, EINVAL},
        {START_IN_FD | START_STDIN, true, EINVAL},
    };
    int fd;

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, furniture, "");
    for (guint i = 0; i < G_N_ELEMENTS(refused); i++) {
        TestRun *run = refused[i].passed ? piped_op(box, refused[i].flags, false, "read d/file 0 -", &fd)
                                         : box_op_start(box, refused[i].flags, "read d/file 0 -");

        box_until_ended(box, run);
        g_assert_true(run->failed);
        g_assert_cmpuint(run->stage, ==, FAIL_FRAME);
        g_assert_cmpuint(run->error, ==, refused[i].error);
        if (refused[i].passed)
            g_byte_array_unref(read_to_end(fd));
    }
    /* One that nobody asked for. */
    TestRun *run = piped_op(box, 0, false, "stat d/file", &fd);
    g_byte_array_unref(read_to_end(fd));
    box_until_ended(box, run);
    g_assert_cmpint(run->end.code, ==, 0);

    run = piped_op(box, START_OUT_FD, false, "read d/file 1 3", &fd);
    g_autoptr(GByteArray) bytes = read_to_end(fd);
    box_until_ended(box, run);
    g_assert_cmpint(run->end.code, ==, 0);
    g_assert_cmpuint(run->end.out_bytes, ==, 0);
    g_assert_cmpmem(bytes->data + sizeof(BuiltinEntry), bytes->len - sizeof(BuiltinEntry), "fileell", 7);
    run = piped_op(box, START_OUT_FD, false, "read d/fifo 0 -", &fd);
    g_autoptr(GByteArray) nothing = read_to_end(fd);
    box_until_ended(box, run);
    g_assert_cmpint(run->end.code, ==, EINVAL);
    g_assert_cmpuint(nothing->len, ==, 0);
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_descriptors_in(void)
{
    static const struct {
        const char *line, *text;
        int error;
        const char *then;
    } cases[] = {
        {"write d/file - 5", "whole and more", 0, "whole"},
        {"write d/file - 5", "cut", EPIPE, "whole"},
        {"write d/file - 5", "", EPIPE, "whole"},
        {"write d/fifo - 5", "hello", EINVAL, "whole"},
        {"write d/file - 0", "", 0, ""},
    };
    int fd;

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, furniture, "");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestRun *run = piped_op(box, START_IN_FD, true, cases[i].line, &fd);

        (void)!write(fd, cases[i].text, strlen(cases[i].text));
        close(fd);
        box_until_ended(box, run);
        g_assert_cmpint(run->end.code, ==, cases[i].error);
        box_expect(box, "cat /tmp/d/file", cases[i].then);
    }
    box_expect(box, "ls -A /tmp /tmp/d",
               "/tmp:\nclosed\nd\n\n/tmp/d:\ndangling\ne\nfifo\nfile\nlink\nmagic\n");
    g_assert_cmpint(box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/file/refusals", test_refusals);
    g_test_add_func("/init/file/reads", test_reads);
    g_test_add_func("/init/file/list", test_list);
    g_test_add_func("/init/file/writes", test_writes);
    g_test_add_func("/init/file/killed-write", test_killed_write);
    g_test_add_func("/init/file/remove-hostile", test_remove_hostile);
    g_test_add_func("/init/file/descriptors", test_descriptors);
    g_test_add_func("/init/file/descriptors-in", test_descriptors_in);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that want to write where they should not, or more than they may. */
#include <errno.h>
#include <string.h>

#include "init-fixture.h"
#include "room.h"

/* Words to build an archive with. */
static const char prelude[] =
    "import io, os, sys, tarfile\n"
    "out = io.BytesIO(); t = tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT)\n"
    "def add(name, data=b'x', kind=b'0', target='', mode=0o644, **pax):\n"
    "    i = tarfile.TarInfo(name); i.type = kind; i.linkname = target; i.mode = mode\n"
    "    i.size = len(data) if kind == b'0' else 0; i.pax_headers = {k.replace('_', '.'): v for k, v in "
    "pax.items()}\n"
    "    t.addfile(i, io.BytesIO(data))\n"
    "def raw(name, kind, data):\n"
    "    i = tarfile.TarInfo(name); i.type = kind; i.size = len(data); block = "
    "i.tobuf(tarfile.USTAR_FORMAT)\n"
    "    out.write(block + data + b'\\0' * (-len(data) % 512)); t.offset = out.tell()\n"
    "def end():\n"
    "    t.close(); sys.stdout.buffer.write(out.getvalue())\n";

typedef struct Case {
    const char *before; /* in the box */
    const char *build;
    int error;
    const char *look, *shows; /* from below dst */
} Case;

static const Case cases[] = {
    {"", "add('a/b'); end()", 0, "cat a/b", "x"},
    {"", "end()", 0, "ls -A", ""},
    {"", "", EPIPE, "ls -A", ""},
    {"", "sys.stdout.write('x' * 2000)", EBADMSG, "ls -A", ""},
    {"", "add('a', b'x' * 5000); end = out.getvalue(); sys.stdout.buffer.write(end[:3000])", EPIPE, "ls -A",
     ""},
    {"", "add('a'); sys.stdout.buffer.write(out.getvalue())", EPIPE, "ls -A", "a\n"},
    {"", "add('a'); add('b'); end = bytearray(out.getvalue()); end[1030] ^= 1; sys.stdout.buffer.write(end)",
     EBADMSG, "ls -A", "a\n"},
    /* names */
    {"", "add('/tmp/out/f'); end()", EXDEV, "ls -A ../out", ""},
    {"", "add('../out/f'); end()", EXDEV, "ls -A ../out", ""},
    {"", "add('a/../../out/f'); end()", EXDEV, "ls -A ../out", ""},
    {"", "add('a/..', kind=b'5'); end()", EXDEV, "ls -A", ""},
    {"", "add(''); end()", EINVAL, "ls -A", ""},
    {"", "add('.'); end()", EISDIR, "ls -A", ""},
    {"", "add('./', kind=b'5', mode=0o777); end()", 0, "stat -c %a .", "755\n"},
    {"", "add('./a//.//b'); end()", 0, "ls a", "b\n"},
    {"", "add('n' * 256); end()", ENAMETOOLONG, "ls -A", ""},
    {"", "add('d/' * 64 + 'f'); end()", ELOOP, "ls -A", ""},
    {"", "add('d/' * 63 + 'f'); end()", 0, "ls -A", "d\n"},
    {"", "add('x/' * 2100); end()", ENAMETOOLONG, "ls -A", ""},
    {"", "raw('x', b'x', b'18 path=a\\0/../b\\0\\n'); add('c'); end()", EBADMSG, "ls -A", ""},
    {"", "raw('x', b'x', b'99999999 path=a\\n'); add('c'); end()", EBADMSG, "ls -A", ""},
    {"", "raw('x', b'L', b'n' * 5000); add('c'); end()", ENAMETOOLONG, "ls -A", ""},
    {"", "raw('x', b'g', b'x' * 70000); add('c'); end()", ENAMETOOLONG, "ls -A", ""},
    {"", "[raw('x', b'g', b'9 a=b123\\n') for _ in range(40)]; add('c'); end()", EBADMSG, "ls -A", ""},
    {"", "raw('x', b'x', b'17 path=../out/f\\n'); add('c'); end()", EXDEV, "ls -A ../out", ""},
    /* links of the archive, and of the folder */
    {"", "add('l', kind=b'2', target='/tmp/out'); add('l/f'); end()", EISDIR, "ls -A ../out", ""},
    {"", "add('d', kind=b'5'); add('d', kind=b'2', target='/tmp/out'); add('d/f'); end()", EISDIR,
     "ls -A ../out d", "../out:\n\nd:\nf\n"},
    {"ln -s /tmp/out l", "add('l/f'); end()", ENOTDIR, "ls -A ../out", ""},
    {"ln -s /tmp/out/f l", "add('l', b'new'); end()", 0, "ls -A ../out; cat l", "new"},
    {"ln -s /tmp/out l", "add('l', kind=b'5'); end()", ENOTDIR, "ls -A ../out", ""},
    {"", "add('l', kind=b'2', target='../out'); end()", EXDEV, "ls -A", ""},
    {"", "add('a/b/l', kind=b'2', target='../../../out'); end()", EXDEV, "ls -A", ""},
    {"", "add('a/b/l', kind=b'2', target='../../c'); add('v', kind=b'2', target='/usr/bin/env'); end()", 0,
     "readlink a/b/l v", "../../c\n/usr/bin/env\n"},
    {"", "add('l', kind=b'2', target=''); end()", EINVAL, "ls -A", ""},
    {"echo secret > ../out/s", "add('h', kind=b'1', target='../out/s'); end()", EXDEV, "ls -A", ""},
    {"", "add('h', kind=b'1', target='/etc/passwd'); end()", EXDEV, "ls -A", ""},
    {"", "add('h', kind=b'1', target='no'); end()", ENOENT, "ls -A", ""},
    {"mkdir d", "add('h', kind=b'1', target='d'); end()", EINVAL, "ls -A", "d\n"},
    {"ln -s ../out l; echo s > ../out/s", "add('h', kind=b'1', target='l/s'); end()", ENOTDIR, "ls -A",
     "l\n"},
    {"ln -s ../out/s l; echo s > ../out/s", "add('h', kind=b'1', target='l'); end()", 0, "readlink h",
     "../out/s\n"},
    /* what lies in the way */
    {"mkfifo f", "add('f', b'new'); end()", 0, "cat f", "new"},
    {"mkfifo f", "add('f/g', b'new'); end()", ENOTDIR, "ls", "f\n"},
    {"mkdir -p f/g", "add('f', b'new'); end()", EISDIR, "ls f", "g\n"},
    {"echo f > f", "add('f', kind=b'5'); end()", ENOTDIR, "cat f", "f\n"},
    {"echo old > f; chmod 444 f", "add('f', b'new'); end()", 0, "cat f", "new"},
    {"mkdir d; chmod 555 d", "add('d/f', b'new'); end()", EACCES, "ls -A d", ""},
    /* what is not taken */
    {"", "add('s', mode=0o6755); add('d', kind=b'5', mode=0o7777); end()", 0, "stat -c %a s d", "755\n777\n"},
    {"", "add('c', kind=b'3'); add('b', kind=b'4'); add('p', kind=b'6'); add('f'); end()", 0, "ls", "f\n"},
    {"", "add('S', kind=b'S'); add('V', kind=b'V'); add('f'); end()", 0, "ls", "f\n"},
    /* bounds: 10 entries, 100000 bytes */
    {"", "[add(str(i)) for i in range(11)]; end()", EFBIG, "ls | wc -l", "10\n"},
    {"", "add('a', b'x' * 60000); add('b', b'x' * 60000); end()", EFBIG, "ls", "a\n"},
    {"", "raw('x', b'x', b'30 size=9223372036854775807 \\n'); add('c'); end()", EBADMSG, "ls", ""},
    {"", "raw('x', b'x', b'28 size=9223372036854775807\\n'); add('c'); end()", EFBIG, "ls", ""},
    {"",
     "add('h', b'1\\n0\\n1\\n'.ljust(512, b'\\0') + b'x', GNU_sparse_major='1', GNU_sparse_minor='0', "
     "GNU_sparse_realsize='1000000000000'); end()",
     EFBIG, "ls", ""},
    {"",
     "add('h', b'1\\n90\\n1\\n'.ljust(512, b'\\0') + b'x', GNU_sparse_major='1', GNU_sparse_minor='0', "
     "GNU_sparse_realsize='1000'); end()",
     0, "stat -c %s h; tail -c 910 h | tr '\\0' .| cut -c1-3", "1000\nx..\n"},
    {"",
     "add('h', b'1\\n990\\n11\\n'.ljust(512, b'\\0') + b'x' * 11, GNU_sparse_major='1', "
     "GNU_sparse_minor='0', "
     "GNU_sparse_realsize='1000'); end()",
     EBADMSG, "ls", ""},
    {"",
     "add('h', b'1\\n0\\n600\\n'.ljust(512, b'\\0') + b'x' * 11, GNU_sparse_major='1', GNU_sparse_minor='0', "
     "GNU_sparse_realsize='1000'); end()",
     EBADMSG, "ls", ""},
    {"",
     "add('h', b'99999\\n'.ljust(1024, b'1'), GNU_sparse_major='1', GNU_sparse_minor='0', "
     "GNU_sparse_realsize='1000'); end()",
     EFBIG, "ls", ""},
};

static GByteArray *
build(TestBox *box, const char *text)
{
    g_autofree char *program = g_strconcat(prelude, text, NULL);
    TestRun *run = box_python(box, 0, program);

    box_until_ended(box, run);
    if (run->end.code != 0)
        g_error("%s: %.*s", text, (int)run->out[1]->len, (const char *)run->out[1]->data);
    GByteArray *bytes = g_byte_array_ref(run->out[0]);
    box_forget(box, run);
    return bytes;
}

static TestRun *
unpack(TestBox *box, const char *line, const GByteArray *archive)
{
    TestRun *run = box_op_start(box, START_STDIN, line);

    box_feed(box, run, archive->data, archive->len);
    box_until_ended(box, run);
    return run;
}

static void
test_cases(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Case *c = &cases[i];
        g_autofree char *before = g_strdup_printf(
            "cd /tmp; chmod -R u+w dst; rm -rf dst out; mkdir dst out; cd dst; %s", c->before);
        g_autofree char *look = g_strdup_printf("cd /tmp/dst; %s", c->look);

        g_test_message("%s | %s", c->before, c->build);
        TestRun *run = box_shell(box, box->next_id++, 0, before);
        box_until_ended(box, run);
        g_autoptr(GByteArray) archive = build(box, c->build);
        run = unpack(box, "tar-in dst 10 100000", archive);
        g_test_message("%d %.*s", run->end.code, (int)run->out[1]->len, (const char *)run->out[1]->data);
        g_assert_cmpuint(run->end.reason, ==, REASON_EXIT);
        g_assert_cmpint(run->end.code, ==, c->error);
        if (c->error != 0)
            g_assert_cmpuint(run->out[1]->len, >, strlen("tar-in: "));
        box_forget(box, run);
        box_expect(box, look, c->shows);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_arguments(void)
{
    static const struct {
        const char *line;
        int error;
    } bad[] = {
        {"tar-in dst 10", EINVAL},      {"tar-in dst x 10", EINVAL},    {"tar-in dst 1000001 10", EINVAL},
        {"tar-in dst 10 -1", EINVAL},   {"tar-in no 10 10", ENOENT},    {"tar-in dst/f 10 10", ENOTDIR},
        {"tar-in /proc 10 10", EACCES}, {"tar-in fifo 10 10", ENOTDIR}, {"tar-in dst 10 10", EPIPE},
    };

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, "cd /tmp; mkdir dst; touch dst/f; mkfifo fifo", "");
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_test_message("%s", bad[i].line);
        g_assert_cmpint(box_op(box, bad[i].line)->end.code, ==, bad[i].error);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

/* A folder of the tree and a link to the outside change places as fast as they can. */
static const char swapper[] = "import ctypes, os\n"
                              "swap = ctypes.CDLL(None).renameat2\n"
                              "for d in ('dst', 'dst/x', 'out', 'aside'): os.makedirs(d, exist_ok=True)\n"
                              "for i in range(40): os.makedirs(f'out/{i}', exist_ok=True)\n"
                              "os.symlink('../out', 'aside/link')\n"
                              "print('go', flush=True)\n"
                              "while True: swap(-100, b'dst/x', -100, b'aside/link', 2)\n";

static void
test_swaps(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    guint good = 0;
    guint bad = 0;

    g_autoptr(GByteArray) archive = build(box, "add('x', kind=b'5', mode=0o700); [add(f'x/{i}/f') for i in "
                                               "range(40)]; add('x/l', kind=b'2', target='k'); "
                                               "add('x/h', kind=b'1', target='x/1/f'); end()");
    TestRun *swap = box_python(box, 0, swapper);
    box_until_bytes(box, swap, 3);
    for (guint i = 0; i < 300 && (good == 0 || bad == 0 || i < 100); i++) {
        TestRun *run = unpack(box, "tar-in dst 100 100000", archive);

        good += run->end.code == 0;
        bad += run->end.code != 0;
        box_forget(box, run);
    }
    g_test_message("%u good, %u refused", good, bad);
    g_assert_cmpuint(bad, >, 0);
    box_expect(box, "find /tmp/out ! -type d", "");
    g_assert_cmpint(box_free(box), ==, 0);
}

/* Killed in the middle: what it wrote is a tree's beginning, and nothing else is there. */
static void
test_killed(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, "mkdir /tmp/dst", "");
    g_autoptr(GByteArray) archive = build(box, "add('a', b'a'); add('b', b'b' * 3000000); end()");
    TestRun *run = box_op_start(box, START_STDIN, "tar-in dst 10 10000000");
    box_write(box, run, 0, archive->data, FRAME_DATA_MAX);
    box_until_started(box, run);
    box_send(box, (FrameHead){.type = FRAME_FORGET, .run = run->id}, NULL);
    box_expect(box, "rm -f /tmp/dst/a /tmp/dst/b; ls -A /tmp/dst", "");
    g_assert_cmpint(box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/tar-hostile/cases", test_cases);
    g_test_add_func("/init/tar-hostile/arguments", test_arguments);
    g_test_add_func("/init/tar-hostile/swaps", test_swaps);
    g_test_add_func("/init/tar-hostile/killed", test_killed);
    return g_test_run();
}

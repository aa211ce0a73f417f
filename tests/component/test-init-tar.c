/* SPDX-License-Identifier: Apache-2.0 */
/* Trees go into a box and come out of it as archives that other programs write and read. */
#include <errno.h>
#include <string.h>

#include "init-fixture.h"
#include "room.h"

enum { BLOCK = 512 };

/* Everything an archive may hold that is not hostile. */
static const char make_tree[] =
    "import os\n"
    "os.mkdir('src'); os.chdir(b'src')\n"
    "def put(name, data=b'x', mode=0o644, mtime=1234567890):\n"
    "    if os.path.dirname(name): os.makedirs(os.path.dirname(name), exist_ok=True)\n"
    "    with open(name, 'wb') as f: f.write(data)\n"
    "    os.chmod(name, mode); os.utime(name, (1, mtime))\n"
    "for n in (0, 1, 511, 512, 513, 10240, 300001): put(b'size%d' % n, os.urandom(n))\n"
    "for mode in (0o400, 0o600, 0o755, 0o777): put(b'mode%o' % mode, mode=mode)\n"
    "put(b'n' * 100); put(b'n' * 101); put(b'n' * 255)\n"
    "put(b'/'.join([b'd' * 50] * 3 + [b'f' * 90])); put(b'/'.join([b'd' * 50] * 5 + [b'f' * 120]))\n"
    "put(b'/'.join([b'deep'] * 60 + [b'f'])); put('gr\\u00fc\\u00dfe \\u4f60'.encode()); "
    "put(b'bytes\\377\\376')\n"
    "put(b'long\\377' + b'b' * 200); put(b'line\\nbreak \\\\ \\t'); put(b' lead'); put(b'-dash'); "
    "put(b'dir/.hidden')\n"
    "put(('\\u00e9' * 120).encode()); put(b'old', mtime=0); put(b'later', mtime=4000000000)\n"
    "os.mkdir(b'empty'); os.mkdir(b'shut'); put(b'shut/in'); os.chmod(b'shut', 0o555); "
    "os.mkdir(b'\\377dir')\n"
    "os.symlink(b'size1', b'link'); os.symlink(b'../dir/.hidden', b'dir/up'); os.symlink(b'/usr/bin/env', "
    "b'abs')\n"
    "os.symlink(b'gone', b'dangling'); os.symlink(b't' * 150, b'longlink'); os.symlink(b't\\377' * 20, "
    "b'bytelink')\n"
    "os.link(b'size513', b'hard1'); os.link(b'size513', b'dir/hard2')\n"
    "put(b'early'); os.link(b'early', b'early2')\n"
    "for d, _, _ in os.walk(b'.', topdown=False): os.utime(d, (5, 55555))\n";

/* What two trees that are alike have in common. */
static const char show_tree[] =
    "import hashlib, os, stat, sys\n"
    "os.chdir(b'%s')\n"
    "rows = []\n"
    "for folder, folders, files in os.walk(b'.'):\n"
    "    for name in folders + files:\n"
    "        path = os.path.join(folder, name); st = os.lstat(path)\n"
    "        row = [path, b'%%o' %% st.st_mode]\n"
    "        if stat.S_ISLNK(st.st_mode): row += [os.readlink(path)]\n"
    "        else: row += [b'%%d' %% int(st.st_mtime)]\n"
    "        if stat.S_ISREG(st.st_mode):\n"
    "            row += [hashlib.sha256(open(path, 'rb').read()).hexdigest().encode()]\n"
    "        rows.append(b' '.join(row))\n"
    "sys.stdout.buffer.write(b'\\n'.join(sorted(rows)))\n";

static GBytes *
output_of(TestBox *box, TestRun *run)
{
    box_until_ended(box, run);
    if (run->end.code != 0)
        g_test_message("%.*s", (int)run->out[1]->len, (const char *)run->out[1]->data);
    g_assert_cmpint(run->end.code, ==, 0);
    GBytes *bytes = g_bytes_new(run->out[0]->data, run->out[0]->len);
    box_forget(box, run);
    return bytes;
}

static GBytes *
look_at(TestBox *box, const char *folder)
{
    g_autofree char *program = g_strdup_printf(show_tree, folder);

    return output_of(box, box_python(box, 0, program));
}

static void
assert_alike(TestBox *box, const char *one, const char *other)
{
    g_autoptr(GBytes) a = look_at(box, one);
    g_autoptr(GBytes) b = look_at(box, other);
    gsize a_n, b_n;
    const char *a_text = g_bytes_get_data(a, &a_n);
    const char *b_text = g_bytes_get_data(b, &b_n);

    g_assert_cmpuint(a_n, >, 0);
    for (gsize i = 0; i < MIN(a_n, b_n); i++) {
        if (a_text[i] != b_text[i]) {
            g_autofree char *was = g_strndup(a_text + (i > 80 ? i - 80 : 0), MIN(160, a_n - i));
            g_autofree char *is = g_strndup(b_text + (i > 80 ? i - 80 : 0), MIN(160, b_n - i));
            g_error("was ...%s...\nis ...%s...", was, is);
        }
    }
    g_assert_cmpuint(a_n, ==, b_n);
}

static TestRun *
unpack(TestBox *box, const char *line, GBytes *archive)
{
    TestRun *run = box_op_start(box, START_STDIN, line);
    gsize n;
    const void *bytes = g_bytes_get_data(archive, &n);

    box_feed(box, run, bytes, n);
    box_until_ended(box, run);
    return run;
}

static bool
has_program(TestBox *box, const char *name)
{
    g_autofree char *line = g_strdup_printf("command -v %s", name);
    TestRun *run = box_shell(box, box->next_id++, 0, line);

    box_until_ended(box, run);
    bool has = run->end.code == 0;
    box_forget(box, run);
    if (!has)
        g_test_skip("bsdtar is not installed");
    return has;
}

#define PYTHON_TAR(format)                                                                                   \
    "python3 -c \"import sys, tarfile; t = tarfile.open(fileobj=sys.stdout.buffer, mode='w|', format="       \
    "tarfile." format "); t.add('.'); t.close()\""

static const char *const writers[] = {
    "tar -cf - .",
    "tar --format=gnu -cf - .",
    "tar --format=pax -cf - .",
    "tar --format=pax --sparse -cf - .",
    "bsdtar -cf - .",
    "bsdtar --format=gnutar -cf - .",
    "bsdtar --format=pax -cf - *",
    PYTHON_TAR("PAX_FORMAT"),
    PYTHON_TAR("GNU_FORMAT"),
};

static void
test_in(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    g_bytes_unref(output_of(box, box_python(box, 0, make_tree)));
    /* A hole, which bsdtar says without being asked. */
    box_expect(box,
               "cd /tmp/src; truncate -s 3000000 holes; printf abc | dd of=holes bs=1 seek=1000000 "
               "conv=notrunc status=none; printf end | dd of=holes bs=1 seek=2999000 conv=notrunc "
               "status=none; touch -d @77 holes",
               "");
    for (guint i = 0; i < G_N_ELEMENTS(writers); i++) {
        if (g_str_has_prefix(writers[i], "bsdtar") && !has_program(box, "bsdtar"))
            continue;
        g_test_message("%s", writers[i]);
        box_expect(box, "chmod -R u+w /tmp/dst 2>/dev/null; rm -rf /tmp/dst; mkdir /tmp/dst", "");
        g_autofree char *make = g_strdup_printf("cd /tmp/src && %s", writers[i]);
        g_autofree FrameStart *start = box_spec(START_BLOCK, make);
        g_autoptr(GBytes) archive = output_of(box, box_start(box, box->next_id++, start));
        TestRun *run = unpack(box, "tar-in dst 1000 10000000", archive);
        g_test_message("%.*s", (int)run->out[1]->len, (const char *)run->out[1]->data);
        g_assert_cmpint(run->end.code, ==, 0);
        g_assert_cmpuint(run->out[1]->len, ==, 0);
        assert_alike(box, "src", "dst");
        box_expect(box, "cd /tmp/dst; stat -c %h hard1 early2", "3\n2\n");
        /* And once more over itself, but for a folder that closed itself. */
        box_expect(box, "chmod 755 /tmp/dst/shut", "");
        run = unpack(box, "tar-in dst 1000 10000000", archive);
        g_assert_cmpint(run->end.code, ==, 0);
        box_expect(box, "chmod 555 /tmp/dst/shut; touch -d @55555 /tmp/dst/shut", "");
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

static const char *const readers[] = {
    "tar -xpf -",
    "LC_ALL=C.UTF-8 bsdtar -xpf -",
    "python3 -c \"import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode='r|').extractall()\"",
};

static void
test_out(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    g_bytes_unref(output_of(box, box_python(box, 0, make_tree)));
    box_expect(box, "touch -d @9000000000 /tmp/src/future; touch -d @-5 /tmp/src/past", "");
    g_autoptr(GBytes) archive = output_of(box, box_op_start(box, 0, "tar-out src"));
    for (guint i = 0; i <= G_N_ELEMENTS(readers); i++) {
        gsize n;
        const void *bytes = g_bytes_get_data(archive, &n);
        TestRun *run;

        box_expect(box, "chmod -R u+w /tmp/dst 2>/dev/null; rm -rf /tmp/dst; mkdir /tmp/dst", "");
        if (i == G_N_ELEMENTS(readers)) {
            run = unpack(box, "tar-in dst 1000 10000000", archive);
        } else {
            g_autofree char *line = g_strdup_printf("cd /tmp/dst; %s", readers[i]);

            if (strstr(readers[i], "bsdtar") != NULL && !has_program(box, "bsdtar"))
                continue;
            g_test_message("%s", readers[i]);
            run = box_shell(box, box->next_id++, START_STDIN, line);
            box_feed(box, run, bytes, n);
            box_until_ended(box, run);
        }
        g_test_message("%.*s", (int)run->out[1]->len, (const char *)run->out[1]->data);
        g_assert_cmpint(run->end.code, ==, 0);
        assert_alike(box, "src", "dst");
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

/* What an archive cannot hold, or the user not read. */
static void
test_out_leaves(void)
{
    static const struct {
        const char *line;
        int error;
        const char *names, *says;
    } cases[] = {
        {"tar-out t", EACCES, "a/ a/f ",
         "tar-out: closed: cannot be opened\ntar-out: hidden: cannot be opened\n"},
        {"tar-out t/a/f", 0, "f ", ""},
        {"tar-out t/a/", 0, "f ", ""},
        {"tar-out t/fifo", EINVAL, NULL, ""},
        {"tar-out t/no", ENOENT, NULL, ""},
        {"tar-out /proc", EACCES, NULL, ""},
    };

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box,
               "mkdir -p /tmp/t/a /tmp/t/closed; cd /tmp/t; echo x > a/f; touch hidden; mkfifo fifo; "
               "chmod 0 closed hidden; python3 -c 'import socket; socket.socket(1).bind(\"sock\")'",
               "");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestRun *run = box_op(box, cases[i].line);
        g_auto(GStrv) lines = NULL;

        g_test_message("%s", cases[i].line);
        g_assert_cmpint(run->end.code, ==, cases[i].error);
        g_autofree char *says = g_strndup(run->out[1]->len > 0 ? (const char *)run->out[1]->data : "",
                                          run->out[1]->len);
        lines = g_strsplit(says, "\n", -1);
        g_assert_cmpuint(strlen(says), ==, strlen(cases[i].says));
        for (guint j = 0; lines[j] != NULL; j++)
            g_assert_nonnull(strstr(cases[i].says, lines[j]));
        if (cases[i].names == NULL)
            continue;
        TestRun *list = box_shell(box, box->next_id++, START_STDIN, "tar -tf - | sort | tr '\\n' ' '");
        box_feed(box, list, run->out[0]->data, run->out[0]->len);
        box_until_ended(box, list);
        g_autofree char *names = test_run_text(list);
        g_assert_cmpstr(names, ==, cases[i].names);
        g_assert_cmpuint(run->out[0]->len % BLOCK, ==, 0);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

/* A size that an octal field has no room for; nobody reads the zeros. */
static void
test_out_large(void)
{
    static const char list[] =
        "import sys, tarfile\n"
        "try:\n"
        "    for m in tarfile.open(fileobj=sys.stdin.buffer, mode='r|'): print(m.name, m.size, flush=True)\n"
        "except tarfile.ReadError: pass\n";

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, "mkdir /tmp/t; truncate -s 9G /tmp/t/large", "");
    TestRun *run = box_op_start(box, 0, "tar-out t");
    box_until_bytes(box, run, 4 * BLOCK);
    TestRun *reader = box_python(box, START_STDIN, list);
    box_feed(box, reader, run->out[0]->data, 4 * BLOCK);
    box_until_ended(box, reader);
    g_autofree char *text = test_run_text(reader);
    g_assert_cmpstr(text, ==, "large 9663676416\n");
    g_assert_cmpint(box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/tar/in", test_in);
    g_test_add_func("/init/tar/out", test_out);
    g_test_add_func("/init/tar/out-leaves", test_out_leaves);
    g_test_add_func("/init/tar/out-large", test_out_large);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* `watch`: what happens in a tree is told, and what could not be told is said to be lost. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "init-fixture.h"
#include "room.h"
#include "wire/builtin.h"

enum { IDLE_PSS_MAX_KIB = 200, MESS_ROUNDS = 12, TRIES = 1000 };

typedef struct Seen {
    TestRun *run;
    size_t at;
    GHashTable *lines; /* "kind path" */
    guint ready, overflows, events;
    GHashTable *cookies; /* of a MOVED_FROM -> its path */
    const char *wanted;
} Seen;

static const char *const kinds[] = {
    "?", "ready", "overflow", "created", "modified", "removed", "from", "to", "attributes",
};

static void
seen_init(Seen *seen, TestRun *run)
{
    *seen = (Seen){.run = run};
    seen->lines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    seen->cookies = g_hash_table_new_full(NULL, NULL, NULL, g_free);
}

static void
seen_clear(Seen *seen)
{
    g_hash_table_unref(seen->lines);
    g_hash_table_unref(seen->cookies);
}

static void
on_event(Seen *seen, const BuiltinEvent *event, const char *path)
{
    g_assert_cmpuint(event->kind, >=, WATCH_READY);
    g_assert_cmpuint(event->kind, <=, WATCH_ATTRIBUTES);
    g_assert_true(event->kind == WATCH_READY || seen->ready == 1);
    seen->events++;
    seen->ready += event->kind == WATCH_READY;
    seen->overflows += event->kind == WATCH_OVERFLOW;
    if (event->kind == WATCH_MOVED_FROM)
        g_hash_table_insert(seen->cookies, GUINT_TO_POINTER(event->cookie), g_strdup(path));
    if (event->kind == WATCH_MOVED_TO) {
        const char *from = g_hash_table_lookup(seen->cookies, GUINT_TO_POINTER(event->cookie));

        if (from != NULL)
            g_hash_table_add(seen->lines, g_strdup_printf("move %s>%s", from, path));
    }
    g_hash_table_add(seen->lines, g_strdup_printf("%s%s %s", kinds[event->kind],
                                                  (event->flags & WATCH_IS_DIR) != 0 ? "/" : "", path));
}

static void
look(Seen *seen)
{
    BuiltinEvent event;
    const GByteArray *out = seen->run->out[0];

    while (out->len - seen->at >= sizeof event) {
        memcpy(&event, out->data + seen->at, sizeof event);
        if (out->len - seen->at < sizeof event + event.path_bytes)
            break;
        g_autofree char *path = g_strndup((char *)out->data + seen->at + sizeof event, event.path_bytes);
        on_event(seen, &event, path);
        seen->at += sizeof event + event.path_bytes;
    }
}

static bool
has_wanted(TestBox *box, void *data)
{
    Seen *seen = data;

    look(seen);
    if (seen->run->ended)
        g_error("the watch ended with %d before '%s'", seen->run->end.code, seen->wanted);
    return g_hash_table_contains(seen->lines, seen->wanted);
}

static void
await(TestBox *box, Seen *seen, const char *line)
{
    g_autofree char *shown = g_strescape(line, NULL);

    g_test_message("waiting for '%s'", shown);
    seen->wanted = line;
    box_until(box, has_wanted, seen);
}

static TestRun *
watch(TestBox *box, Seen *seen, const char *line)
{
    TestRun *run = box_op_start(box, 0, line);

    seen_init(seen, run);
    await(box, seen, "ready ");
    return run;
}

static void
signal_run(TestBox *box, const TestRun *run, uint32_t number)
{
    box_send(box, (FrameHead){.type = FRAME_SIGNAL, .run = run->id, .value = number}, NULL);
}

static void
end_watch(TestBox *box, Seen *seen)
{
    signal_run(box, seen->run, SIGTERM);
    box_until_ended(box, seen->run);
    g_assert_cmpuint(seen->run->end.reason, ==, REASON_SIGNAL);
    seen_clear(seen);
}

typedef struct Step {
    const char *line, *told;
} Step;

/* Each line is done when the one before was told. */
static const Step steps[] = {
    {"touch f", "created f"},
    {"echo x > f", "modified f"},
    {"chmod 600 f", "attributes f"},
    {"mv f g", "move f>g"},
    {"rm g", "removed g"},
    {"mkdir d", "created/ d"},
    {"echo x > d/f", "created d/f"},
    {"mkdir -p d/a/b/c && echo x > d/a/b/c/f", "created d/a/b/c/f"},
    {"echo y >> d/a/b/c/f", "modified d/a/b/c/f"},
    {"mv d/a e", "move d/a>e"},
    {"echo z > e/b/c/h", "created e/b/c/h"},
    {"rm e/b/c/h", "removed e/b/c/h"},
    {"rm -r e/b", "removed/ e/b"},
    {"mkdir e/b; touch e/b/again", "created e/b/again"},
    {"mkdir -p ../out/deep; touch ../out/deep/x; mv ../out in", "to/ in"},
    {"touch in/deep/y", "created in/deep/y"},
    {"mv in ../away", "from/ in"},
    {"touch ../away/unseen; touch seen", "created seen"},
    {"mkdir in; touch in/new", "created in/new"},
    {"ln -s /usr link; touch link2", "created link"},
    {"chmod 700 .", "attributes/ "},
    {"mv -T e d/e; touch d/e/f", "created d/e/f"},
    {"printf '' > \"$(printf 'a\\377b\\nc')\"", "created a\377b\nc"},
};

static void
test_steps(void)
{
    Seen seen;

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, "mkdir -p /tmp/w/old/er; ln -s w /tmp/wl", "");
    watch(box, &seen, "watch wl 128");
    box_expect(box, "touch /tmp/w/old/er/f", "");
    await(box, &seen, "created old/er/f");
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        g_autofree char *line = g_strdup_printf("cd /tmp/w; %s", steps[i].line);

        g_test_message("%s", steps[i].line);
        box_expect(box, line, "");
        await(box, &seen, steps[i].told);
    }
    g_assert_false(g_hash_table_contains(seen.lines, "created in/unseen"));
    g_assert_false(g_hash_table_contains(seen.lines, "created in/deep/unseen"));
    g_assert_cmpuint(seen.overflows, ==, 0);
    end_watch(box, &seen);
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_depth(void)
{
    Seen seen;

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, "mkdir -p /tmp/w/a/b/c /tmp/w/t/u/v", "");
    watch(box, &seen, "watch w 1");
    /* One folder more: the tree that is moved in does not fit any more. */
    box_expect(box, "cd /tmp/w; touch a/b/no; mkdir a/b/d; touch a/yes; mv t a/t; touch a/t/no; touch last",
               "");
    await(box, &seen, "created last");
    g_assert_true(g_hash_table_contains(seen.lines, "created a/yes"));
    g_assert_false(g_hash_table_contains(seen.lines, "created a/b/no"));
    g_assert_false(g_hash_table_contains(seen.lines, "created a/t/no"));
    g_assert_true(g_hash_table_contains(seen.lines, "move t>a/t"));
    end_watch(box, &seen);
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_ends(void)
{
    static const struct {
        const char *line;
        int error;
    } bad[] = {
        {"watch w", EINVAL},       {"watch w 129", EINVAL},    {"watch w -1", EINVAL},
        {"watch no 1", ENOENT},    {"watch w/f 1", ENOTDIR},   {"watch w/fifo 1", ENOTDIR},
        {"watch /proc 1", EACCES}, {"watch closed 1", EACCES}, {"watch loop 1", ELOOP},
    };
    static const Step ends[] = {
        {"rmdir /tmp/x", "removed/ "},
        {"mv /tmp/x /tmp/y", "from/ "},
    };
    Seen seen;

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, "cd /tmp; mkdir w closed; touch w/f; mkfifo w/fifo; chmod 0 closed; ln -s loop loop", "");
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_test_message("%s", bad[i].line);
        g_assert_cmpint(box_op(box, bad[i].line)->end.code, ==, bad[i].error);
    }
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        box_expect(box, "mkdir /tmp/x", "");
        TestRun *run = watch(box, &seen, "watch x 1");
        box_expect(box, ends[i].line, "");
        box_until_ended(box, run);
        look(&seen);
        g_assert_true(g_hash_table_contains(seen.lines, ends[i].told));
        g_assert_cmpuint(run->end.reason, ==, REASON_EXIT);
        g_assert_cmpint(run->end.code, ==, ENOENT);
        seen_clear(&seen);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

/* Done while the watch is stopped: when it looks, things are elsewhere. */
static const struct {
    const char *before, *told, *line, *folder;
} behind[] = {
    {"mkdir d", "created/ d", "mkdir d/e; mv d m", "m/e"},
    {"mkdir d", "created/ d", "mkdir d/e; mv d m; mkdir -p d/e", "m/e"},
    {"mkdir -p d/e", "created/ d/e", "mkdir d/e/f; mv d m; mv m n", "n/e/f"},
    {"mkdir -p d/e", "created/ d/e", "mv d/e d/f; mkdir d/f/g; mv d m", "m/f/g"},
    {"mkdir d", "created/ d", "mv d m; mkdir d; mv d n; mkdir d", "n"},
    {"mkdir d", "created/ d", "mkdir e; mv e f; mkdir e", "f"},
    {"mkdir -p d/e", "created/ d/e", "mv d/e e; mv d e/d; mkdir e/d/f", "e/d/f"},
    {"mkdir d", "created/ d", "mkdir m; mv d m/d; mkdir m/d/e", "m/d/e"},
    {"mkdir d", "created/ d", "mkdir d/e; mkdir m; mv d m/d", "m/d/e"},
};

static void
test_behind(void)
{
    Seen seen;

    if (!room_possible())
        return;
    for (guint i = 0; i < G_N_ELEMENTS(behind); i++) {
        TestBox *box = box_new();
        g_autofree char *before = g_strdup_printf("cd /tmp/w; %s", behind[i].before);
        g_autofree char *line = g_strdup_printf("cd /tmp/w; %s; touch moved", behind[i].line);
        g_autofree char *probe = g_strdup_printf("cd /tmp/w; touch %s/probe last", behind[i].folder);
        g_autofree char *told = g_strdup_printf("created %s/probe", behind[i].folder);

        box_expect(box, "mkdir /tmp/w", "");
        watch(box, &seen, "watch w 128");
        box_expect(box, before, "");
        await(box, &seen, behind[i].told);
        signal_run(box, seen.run, SIGSTOP);
        box_expect(box, line, "");
        signal_run(box, seen.run, SIGCONT);
        await(box, &seen, "created moved");
        box_expect(box, probe, "");
        await(box, &seen, "created last");
        if (!g_hash_table_contains(seen.lines, told) || seen.overflows != 0)
            g_error("'%s': lost", behind[i].line);
        end_watch(box, &seen);
        g_assert_cmpint(box_free(box), ==, 0);
    }
}

/* Folders with few names come, go, move and change places, in the tree and beside it. */
static const char mess_line[] =
    "cd /tmp/w; exec python3 -c '\n"
    "import ctypes, os, random; random.seed(%u)\n"
    "libc = ctypes.CDLL(None)\n"
    "def some():\n"
    "    names = [random.choice(\"abc\") for i in range(random.randint(1, 3))]\n"
    "    return \"/\".join([random.choice([\".\", \".\", \".\", \"../out\"])] + names)\n"
    "def swap(a, b): libc.renameat2(-100, a.encode(), -100, b.encode(), 2)\n"
    "def make(a, b): os.mkdir(a)\n"
    "for i in range(%u):\n"
    "    try: random.choice([make, make, os.rename, os.rename, swap])(some(), some())\n"
    "    except OSError: pass\n"
    "'";

/* Every folder tells what happens in it, under its name; false: not yet, which was said. */
static bool
all_are_watched(TestBox *box, Seen *seen, guint number)
{
    g_autofree char *line = g_strdup_printf(
        "cd /tmp/w; find . -type d -printf '%%P\\n'; find . -type d -exec touch '{}/probe%u' ';'; "
        "touch mark%u",
        number, number);
    g_autofree char *mark = g_strdup_printf("created mark%u", number);
    TestRun *run = box_shell(box, box->next_id++, 0, line);
    guint overflows = seen->overflows;
    bool all = true;

    box_until_ended(box, run);
    await(box, seen, mark);
    g_autofree char *text = test_run_text(run);
    g_auto(GStrv) folders = g_strsplit(g_strchomp(text), "\n", -1);
    for (guint i = 0; folders[i] != NULL; i++) {
        g_autofree char *told = g_strdup_printf("created %s%sprobe%u", folders[i],
                                                folders[i][0] != '\0' ? "/" : "", number);

        if (g_hash_table_contains(seen->lines, told))
            continue;
        all = false;
        if (seen->overflows == overflows && number % TRIES == 0)
            g_error("'%s' is not watched", folders[i]);
    }
    return all;
}

static void
test_mess(void)
{
    guint seed = (guint)g_test_rand_int_range(0, G_MAXINT32);
    Seen seen;

    if (!room_possible())
        return;
    TestBox *box = box_new();
    box_expect(box, "mkdir /tmp/w /tmp/out", "");
    watch(box, &seen, "watch w 128");
    for (guint round = 0; round < MESS_ROUNDS; round++) {
        g_autofree char *line = g_strdup_printf(mess_line, seed + round, (guint)g_test_rand_int_range(1, 60));
        guint tries = 0;

        signal_run(box, seen.run, SIGSTOP);
        box_expect(box, line, "");
        signal_run(box, seen.run, SIGCONT);
        while (!all_are_watched(box, &seen, round * TRIES + tries))
            g_assert_cmpuint(++tries, <, TRIES);
    }
    end_watch(box, &seen);
    g_assert_cmpint(box_free(box), ==, 0);
}

static const char storm_line[] = "cd /tmp/w; exec python3 -c '\n"
                                 "import os\n"
                                 "name = \"n\" * 60\n"
                                 "for i in range(20000):\n"
                                 "    open(name, \"w\").close()\n"
                                 "    os.unlink(name)\n"
                                 "for i in range(300):\n"
                                 "    os.makedirs(f\"d{i}/e\")\n"
                                 "    for j in range(200):\n"
                                 "        open(f\"d{i}/e/{name}{j}\", \"w\").close()\n"
                                 "    if i % 3 == 0: os.rename(f\"d{i}\", f\"m{i}\")\n"
                                 "'";

/* More than anybody takes: it is said to be lost, the tree is known afterwards, and the watch
 * is as good as before. */
static void
check_storm(TestBox *box, Seen *seen)
{
    TestRun *storm = box_shell(box, box->next_id++, 0, storm_line);

    box_until_ended(box, storm);
    g_assert_cmpint(storm->end.code, ==, 0);
    signal_run(box, seen->run, SIGCONT);
    box->hold_acks = false;
    box_send(
        box,
        (FrameHead){
            .type = FRAME_ACK, .run = seen->run->id, .stream = STREAM_STDOUT, .offset = seen->run->offset[0]},
        NULL);
    seen->run->flying[0] = 0;
    await(box, seen, "overflow ");
    /* A scan may come before it is told of these, or they before the scan. */
    for (guint i = 0; !g_hash_table_contains(seen->lines, "created m297/e/last"); i++) {
        g_autofree char *mark = g_strdup_printf("created mark%u", i);
        g_autofree char *line = g_strdup_printf("cd /tmp/w; rm -f m297/e/last; touch m297/e/last mark%u", i);

        g_assert_cmpuint(i, <, 1000);
        box_expect(box, line, "");
        await(box, seen, mark);
    }
}

static void
test_storm(void)
{
    Seen seen;

    if (!room_possible())
        return;
    /* What is too much for the reader, and what is too much for the kernel's own queue. */
    for (guint stopped = 0; stopped < 2; stopped++) {
        TestBox *box = box_new();

        box_expect(box, "mkdir /tmp/w", "");
        TestRun *run = watch(box, &seen, "watch w 128");
        box->hold_acks = stopped == 0;
        if (stopped == 1)
            signal_run(box, run, SIGSTOP);
        check_storm(box, &seen);
        end_watch(box, &seen);
        g_assert_cmpint(box_free(box), ==, 0);
    }
}

/* A file written in ten thousand pieces is no flood. */
static void
test_coalesced(void)
{
    Seen seen;

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, "mkdir /tmp/w", "");
    watch(box, &seen, "watch w 0");
    box_expect(box, "cd /tmp/w; dd if=/dev/zero of=f bs=1 count=20000 2>/dev/null; touch last", "");
    await(box, &seen, "created last");
    g_assert_true(g_hash_table_contains(seen.lines, "modified f"));
    g_assert_cmpuint(seen.overflows, ==, 0);
    g_assert_cmpuint(seen.events, <, 1000);
    end_watch(box, &seen);
    g_assert_cmpint(box_free(box), ==, 0);
}

/* Of the program itself all boxes share the pages. */
static long
pss_kib(const char *pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%s/smaps_rollup", pid);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    const char *pss = strstr(text, "\nPss_Anon:");
    g_assert_nonnull(pss);
    return strtol(pss + strlen("\nPss_Anon:"), NULL, 10);
}

/* pid 1 and its only child, which is the watch. */
static void
test_idle_memory(void)
{
    Seen seen;

    if (!room_possible())
        return;
    TestBox *box = box_new();

    box_expect(box, "mkdir -p /tmp/w/a/b/c", "");
    watch(box, &seen, "watch w 128");
    box_expect(box, "touch /tmp/w/a/f", "");
    await(box, &seen, "created a/f");
    g_autofree char *pid = g_strdup_printf("%d", box->pid);
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", box->pid, box->pid);
    g_autofree char *children = NULL;
    g_assert_true(g_file_get_contents(path, &children, NULL, NULL));
    long init = pss_kib(pid);
    long own = pss_kib(g_strchomp(children));
    g_test_message("init %ld KiB, watch %ld KiB", init, own);
    g_assert_cmpint(init + own, <, IDLE_PSS_MAX_KIB);
    end_watch(box, &seen);
    g_assert_cmpint(box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/watch/steps", test_steps);
    g_test_add_func("/init/watch/depth", test_depth);
    g_test_add_func("/init/watch/ends", test_ends);
    g_test_add_func("/init/watch/behind", test_behind);
    g_test_add_func("/init/watch/mess", test_mess);
    g_test_add_func("/init/watch/storm", test_storm);
    g_test_add_func("/init/watch/coalesced", test_coalesced);
    /* Measured with the program that boxes get. */
    if (g_getenv("COOP_INIT") != NULL)
        g_test_add_func("/init/watch/idle-memory", test_idle_memory);
    return g_test_run();
}

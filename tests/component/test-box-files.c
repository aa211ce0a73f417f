/* SPDX-License-Identifier: Apache-2.0 */
/* Files through init's built-in operations, over a link alone. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "box/file-op.h"
#include "link-fixture.h"
#include "room.h"

enum { MIB = 1 << 20, BIG = 32 * MIB };

typedef struct Answer {
    bool done;
    int kind; /* -1: no error */
    char *message;
    BoxEntry entry;
    GPtrArray *names;
    guint64 next;
} Answer;

static bool
is_done(void *data)
{
    return ((Answer *)data)->done;
}

static void
take_error(Answer *a, const GError *error)
{
    g_assert_false(a->done);
    a->done = true;
    a->kind = error != NULL ? (int)err_kind(error) : -1;
    g_free(a->message);
    a->message = error != NULL ? g_strdup(error->message) : NULL;
}

static void
on_plain(const GError *error, void *data)
{
    take_error(data, error);
}

static void
on_entry(const BoxEntry *entry, const GError *error, void *data)
{
    Answer *a = data;

    take_error(a, error);
    g_assert_true((entry == NULL) == (error != NULL));
    if (entry == NULL)
        return;
    a->entry = *entry;
    a->entry.name = g_strdup(entry->name);
    a->entry.target = g_strdup(entry->target);
}

static void
on_list(const BoxEntry *entries, size_t n, guint64 next, const GError *error, void *data)
{
    Answer *a = data;

    take_error(a, error);
    for (size_t i = 0; i < n; i++)
        g_ptr_array_add(a->names, g_strdup(entries[i].name));
    a->next = next;
}

static int
wait_kind(Answer *a)
{
    turn_until(is_done, a);
    a->done = false;
    return a->kind;
}

static int
do_it(FilePlace *place, Answer *a, const char *const *argv)
{
    file_do(place, argv, on_plain, a);
    g_assert_false(a->done);
    return wait_kind(a);
}
#define DO(...) do_it(&place, &a, (const char *const[]){__VA_ARGS__, NULL})

static int
put(FilePlace *place, Answer *a, const char *path, const char *text)
{
    file_put(place, path, text, strlen(text), on_plain, a);
    return wait_kind(a);
}

static int
look(FilePlace *place, Answer *a, const char *path)
{
    box_entry_clear(&a->entry);
    file_stat(place, path, on_entry, a);
    return wait_kind(a);
}

static void
answer_clear(Answer *a)
{
    box_entry_clear(&a->entry);
    g_clear_pointer(&a->names, g_ptr_array_unref);
    g_free(a->message);
}

static void
test_small(void)
{
    Answer a = {0};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    FilePlace place = link_box_place(box);

    g_assert_cmpint(put(&place, &a, "one/two/three.txt", "hello"), ==, -1);
    g_assert_cmpint(look(&place, &a, "one/two/three.txt"), ==, -1);
    g_assert_cmpstr(a.entry.name, ==, "three.txt");
    g_assert_cmpuint(a.entry.size, ==, 5);
    g_assert_cmpuint(a.entry.mode, ==, S_IFREG | 0644);
    g_assert_cmpuint(a.entry.uid, ==, 1000);
    g_assert_cmpint(DO("chmod", "one/two/three.txt", "755"), ==, -1);
    g_assert_cmpint(put(&place, &a, "one/two/three.txt", "other"), ==, -1);
    g_assert_cmpint(look(&place, &a, "/tmp/one/two/three.txt"), ==, -1);
    g_assert_cmpuint(a.entry.mode, ==, S_IFREG | 0755);
    g_assert_cmpint(DO("mkdir", "new/folder", "700"), ==, -1);
    g_assert_cmpint(DO("move", "one/two/three.txt", "new/folder/x", "keep"), ==, -1);
    g_assert_cmpint(put(&place, &a, "y", ""), ==, -1);
    g_autoptr(Run) run = link_box_shell(box, 0, "ln -s x /tmp/new/folder/link; echo none");
    turn_until_ended(run);
    g_assert_cmpint(look(&place, &a, "new/folder/link"), ==, -1);
    g_assert_cmpstr(a.entry.target, ==, "x");
    static const struct {
        const char *argv[5];
        int kind;
    } cases[] = {
        {{"move", "y", "new/folder/x", "keep"}, ERR_CONFLICT},
        {{"move", "none", "z", "keep"}, ERR_NOT_FOUND},
        {{"remove", "new", "one"}, ERR_CONFLICT},
        {{"mkdir", "y/below", "755"}, ERR_INVALID},
        {{"mkdir", "/usr/below", "755"}, ERR_DENIED},
        {{"chmod", "/etc/passwd", "777"}, ERR_DENIED},
        {{"chmod", "", "777"}, ERR_NOT_FOUND},
        {{"remove", "new", "tree"}, -1},
        {{"remove", "new", "tree"}, ERR_NOT_FOUND},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(do_it(&place, &a, cases[i].argv), ==, cases[i].kind);
    g_assert_cmpint(look(&place, &a, "none"), ==, ERR_NOT_FOUND);
    g_assert_cmpstr(a.message, ==, "'none': No such file or directory");
    g_assert_cmpint(put(&place, &a, "/usr/x", "x"), ==, ERR_DENIED);
    g_assert_cmpint(put(&place, &a, "/usr/new/x", "x"), ==, ERR_DENIED);
    g_assert_cmpint(put(&place, &a, "/tmp", "x"), ==, ERR_INVALID);
    g_autofree char *huge = g_strnfill(70000, 'x');
    g_assert_cmpint(look(&place, &a, huge), ==, ERR_INVALID);
    answer_clear(&a);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

static void
test_list(void)
{
    Answer a = {.names = g_ptr_array_new_with_free_func(g_free)};
    guint pages = 0;

    if (!room_possible()) {
        answer_clear(&a);
        return;
    }
    LinkBox *box = link_box_new();
    FilePlace place = link_box_place(box);
    g_autoptr(Run) run = link_box_shell(box, 0, "mkdir /tmp/many && cd /tmp/many && touch $(seq 1000)");

    turn_until_ended(run);
    do {
        file_list(&place, "/tmp/many", a.next, 64, on_list, &a);
        g_assert_cmpint(wait_kind(&a), ==, -1);
        pages++;
    } while (a.next != 0);
    g_assert_cmpuint(a.names->len, ==, 1000);
    g_assert_cmpuint(pages, >=, 16);
    file_list(&place, "/tmp/none", 0, 64, on_list, &a);
    g_assert_cmpint(wait_kind(&a), ==, ERR_NOT_FOUND);
    answer_clear(&a);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* ---- streams ---- */

typedef struct Reading {
    Answer a;
    GByteArray *bytes;
    guint entries, pause_every, chunks, cancel_at;
    BoxRead *paused;
} Reading;

static void
read_entry(BoxRead *read, const BoxEntry *entry, void *ctx)
{
    Reading *r = ctx;

    g_assert_cmpuint(r->entries++, ==, 0);
    g_assert_cmpuint(r->bytes->len, ==, 0);
    r->a.entry.size = entry->size;
}

static void
fetch(BoxRead *read, Reading *r)
{
    guint8 bytes[65536];
    gssize n;

    while ((n = box_read_bytes(read, bytes, sizeof bytes)) > 0) {
        g_byte_array_append(r->bytes, bytes, (guint)n);
        r->chunks++;
        if (r->cancel_at > 0 && r->chunks >= r->cancel_at) {
            box_read_cancel(read);
            r->a.done = true;
            return;
        }
        if (r->pause_every > 0 && r->chunks % r->pause_every == 0) {
            r->paused = read;
            return;
        }
    }
    g_assert_cmpint(errno, ==, EAGAIN);
}

static void
read_ready(BoxRead *read, void *ctx)
{
    Reading *r = ctx;

    g_assert_null(r->paused);
    fetch(read, r);
}

static void
read_end(BoxRead *read, const GError *error, void *ctx)
{
    take_error(&((Reading *)ctx)->a, error);
}

static const BoxReadEvents read_events = {read_entry, read_ready, read_end};

static bool
is_read(void *data)
{
    Reading *r = data;
    BoxRead *paused;

    while ((paused = g_steal_pointer(&r->paused)) != NULL) {
        turn_some(3);
        fetch(paused, r);
    }
    return r->a.done;
}

static int
read_it(FilePlace *place, Reading *r, const char *const *argv, bool has_entry)
{
    g_autoptr(GError) error = NULL;

    g_clear_pointer(&r->bytes, g_byte_array_unref);
    r->bytes = g_byte_array_new();
    r->entries = r->chunks = 0;
    g_assert_nonnull(file_read(place, argv, has_entry, &read_events, r, &error));
    turn_until(is_read, r);
    r->a.done = false;
    return r->a.kind;
}

typedef struct Writing {
    Answer a;
    const guint8 *bytes;
    size_t n, given;
} Writing;

static void
write_room(BoxWrite *write, void *ctx)
{
    Writing *w = ctx;

    while (w->given < w->n) {
        size_t step = MIN(w->n - w->given, (size_t)65536);
        size_t taken = box_write_data(write, w->bytes + w->given, step);

        w->given += taken;
        if (taken < step)
            return;
    }
    box_write_end(write);
}

static void
write_end(BoxWrite *write, const GError *error, void *ctx)
{
    take_error(&((Writing *)ctx)->a, error);
}

static const BoxWriteEvents write_events = {write_room, write_end};

static int
write_it(FilePlace *place, Writing *w, const char *const *argv)
{
    bool piped = strcmp(argv[0], "tar-in") == 0 || strcmp(argv[3], "-") != 0;
    BoxWrite *write = file_write(place, argv, piped, &write_events, w, NULL);

    w->given = 0;
    g_assert_nonnull(write);
    write_room(write, w);
    turn_until(is_done, &w->a);
    w->a.done = false;
    return w->a.kind;
}

#define READ(...) read_it(&place, &r, (const char *const[]){__VA_ARGS__, NULL}, true)
#define WRITE(...) write_it(&place, &w, (const char *const[]){__VA_ARGS__, NULL})

static void
test_streams(void)
{
    g_autofree guint8 *big = g_malloc(BIG);
    Reading r = {.pause_every = 3};
    Writing w = {.bytes = big, .n = BIG};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    FilePlace place = link_box_place(box);
    g_autofree char *length = g_strdup_printf("%d", BIG);
    g_autofree char *longer = g_strdup_printf("%d", BIG + 1);

    for (size_t i = 0; i < BIG; i++)
        big[i] = (guint8)(i * 2654435761u >> 11);
    g_assert_cmpint(WRITE("write", "big", "640", length), ==, -1);
    g_assert_cmpint(READ("read", "big", "0", "-"), ==, -1);
    g_assert_cmpuint(r.a.entry.size, ==, BIG);
    g_assert_cmpuint(r.bytes->len, ==, BIG);
    g_assert_cmpint(memcmp(r.bytes->data, big, BIG), ==, 0);
    g_assert_cmpint(READ("read", "big", "1000000", "17"), ==, -1);
    g_assert_cmpuint(r.bytes->len, ==, 17);
    g_assert_cmpint(memcmp(r.bytes->data, big + 1000000, 17), ==, 0);
    g_assert_cmpint(READ("read", "big", "0", "0"), ==, -1);
    g_assert_cmpuint(r.entries, ==, 1);
    g_assert_cmpint(READ("read", "none", "0", "-"), ==, ERR_NOT_FOUND);
    g_assert_cmpint(READ("read", "/tmp", "0", "-"), ==, ERR_INVALID);
    g_assert_cmpint(READ("read", "/proc/1/environ", "0", "-"), ==, ERR_DENIED);
    /* Less than was promised changes nothing; the length may be left open. */
    w.n = 1000;
    g_assert_cmpint(WRITE("write", "big", "-", longer), ==, ERR_INVALID);
    g_assert_cmpint(READ("read", "big", "0", "-"), ==, -1);
    g_assert_cmpuint(r.bytes->len, ==, BIG);
    g_assert_cmpint(WRITE("write", "big", "-", "-"), ==, -1);
    g_assert_cmpint(READ("read", "big", "0", "-"), ==, -1);
    g_assert_cmpuint(r.bytes->len, ==, 1000);
    w.n = BIG;
    g_assert_cmpint(WRITE("write", "/usr/big", "-", length), ==, ERR_DENIED);
    g_clear_pointer(&r.bytes, g_byte_array_unref);
    answer_clear(&r.a);
    answer_clear(&w.a);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

static void
test_cancel(void)
{
    g_autofree guint8 *big = g_malloc0(MIB);
    Reading r = {.cancel_at = 2};
    Writing w = {0};
    Answer a = {.names = g_ptr_array_new_with_free_func(g_free)};

    if (!room_possible()) {
        answer_clear(&a);
        return;
    }
    LinkBox *box = link_box_new();
    FilePlace place = link_box_place(box);
    BoxWrite *write = file_write(&place, (const char *const[]){"write", "new", "-", "-", NULL}, false,
                                 &write_events, &w, NULL);

    g_assert_cmpuint(box_write_data(write, big, 100000), ==, 100000);
    turn_some(20);
    box_write_cancel(write);
    g_autoptr(Run) run = link_box_shell(box, 0, "head -c 50000000 /dev/zero >/tmp/zero");
    turn_until_ended(run);
    (void)READ("read", "zero", "0", "-");
    g_assert_cmpuint(r.chunks, ==, 2);
    /* Cancelled before it was ever heard of. */
    box_read_cancel(file_read(&place, (const char *const[]){"read", "zero", "0", "-", NULL}, true,
                              &read_events, &r, NULL));
    g_assert_cmpint(put(&place, &a, "old", "x"), ==, -1);
    file_list(&place, "/tmp", 0, 100, on_list, &a);
    g_assert_cmpint(wait_kind(&a), ==, -1);
    g_assert_cmpuint(a.names->len, ==, 2);
    g_assert_null(box->error);
    g_clear_pointer(&r.bytes, g_byte_array_unref);
    answer_clear(&a);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* A server that is killed in the middle leaves the old file, whatever was in the pipe. */
static void
test_killed_server(void)
{
    g_autofree guint8 *big = g_malloc0(MIB);
    Writing w = {0};
    Answer a = {.names = g_ptr_array_new_with_free_func(g_free)};

    if (!room_possible()) {
        answer_clear(&a);
        return;
    }
    LinkBox *box = link_box_new();
    FilePlace place = link_box_place(box);

    g_assert_cmpint(put(&place, &a, "f", "old"), ==, -1);
    /* However fast it goes, it never gets all of it. */
    g_autofree char *promised = g_strdup_printf("%d", BIG);
    BoxWrite *write = file_write(&place, (const char *const[]){"write", "f", "-", promised, NULL}, true,
                                 &write_events, &w, NULL);
    for (int i = 0; i < 20; i++) {
        (void)!box_write_data(write, big, MIB);
        turn_some(5);
    }
    link_box_restart(box, NULL, 0);
    box_write_cancel(write);
    place = link_box_place(box);
    g_assert_cmpint(look(&place, &a, "f"), ==, -1);
    g_assert_cmpuint(a.entry.size, ==, 3);
    /* The writer removes what it began when it has seen the end of its pipe. */
    do {
        g_ptr_array_set_size(a.names, 0);
        file_list(&place, "/tmp", 0, 100, on_list, &a);
        g_assert_cmpint(wait_kind(&a), ==, -1);
    } while (a.names->len > 1);
    g_assert_cmpuint(a.names->len, ==, 1);
    answer_clear(&a);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* Others are served while one does not fetch, and the end of the box is the end of both ways. */
static void
test_killed_init(void)
{
    g_autofree guint8 *big = g_malloc0(MIB);
    Reading r = {.pause_every = 1, .bytes = g_byte_array_new()};
    Writing w = {0};
    Answer a = {0};

    if (!room_possible()) {
        g_byte_array_unref(r.bytes);
        return;
    }
    LinkBox *box = link_box_new();
    FilePlace place = link_box_place(box);
    g_autoptr(Run) run = link_box_shell(box, 0, "head -c 50000000 /dev/zero >/tmp/zero");

    turn_until_ended(run);
    (void)file_read(&place, (const char *const[]){"read", "zero", "0", "-", NULL}, true, &read_events, &r,
                    NULL);
    BoxWrite *write = file_write(&place, (const char *const[]){"write", "f", "-", "9000000", NULL}, true,
                                 &write_events, &w, NULL);
    g_assert_cmpuint(box_write_data(write, big, 1000), ==, 1000);
    turn_until_count(&r.chunks, 1);
    for (int i = 0; i < 10; i++)
        g_assert_cmpint(look(&place, &a, "zero"), ==, -1);
    g_assert_cmpuint(r.chunks, ==, 1);
    g_assert_cmpint(kill(box->pid, SIGKILL), ==, 0);
    turn_until(is_done, &w.a);
    g_assert_cmpint(w.a.kind, ==, ERR_UNAVAILABLE);
    g_assert_false(r.a.done);
    turn_until(is_read, &r);
    g_assert_cmpint(r.a.kind, ==, ERR_UNAVAILABLE);
    g_assert_cmpuint(r.bytes->len, <, 50000000);
    g_byte_array_unref(r.bytes);
    answer_clear(&a);
    answer_clear(&r.a);
    answer_clear(&w.a);
    g_assert_cmpint(link_box_free(box), ==, -SIGKILL);
}

static void
test_tree(void)
{
    Reading r = {.pause_every = 5};
    Writing w = {0};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    FilePlace place = link_box_place(box);
    g_autoptr(Run)
        made = link_box_shell(box, 0,
                              "mkdir -p /tmp/a/b/c; seq 100000 >/tmp/a/b/n; ln -s n /tmp/a/b/link; "
                              "chmod 750 /tmp/a/b/c; mkdir /tmp/copy");

    turn_until_ended(made);
    g_assert_cmpint(read_it(&place, &r, (const char *const[]){"tar-out", "/tmp/a", NULL}, false), ==, -1);
    g_assert_cmpuint(r.entries, ==, 0);
    w.bytes = r.bytes->data;
    w.n = r.bytes->len;
    g_assert_cmpint(WRITE("tar-in", "/tmp/copy", "1000", "100000000"), ==, -1);
    g_autoptr(Run) same = link_box_shell(box, 0, "diff -r /tmp/a /tmp/copy && stat -c %a /tmp/copy/b/c");
    turn_until_ended(same);
    g_autofree char *text = run_text(same, 0);
    g_assert_cmpstr(text, ==, "750\n");
    /* What it says about an entry is in the message. */
    g_assert_cmpint(WRITE("tar-in", "/tmp/copy", "2", "100000000"), ==, ERR_LIMIT);
    g_assert_nonnull(strstr(w.a.message, "tar-in: "));
    w.n = 1000;
    g_assert_cmpint(WRITE("tar-in", "/tmp/copy", "1000", "100000000"), ==, ERR_INVALID);
    g_clear_pointer(&r.bytes, g_byte_array_unref);
    answer_clear(&r.a);
    answer_clear(&w.a);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* What the box says of an entry is not believed. */
static void
test_entries(void)
{
    static const struct {
        BuiltinEntry head;
        const char *rest;
        size_t n;
        gssize want;
    } cases[] = {
        {{.size = 5, .name_bytes = 4}, "name", 4, 36},
        {{.size = 5, .name_bytes = 4, .target_bytes = 2}, "nameto", 6, 38},
        {{.size = 5, .name_bytes = 4, .target_bytes = 2}, "nameto and more", 15, 38},
        {{.size = 5, .name_bytes = 4}, "nam", 3, 0},
        {{.size = 5, .name_bytes = 4}, "na\0e", 4, -1},
        {{.size = 5, .name_bytes = 1, .target_bytes = 2}, "nt", 3, -1},
        {{.size = 5, .name_bytes = 5000}, "n", 1, -1},
        {{.size = 5, .name_bytes = 1, .target_bytes = 65535}, "n", 1, -1},
        {{.size = G_MAXUINT64, .name_bytes = 1}, "n", 1, -1},
        {{.size = 5}, "", 0, 32},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        size_t n = sizeof cases[i].head + cases[i].n;
        g_autofree guint8 *bytes = g_malloc(n);
        BoxEntry entry = {0};

        memcpy(bytes, &cases[i].head, sizeof cases[i].head);
        memcpy(bytes + sizeof cases[i].head, cases[i].rest, cases[i].n);
        g_assert_cmpint(file_entry_parse(bytes, n, &entry), ==, cases[i].want);
        for (size_t k = 0; cases[i].want > 0 && k < (size_t)cases[i].want; k++) {
            BoxEntry half = {0};

            g_assert_cmpint(file_entry_parse(bytes, k, &half), ==, 0);
        }
        box_entry_clear(&entry);
    }
}

int
main(int argc, char **argv)
{
    /* As the server does: an operation may end before all was given to it. */
    (void)signal(SIGPIPE, SIG_IGN);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/box/files/small", test_small);
    g_test_add_func("/box/files/list", test_list);
    g_test_add_func("/box/files/streams", test_streams);
    g_test_add_func("/box/files/cancel", test_cancel);
    g_test_add_func("/box/files/killed-server", test_killed_server);
    g_test_add_func("/box/files/killed-init", test_killed_init);
    g_test_add_func("/box/files/tree", test_tree);
    g_test_add_func("/box/files/entries", test_entries);
    return g_test_run();
}

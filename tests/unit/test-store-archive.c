/* SPDX-License-Identifier: Apache-2.0 */
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "store/archive.h"

enum { DB_LEN = 150000, ROOM = 1 << 30 };

typedef struct Bench {
    char *dir, *db, *out;
} Bench;

static void
bench_set_up(Bench *b, gconstpointer unused)
{
    g_autofree guint8 *content = g_malloc(DB_LEN);

    b->dir = g_dir_make_tmp("coop-archive-XXXXXX", NULL);
    b->db = g_build_filename(b->dir, "coop.db", NULL);
    b->out = g_build_filename(b->dir, "out.db", NULL);
    /* Half of it does not compress. */
    randombytes_buf(content, DB_LEN / 2);
    memset(content + DB_LEN / 2, 'x', DB_LEN - DB_LEN / 2);
    g_assert_true(g_file_set_contents(b->db, (char *)content, DB_LEN, NULL));
}

static void
bench_tear_down(Bench *b, gconstpointer unused)
{
    (void)g_unlink(b->out);
    g_assert_cmpint(g_unlink(b->db), ==, 0);
    g_assert_cmpint(g_rmdir(b->dir), ==, 0); /* nothing else was left there */
    g_free(b->dir);
    g_free(b->db);
    g_free(b->out);
}

static int
memory_file(const void *bytes, size_t n)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    g_assert_true(io_write_all(fd, bytes, n));
    g_assert_cmpint(lseek(fd, 0, SEEK_SET), ==, 0);
    return fd;
}

static GBytes *
read_file(int fd)
{
    struct stat st;

    g_assert_cmpint(fstat(fd, &st), ==, 0);
    guint8 *bytes = g_malloc((size_t)st.st_size + 1);
    g_assert_cmpint(pread(fd, bytes, (size_t)st.st_size, 0), ==, st.st_size);
    return g_bytes_new_take(bytes, (size_t)st.st_size);
}

static GBytes *
pack(const Bench *b)
{
    autofd fd = memfd_create("archive", MFD_CLOEXEC);
    g_autoptr(GError) error = NULL;
    ArchiveInfo info;

    archive_pack(&(ArchiveSpec){.db_path = b->db, .schema = 7}, fd, &info, &error);
    g_assert_no_error(error);
    g_assert_cmpint(info.bytes, ==, DB_LEN);
    return read_file(fd);
}

/* ERR_KIND_MAX: it was taken. */
static ErrKind
unpack(const Bench *b, const void *bytes, size_t n, guint64 max, ArchiveInfo *ret_info, char **ret_message)
{
    autofd fd = memory_file(bytes, n);
    g_autoptr(GError) error = NULL;

    bool ok = archive_unpack(fd, b->out, max, ret_info, &error);
    g_assert_true(ok == (error == NULL));
    g_assert_true(ok == (access(b->out, F_OK) == 0));
    *ret_message = error != NULL ? g_strdup(error->message) : NULL;
    return error != NULL ? err_kind(error) : ERR_KIND_MAX;
}

/* The same of archive_check(), which knows no bounds. */
static ErrKind
check(const void *bytes, size_t n)
{
    autofd fd = memory_file(bytes, n);
    g_autoptr(GError) error = NULL;

    bool ok = archive_check(fd, &error);
    g_assert_true(ok == (error == NULL));
    return ok ? ERR_KIND_MAX : err_kind(error);
}

static void
assert_same_content(const Bench *b)
{
    g_autofree char *want = NULL, *have = NULL;
    gsize want_len, have_len;

    g_assert_true(g_file_get_contents(b->db, &want, &want_len, NULL));
    g_assert_true(g_file_get_contents(b->out, &have, &have_len, NULL));
    g_assert_cmpmem(want, want_len, have, have_len);
}

static void
test_round_trip(Bench *b, gconstpointer unused)
{
    g_autoptr(GBytes) packed = pack(b);
    g_autofree char *message = NULL;
    ArchiveInfo info = {0};
    struct stat st;
    gsize n;
    const void *bytes = g_bytes_get_data(packed, &n);

    g_assert_cmpint(check(bytes, n), ==, ERR_KIND_MAX);
    g_assert_cmpint(unpack(b, bytes, n, DB_LEN, &info, &message), ==, ERR_KIND_MAX);
    assert_same_content(b);
    g_assert_cmpint(info.schema, ==, 7);
    g_assert_cmpint(info.bytes, ==, DB_LEN);
    g_assert_cmpint(info.version[0], !=, '\0');
    g_assert_cmpint(strlen(info.created_at), ==, CLOCK_ISO_LEN);
    g_assert_cmpint(stat(b->out, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 0777, ==, 0600);
    g_assert_cmpint(n, <, DB_LEN * 3 / 4);
}

static void
test_existing_file_stays(Bench *b, gconstpointer unused)
{
    g_autoptr(GBytes) packed = pack(b);
    g_autoptr(GError) error = NULL;
    g_autofree char *have = NULL;
    ArchiveInfo info;
    gsize n;
    const void *bytes = g_bytes_get_data(packed, &n);
    autofd fd = memory_file(bytes, n);

    g_assert_true(g_file_set_contents(b->out, "mine", -1, NULL));
    g_assert_false(archive_unpack(fd, b->out, ROOM, &info, &error));
    g_assert_true(g_file_get_contents(b->out, &have, NULL, NULL));
    g_assert_cmpstr(have, ==, "mine");
}

static void
test_limit(Bench *b, gconstpointer unused)
{
    g_autoptr(GBytes) packed = pack(b);
    g_autofree char *message = NULL;
    ArchiveInfo info;
    gsize n;
    const void *bytes = g_bytes_get_data(packed, &n);

    g_assert_cmpint(unpack(b, bytes, n, DB_LEN - 1, &info, &message), ==, ERR_LIMIT);
}

static void
test_cancel(Bench *b, gconstpointer unused)
{
    autofd fd = memfd_create("archive", MFD_CLOEXEC);
    g_autoptr(GError) error = NULL;
    gint cancelled = 1;
    ArchiveInfo info;

    g_assert_false(
        archive_pack(&(ArchiveSpec){.db_path = b->db, .cancelled = &cancelled}, fd, &info, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_CANCELLED);
}

static void
test_full_disk(Bench *b, gconstpointer unused)
{
    autofd fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    g_autoptr(GError) error = NULL;
    ArchiveInfo info;

    g_assert_false(archive_pack(&(ArchiveSpec){.db_path = b->db}, fd, &info, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_FULL);
}

/* A backup that was cut anywhere is refused. */
static void
test_cut(Bench *b, gconstpointer unused)
{
    g_autoptr(GBytes) packed = pack(b);
    gsize n;
    const void *bytes = g_bytes_get_data(packed, &n);

    for (gsize len = 0; len < n; len += len < 256 || n - len < 64 ? 1 : 4999) {
        g_autofree char *message = NULL;
        ArchiveInfo info;

        g_assert_cmpint(unpack(b, bytes, len, ROOM, &info, &message), ==, ERR_INVALID);
        g_assert_cmpint(check(bytes, len), ==, ERR_INVALID);
    }
}

/* One flipped bit is refused, or lies where it changes nothing that is restored. */
static void
test_flipped(Bench *b, gconstpointer unused)
{
    g_autoptr(GBytes) packed = pack(b);
    guint refused = 0, taken = 0;
    gsize n;
    const guint8 *bytes = g_bytes_get_data(packed, &n);

    for (gsize i = 0; i < n; i += i < 256 ? 1 : 2999) {
        g_autofree guint8 *copy = g_memdup2(bytes, n);
        g_autofree char *message = NULL;
        ArchiveInfo info;

        copy[i] ^= 0x10;
        if (unpack(b, copy, n, ROOM, &info, &message) != ERR_KIND_MAX) {
            refused++;
            continue;
        }
        assert_same_content(b);
        g_assert_cmpint(g_unlink(b->out), ==, 0);
        taken++;
    }
    g_assert_cmpint(refused, >, 4 * taken);
}

/* ---- made by others ---- */

typedef struct Member {
    const char *name; /* NULL: no more */
    const char *text; /* NULL: the right manifest, or the database for a name that ends in .db */
    int type;         /* 0: a regular file */
    const char *link;
    gint64 claims; /* its size, where that is not its length */
    bool sparse;
} Member;

enum { MEMBERS_MAX = 3, SMALL_DB_LEN = 11 };
static const char small_db[] = "not much db";

typedef struct Made {
    const char *why;
    Member members[MEMBERS_MAX + 1];
    const char *manifest; /* NULL: the right one */
    ErrKind kind;
    const char *message; /* a part of it */
} Made;

static char *
right_manifest(void)
{
    guint8 hash[32];
    char hex[65];

    crypto_generichash(hash, sizeof hash, (const guint8 *)small_db, SMALL_DB_LEN, NULL, 0);
    sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
    return g_strdup_printf(
        "{\"format\":1,\"version\":\"1\",\"schema\":1,\"created_at\":\"2026-01-31T12:00:00.000000Z\","
        "\"members\":[{\"name\":\"coop.db\",\"size\":%d,\"blake2b\":\"%s\"}]}",
        SMALL_DB_LEN, hex);
}

/* `manifest` with the first `old` replaced. */
static char *
changed(const char *old, const char *text)
{
    g_autofree char *right = right_manifest();
    GString *s = g_string_new(right);

    g_assert_cmpint(g_string_replace(s, old, text, 1), ==, 1);
    return g_string_free(s, FALSE);
}

static void
put_member(struct archive *a, const Member *m, const char *manifest)
{
    struct archive_entry *e = archive_entry_new();
    const char *text = m->text != NULL ? m->text : g_str_has_suffix(m->name, ".db") ? small_db : manifest;

    archive_entry_set_pathname(e, m->name);
    archive_entry_set_filetype(e, m->type != 0 ? (unsigned)m->type : AE_IFREG);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_size(e, m->claims != 0 ? m->claims : (la_int64_t)strlen(text));
    if (m->type == AE_IFLNK)
        archive_entry_set_symlink(e, m->link);
    else if (m->link != NULL)
        archive_entry_set_hardlink(e, m->link);
    if (m->sparse)
        archive_entry_sparse_add_entry(e, m->claims - 1, 1);
    g_assert_cmpint(archive_write_header(a, e), ==, ARCHIVE_OK);
    if (m->type == 0 && m->link == NULL)
        (void)archive_write_data(a, text, strlen(text));
    archive_entry_free(e);
    if (m->claims > ROOM)
        archive_write_fail(a); /* else it fills it up with zeros */
}

typedef enum Wrap { WRAP_NONE, WRAP_GZIP, WRAP_TWICE, WRAP_XZ, WRAP_CPIO } Wrap;

static GBytes *
make(const Member *members, const char *manifest, Wrap wrap)
{
    g_autofree char *right = right_manifest();
    g_autofree char *room = g_malloc(ROOM / 64);
    struct archive *a = archive_write_new();
    size_t used = 0;

    if (wrap == WRAP_CPIO)
        archive_write_set_format_cpio(a);
    else
        archive_write_set_format_pax(a);
    for (int i = wrap == WRAP_TWICE ? 2 : wrap != WRAP_NONE; i > 0; i--)
        g_assert_cmpint(wrap == WRAP_XZ ? archive_write_add_filter_xz(a) : archive_write_add_filter_gzip(a),
                        ==, ARCHIVE_OK);
    g_assert_cmpint(archive_write_open_memory(a, room, ROOM / 64, &used), ==, ARCHIVE_OK);
    for (const Member *m = members; m->name != NULL; m++)
        put_member(a, m, manifest != NULL ? manifest : right);
    archive_write_close(a);
    archive_write_free(a);
    return g_bytes_new(room, used);
}

#define TWO                                                                                                  \
    {                                                                                                        \
        {"manifest.json"},                                                                                   \
        {                                                                                                    \
            "coop.db"                                                                                        \
        }                                                                                                    \
    }

static void
check_made(const Bench *b, const Made *c, Wrap wrap)
{
    g_autoptr(GBytes) made = make(c->members, c->manifest, wrap);
    g_autofree char *message = NULL;
    ArchiveInfo info;
    gsize n;
    const void *bytes = g_bytes_get_data(made, &n);

    g_test_message("%s", c->why);
    ErrKind kind = unpack(b, bytes, n, G_MAXUINT64, &info, &message);
    g_test_message("%s", message);
    g_assert_cmpint(kind, ==, c->kind);
    g_assert_cmpint(check(bytes, n), ==, kind == ERR_FULL ? ERR_INVALID : kind);
    if (c->message != NULL && strstr(message, c->message) == NULL)
        g_error("'%s' is not in '%s'", c->message, message);
    if (kind == ERR_KIND_MAX)
        g_assert_cmpint(g_unlink(b->out), ==, 0);
}

#define WRONG_MEMBER "where the file coop.db belongs"

static void
test_members(Bench *b, gconstpointer unused)
{
    static const Made cases[] = {
        {"right", TWO, .kind = ERR_KIND_MAX},
        {"no database", {{"manifest.json"}}, .message = "no member coop.db"},
        {"no manifest", {{"coop.db"}}, .message = "'coop.db' where the file manifest.json belongs"},
        {"wrong order", {{"coop.db"}, {"manifest.json"}}},
        {"two manifests", {{"manifest.json"}, {"manifest.json"}, {"coop.db"}}},
        {"two databases", {{"manifest.json"}, {"coop.db"}, {"coop.db"}}, .message = "a member too many"},
        {"one more", {{"manifest.json"}, {"coop.db"}, {"key", "e2b_"}}, .message = "a member too many"},
        {"a path", {{"manifest.json"}, {"./coop.db"}}, .message = WRONG_MEMBER},
        {"a path up", {{"manifest.json"}, {"../coop.db"}}, .message = WRONG_MEMBER},
        {"an absolute path", {{"manifest.json"}, {"/tmp/coop.db"}}, .message = WRONG_MEMBER},
        {"a link",
         {{"manifest.json"}, {"coop.db", .type = AE_IFLNK, .link = "/etc/passwd"}},
         .message = WRONG_MEMBER},
        {"a hard link", {{"manifest.json"}, {"coop.db", .link = "manifest.json"}}, .message = WRONG_MEMBER},
        {"a folder", {{"manifest.json"}, {"coop.db", "", AE_IFDIR}}, .message = WRONG_MEMBER},
        {"a device", {{"manifest.json"}, {"coop.db", "", AE_IFBLK}}, .message = WRONG_MEMBER},
        {"a manifest that links", {{"manifest.json", .type = AE_IFLNK, .link = "/etc/passwd"}, {"coop.db"}}},
        {"another content", {{"manifest.json"}, {"coop.db", "not much bd"}}, .message = "is damaged"},
        {"another size", {{"manifest.json"}, {"coop.db", "not much"}}, .message = "not the size"},
        {"holes",
         {{"manifest.json"}, {"coop.db", "b", .claims = SMALL_DB_LEN, .sparse = true}},
         .message = WRONG_MEMBER},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        check_made(b, &cases[i], WRAP_GZIP);
}

static void
test_manifests(Bench *b, gconstpointer unused)
{
    static const struct {
        const char *old, *text, *message;
    } cases[] = {
        {"\"format\":1", "\"format\":2", "its format is 2, this program reads 1"},
        {"\"format\":1,", "", "no format number"},
        {"\"format\":1", "\"format\":\"1\"", "no format number"},
        {"\"schema\":1", "\"schema\":-1", "'schema'"},
        {"\"schema\":1,", "", "'schema' is missing"},
        {"\"version\"", "\"wersion\"", "unknown field 'wersion'"},
        {"coop.db", "../coop.db", "names the member '../coop.db'"},
        {"\"size\":11", "\"size\":-11", "'size'"},
        {"\"size\":11", "\"size\":10", "not the size"},
        {"\"size\":11", "\"size\":1e1", "'size'"},
        {"\"blake2b\":\"", "\"blake2b\":\"0", "'blake2b'"},
        {"\"members\":[{", "\"members\":[],\"x\":[{", "unknown field 'x'"},
        {"}]}", "}, {}]}", "'members'"},
        {"}]}", "}]} {}", "JSON"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *manifest = changed(cases[i].old, cases[i].text);
        Made made = {cases[i].text, TWO, .manifest = manifest, .message = cases[i].message};

        check_made(b, &made, WRAP_GZIP);
    }
    g_autofree char *padding = g_strnfill(70000, ' ');
    g_autofree char *deep = g_strnfill(60000, '[');
    check_made(b, &(Made){"long", TWO, .manifest = padding, .message = "manifest is too long"}, WRAP_GZIP);
    check_made(b, &(Made){"deep", TWO, .manifest = deep, .message = "nested"}, WRAP_GZIP);
    check_made(b, &(Made){"empty", TWO, .manifest = "", .message = "JSON"}, WRAP_GZIP);
    check_made(b,
               &(Made){"no members", TWO, .message = "no member",
                       .manifest =
                           "{\"format\":1,\"version\":\"\",\"schema\":1,\"created_at\":\"\",\"members\":[]}"},
               WRAP_GZIP);
}

/* A few bytes that promise many. */
static void
test_bomb(Bench *b, gconstpointer unused)
{
    g_autofree char *manifest = changed("\"size\":11", "\"size\":1000000000000000");
    Made made = {"bomb",
                 {{"manifest.json"}, {"coop.db", .claims = G_GINT64_CONSTANT(1000000000000000)}},
                 .manifest = manifest,
                 .kind = ERR_FULL,
                 .message = "bytes, and"};

    check_made(b, &made, WRAP_GZIP);
}

static void
test_wrapped(Bench *b, gconstpointer unused)
{
    static const struct {
        const char *why;
        Wrap wrap;
    } cases[] = {{"a plain tar", WRAP_NONE}, {"twice", WRAP_TWICE}, {"xz", WRAP_XZ}, {"cpio", WRAP_CPIO}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        check_made(b, &(Made){cases[i].why, TWO, .message = "no backup"}, cases[i].wrap);
}

static void
test_no_archive(Bench *b, gconstpointer unused)
{
    static const char *const texts[] = {"", "x", "SQLite format 3", "\x1f\x8b\x08",
                                        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autofree char *message = NULL;
        ArchiveInfo info;

        g_assert_cmpint(unpack(b, texts[i], strlen(texts[i]), ROOM, &info, &message), ==, ERR_INVALID);
    }
}

#define CASE(name, func) g_test_add("/archive/" name, Bench, NULL, bench_set_up, func, bench_tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(sodium_init(), >=, 0);
    CASE("round-trip", test_round_trip);
    CASE("existing-file-stays", test_existing_file_stays);
    CASE("limit", test_limit);
    CASE("cancel", test_cancel);
    CASE("full-disk", test_full_disk);
    CASE("cut", test_cut);
    CASE("flipped", test_flipped);
    CASE("members", test_members);
    CASE("manifests", test_manifests);
    CASE("bomb", test_bomb);
    CASE("wrapped", test_wrapped);
    CASE("no-archive", test_no_archive);
    return g_test_run();
}

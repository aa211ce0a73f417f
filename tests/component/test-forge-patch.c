/* SPDX-License-Identifier: Apache-2.0 */
#include <archive.h>
#include <archive_entry.h>
#include <string.h>

#include "base/err.h"
#include "forge/contents.h"
#include "forge/patch.h"
#include "support/git-story.h"

static bool
take_all(const guint8 *bytes, size_t n, void *ctx)
{
    g_byte_array_append(ctx, bytes, (guint)n);
    return true;
}

static bool
take_none(const guint8 *bytes, size_t n, void *ctx)
{
    return false;
}

static GitWorld *
world_of_all(void)
{
    GitWorld *world = git_world_new();
    g_autoptr(GitStory) story = git_story_new();
    g_autofree char *part = g_strnfill(120, 'p'), *name = g_strnfill(130, 'n');
    g_autofree char *deep = g_strdup_printf("%s/%s", part, name);
    g_autofree char *target = g_strnfill(300, 't');
    g_autofree char *large = g_strnfill(200000, 'L');

    git_story_commit(story, "main", NULL, "feat: x");
    git_story_file(story, ".gitattributes",
                   "secret export-ignore\nid export-subst ident\ncrlf text eol=crlf\n*.x filter=evil\n");
    git_story_file(story, "secret", "kept\n");
    git_story_file(story, "id", "$Format:%H$ $Id$\n");
    git_story_file(story, "crlf", "a\nb\n");
    git_story_file(story, "a.x", "as it is\n");
    git_story_blob(story, "100755", "bin/run", "#!/bin/sh\n", 10);
    git_story_blob(story, "120000", "link", "bin/run", 7);
    git_story_blob(story, "120000", "long-link", target, 300);
    git_story_file(story, deep, "deep\n");
    git_story_file(story, "empty", "");
    git_story_file(story, "large", large);
    git_story_blob(story, "100644", "bytes", "\0\r\n\xff", 4);
    git_story_file(story, "we\"ird\nname", "w\n");
    git_story_submodule(story, "sub", "1111111111111111111111111111111111111111");
    git_story_tell(story, world);
    return world;
}

static GByteArray *
tar_of(const GitWorld *world, const char *tree, PatchSum *ret_sum)
{
    GByteArray *tar = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    patch_tar(world->repo, tree, 1234567890, take_all, tar, ret_sum, &error);
    g_assert_no_error(error);
    return tar;
}

/* The bytes of what the archive is at. */
static char *
entry_oid(struct archive *reader, struct archive_entry *entry)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA1);
    guint8 piece[4096];
    gssize n;

    if (archive_entry_filetype(entry) == AE_IFLNK)
        g_byte_array_append(bytes, (const guint8 *)archive_entry_symlink(entry),
                            (guint)strlen(archive_entry_symlink(entry)));
    while ((n = archive_read_data(reader, piece, sizeof piece)) > 0)
        g_byte_array_append(bytes, piece, (guint)n);
    g_autofree char *head = g_strdup_printf("blob %u", bytes->len);

    g_checksum_update(sum, (const guchar *)head, (gssize)strlen(head) + 1);
    g_checksum_update(sum, bytes->data, bytes->len);
    return g_strdup(g_checksum_get_string(sum));
}

/* The mode, name and object of each entry, as ls-tree has them. */
static void
list_archive(const GByteArray *tar, GHashTable *found)
{
    struct archive *reader = archive_read_new();
    struct archive_entry *entry;

    archive_read_support_format_tar(reader);
    g_assert_cmpint(archive_read_open_memory(reader, tar->data, tar->len), ==, ARCHIVE_OK);
    while (archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
        g_autofree char *path = g_strdup(archive_entry_pathname(entry));
        g_autofree char *oid = entry_oid(reader, entry);
        bool folder = archive_entry_filetype(entry) == AE_IFDIR;
        guint mode = folder                                      ? 040000
                     : archive_entry_filetype(entry) == AE_IFLNK ? 0120000
                                                                 : 0100000 | (guint)archive_entry_perm(entry);

        g_assert_cmpint(archive_entry_mtime(entry), ==, 1234567890);
        if (folder)
            path[strlen(path) - 1] = '\0';
        g_assert_true(g_hash_table_insert(found, g_steal_pointer(&path),
                                          g_strdup_printf("%06o %s", mode, folder ? "" : oid)));
    }
    archive_read_free(reader);
}

static void
test_exact(void)
{
    g_autoptr(GitWorld) world = world_of_all();
    g_autofree char *tip = git_world_tip(world, "main");
    PatchSum sum;
    g_autoptr(GByteArray) tar = tar_of(world, tip, &sum);
    g_autoptr(GByteArray) again = tar_of(world, tip, NULL);
    g_autoptr(GHashTable) found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GError) error = NULL;

    list_archive(tar, found);
    g_autoptr(GPtrArray) entries = contents_list(
        world->repo, &(ContentsPage){.tree = tip, .path = "", .recursive = true, .max = 100}, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(entries->len, ==, 14);
    for (guint i = 0; i < entries->len; i++) {
        const TreeEntry *entry = entries->pdata[i];
        bool sub = entry->kind == ENTRY_SUBMODULE;
        g_autofree char *want = g_strdup_printf("%06o %s", sub ? 040000 : entry->mode, sub ? "" : entry->oid);

        g_test_message("%s", entry->path);
        g_assert_cmpstr(g_hash_table_lookup(found, entry->path), ==, want);
    }
    g_assert_true(g_hash_table_contains(found, "bin"));
    g_assert_cmpuint(g_hash_table_size(found), ==, entries->len + 2);
    g_assert_cmpuint(sum.files, ==, 13);
    g_assert_cmpmem(tar->data, tar->len, again->data, again->len);
}

static void
test_refused(void)
{
    g_autoptr(GitWorld) world = world_of_all();
    g_autofree char *tip = git_world_tip(world, "main");
    g_autoptr(GError) error = NULL;

    g_assert_false(patch_tar(world->repo, tip, 0, take_none, NULL, NULL, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_CANCELLED);
    g_clear_error(&error);
    g_assert_false(patch_tar(world->repo, "main", 0, take_none, NULL, NULL, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_clear_error(&error);
    g_assert_false(patch_tar(world->repo, git_oid_zero, 0, take_none, NULL, NULL, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
}

static void
test_contents(void)
{
    g_autoptr(GitWorld) world = world_of_all();
    g_autofree char *tip = git_world_tip(world, "main");
    const struct {
        const char *path;
        int kind; /* -1: an error */
        gint64 size;
        ErrKind error;
    } cases[] = {
        {"", ENTRY_FOLDER, -1, 0},
        {"bin", ENTRY_FOLDER, -1, 0},
        {"bin/run", ENTRY_PROGRAM, 10, 0},
        {"link", ENTRY_LINK, 7, 0},
        {"sub", ENTRY_SUBMODULE, -1, 0},
        {"empty", ENTRY_FILE, 0, 0},
        {"we\"ird\nname", ENTRY_FILE, 2, 0},
        {"none", -1, 0, ERR_NOT_FOUND},
        {"link/run", -1, 0, ERR_NOT_FOUND},
        {"*", -1, 0, ERR_NOT_FOUND},
        {":(top)empty", -1, 0, ERR_NOT_FOUND},
        {"--help", -1, 0, ERR_NOT_FOUND},
        {"../x", -1, 0, ERR_INVALID},
        {"/etc/passwd", -1, 0, ERR_INVALID},
        {"bin//run", -1, 0, ERR_INVALID},
        {"bin/", -1, 0, ERR_INVALID},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(TreeEntry) entry = contents_entry(world->repo, tip, cases[i].path, &error);

        g_test_message("'%s'", cases[i].path);
        if (cases[i].kind < 0) {
            g_assert_error(error, ERR_DOMAIN, (int)cases[i].error);
            continue;
        }
        g_assert_no_error(error);
        g_assert_cmpint(entry->kind, ==, cases[i].kind);
        g_assert_cmpint(entry->size, ==, cases[i].size);
        g_assert_cmpstr(entry->path, ==, cases[i].path);
    }
    g_autoptr(GByteArray) bytes = NULL;
    g_autoptr(GError) error = NULL;
    bool more = false;

    g_assert_true(contents_file(world->repo, tip, "bytes", NULL, &bytes, &error));
    g_assert_cmpmem(bytes->data, bytes->len, "\0\r\n\xff", 4);
    g_assert_false(contents_file(world->repo, tip, "bin", NULL, &bytes, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_autoptr(GPtrArray)
        page = contents_list(world->repo, &(ContentsPage){.tree = tip, .path = "bin", .max = 1}, &more, NULL);
    g_assert_cmpstr(((TreeEntry *)page->pdata[0])->path, ==, "bin/run");
    g_assert_false(more);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/patch/exact", test_exact);
    g_test_add_func("/forge/patch/refused", test_refused);
    g_test_add_func("/forge/contents", test_contents);
    return g_test_run();
}

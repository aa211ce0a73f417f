/* SPDX-License-Identifier: Apache-2.0 */
/* What .git is before the first checkout, as one archive: so a clone is one write and one checkout,
 * however large the history.  The objects are an alternate, the refs one packed file. */
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "forge/workspace-private.h"
#include "wire/door.h"
#include "wire/tar-write.h"

#define HELPER_NAME ".git/coop/git-helper"

static int
take(void *ctx, const void *bytes, size_t n)
{
    g_byte_array_append(ctx, bytes, (guint)n);
    return 0;
}

static void
add_folder(TarWriter *w, const char *name)
{
    struct stat st = {.st_mode = S_IFDIR | 0755};

    tar_write_entry(w, name, "", &st);
}

static void
add_file(TarWriter *w, const char *name, mode_t mode, const void *bytes, size_t n)
{
    struct stat st = {.st_mode = S_IFREG | mode, .st_size = (off_t)n};

    tar_write_entry(w, name, "", &st);
    tar_write_data(w, bytes, n);
    tar_write_padding(w, n);
}

static void
add_text(TarWriter *w, const char *name, const char *text)
{
    add_file(w, name, 0644, text, strlen(text));
}

/* ---- refs ---- */

bool
seed_has_commit(const Seed *seed)
{
    GHashTableIter iter;
    gpointer oid;

    if (seed->generation == NULL)
        return false;
    g_hash_table_iter_init(&iter, seed->generation->tips);
    while (g_hash_table_iter_next(&iter, NULL, &oid)) {
        if (strcmp(oid, seed->oid) == 0)
            return true;
    }
    return false;
}

static int
compare_lines(gconstpointer a, gconstpointer b)
{
    const char *const *left = a;
    const char *const *right = b;

    return strcmp(*left + GIT_OID_LEN, *right + GIT_OID_LEN);
}

static void
add_line(GPtrArray *lines, const char *oid, const char *space, const char *name)
{
    g_ptr_array_add(lines, g_strdup_printf("%s %s%s", oid, space, name));
}

static char *
format_refs(const Seed *seed, bool has)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    GString *text = g_string_new("# pack-refs with: sorted \n");
    GHashTableIter iter;
    gpointer name;
    gpointer oid;

    if (has) {
        add_line(lines, seed->oid, "refs/heads/", seed->branch);
        add_line(lines, seed->oid, "refs/remotes/origin/", seed->branch);
    }
    if (seed->generation != NULL) {
        g_hash_table_iter_init(&iter, seed->generation->tips);
        while (g_hash_table_iter_next(&iter, &name, &oid)) {
            const char *ref = name;
            bool is_branch = g_str_has_prefix(ref, "refs/heads/");

            if (is_branch && has && strcmp(ref + strlen("refs/heads/"), seed->branch) == 0)
                continue;
            add_line(lines, oid, is_branch ? "refs/remotes/origin/" : "",
                     is_branch ? ref + strlen("refs/heads/") : ref);
        }
    }
    g_ptr_array_sort(lines, compare_lines);
    for (guint i = 0; i < lines->len; i++)
        g_string_append_printf(text, "%s\n", (const char *)g_ptr_array_index(lines, i));
    return g_string_free(text, FALSE);
}

/* ---- configuration ---- */

static void
set(GString *text, const char *key, const char *value)
{
    g_string_append_printf(text, "\t%s = \"", key);
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\')
            g_string_append_c(text, '\\');
        g_string_append_c(text, *value);
    }
    g_string_append(text, "\"\n");
}

static void
add_identity(GString *text, const Seed *seed)
{
    const Identity *who = seed->identity;

    if (who == NULL)
        return;
    g_string_append(text, "[user]\n");
    set(text, "name", who->name);
    set(text, "email", who->email);
    if (seed->helper == NULL)
        return;
    g_autofree char *key = g_strconcat("key::", who->public_key, NULL);
    g_autofree char *program = g_build_filename(seed->path, HELPER_NAME, NULL);

    set(text, "signingkey", key);
    g_string_append(text, "[gpg]\n\tformat = ssh\n[gpg \"ssh\"]\n");
    set(text, "program", program);
    g_string_append(text, "[commit]\n\tgpgsign = true\n");
}

static char *
format_config(const Seed *seed)
{
    g_autofree char *url = g_strdup_printf("http://127.0.0.1:%d/git/%s/%s.git", DOOR_PORT, seed->owner,
                                           seed->name);
    g_autofree char *merge = g_strconcat("refs/heads/", seed->branch, NULL);
    GString *text = g_string_new("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
                                 "\tlogallrefupdates = true\n[remote \"origin\"]\n");

    set(text, "url", url);
    set(text, "fetch", "+refs/heads/*:refs/remotes/origin/*");
    /* The door is asked itself; it is no proxy for itself. */
    set(text, "proxy", "");
    g_string_append_printf(text, "[branch \"%s\"]\n\tremote = origin\n", seed->branch);
    set(text, "merge", merge);
    g_string_append(text, "[push]\n\tdefault = current\n");
    add_identity(text, seed);
    return g_string_free(text, FALSE);
}

/* ---- the archive ---- */

static void
add_files(TarWriter *w, const Seed *seed)
{
    static const char *const folders[] = {".git/objects/info", ".git/objects/pack", ".git/refs/heads",
                                          ".git/refs/tags"};
    g_autofree char *head = g_strdup_printf("ref: refs/heads/%s\n", seed->branch);
    g_autofree char *config = format_config(seed);
    g_autofree char *refs = format_refs(seed, seed_has_commit(seed));

    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++)
        add_folder(w, folders[i]);
    if (seed->generation != NULL) {
        g_autofree char *objects = g_strdup_printf(KEEPER_ATTACH_DIR "/%s/objects\n", seed->generation->id);

        add_text(w, ".git/objects/info/alternates", objects);
    }
    add_text(w, ".git/HEAD", head);
    add_text(w, ".git/config", config);
    add_text(w, ".git/packed-refs", refs);
}

/* The hook is the helper by another name. */
static void
add_helper(TarWriter *w, GBytes *helper)
{
    struct stat link = {.st_mode = S_IFLNK | 0777};
    gsize n;

    if (helper == NULL)
        return;
    const void *bytes = g_bytes_get_data(helper, &n);

    add_file(w, HELPER_NAME, 0755, bytes, n);
    tar_write_entry(w, ".git/hooks/commit-msg", "../coop/git-helper", &link);
}

GBytes *
seed_make(const Seed *seed, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autofree TarWriter *w = g_new0(TarWriter, 1);

    w->put = take;
    w->ctx = bytes;
    add_files(w, seed);
    add_helper(w, seed->helper);
    tar_write_end(w);
    if (w->error == 0)
        return g_byte_array_free_to_bytes(g_steal_pointer(&bytes));
    err_set(error, ERR_INTERNAL, "make the archive of a clone: %s", g_strerror(w->error));
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/check-look.h"

#include <string.h>

#include "base/err.h"
#include "forge/contents.h"
#include "forge/records.h"

enum { DECIMAL = 10, LINKS_MAX = 1000 };

void
check_look_clear(CheckLook *look)
{
    g_clear_pointer(&look->links, g_free);
    g_clear_pointer(&look->plan, check_plan_free);
    g_clear_pointer(&look->problem, g_free);
}

/* ---- what is checked ---- */

static bool
read_commit(GitRepo *git, CheckLook *look, GError **error)
{
    g_autofree char *line = git_text(
        git, GIT_READ, GIT_ARGS("log", "-1", "--format=%T %ct", "--end-of-options", look->head_oid), error);

    if (line == NULL)
        return false;
    if (strlen(line) < GIT_OID_LEN + 2)
        return err_set(error, ERR_INTERNAL, "git said '%s' about a commit", line);
    g_strlcpy(look->tree, line, sizeof look->tree);
    look->time_s = g_ascii_strtoll(line + GIT_OID_LEN + 1, NULL, DECIMAL);
    return true;
}

static bool
is_link(const char *record, const void *ctx)
{
    const char *path = strchr(record, '\t');

    return path != NULL && g_str_has_prefix(record, "160000 ") && strpbrk(path + 1, "\n\"") == NULL;
}

/* They are empty folders in the box, which git does not see there. */
static bool
read_links(GitRepo *git, CheckLook *look, GError **error)
{
    RecordsSpec spec = {.args = GIT_ARGS("ls-tree", "-r", "-z", "--full-tree", look->tree),
                        .separator = '\0',
                        .max = LINKS_MAX,
                        .keep = is_link};
    g_autoptr(GPtrArray) lines = records_read(git, &spec, NULL, error);
    g_autoptr(GString) links = g_string_new(NULL);

    if (lines == NULL)
        return false;
    for (guint i = 0; i < lines->len; i++)
        g_string_append_printf(links, "%s\n", (const char *)lines->pdata[i]);
    look->links = g_string_free(g_steal_pointer(&links), FALSE);
    return true;
}

/* ---- its commands ---- */

/* A file that is too large, or no file, is there and says nothing. */
static GBytes *
read_small(GitRepo *git, const char *tree, const char *path)
{
    g_autoptr(TreeEntry) entry = contents_entry(git, tree, path, NULL);
    g_autoptr(GByteArray) bytes = NULL;

    if (entry == NULL || entry->size < 0 || entry->size > PLAN_FILE_MAX || entry->kind == ENTRY_LINK ||
        !contents_blob(git, entry->oid, PLAN_FILE_MAX, &bytes, NULL))
        return NULL;
    return g_byte_array_free_to_bytes(g_steal_pointer(&bytes));
}

static bool
add_folder(GitRepo *git, const char *tree, const char *path, PlanFiles *files, GError **error)
{
    ContentsPage page = {.tree = tree, .path = path, .max = CONTENTS_PAGE_MAX};
    g_autoptr(GPtrArray) entries = contents_list(git, &page, NULL, error);

    if (entries == NULL)
        return false;
    for (guint i = 0; i < entries->len; i++) {
        const TreeEntry *entry = entries->pdata[i];

        if (entry->kind == ENTRY_FILE || entry->kind == ENTRY_PROGRAM)
            g_hash_table_insert(files, g_strdup(entry->path),
                                check_plan_looks_into(entry->path) ? read_small(git, tree, entry->path)
                                                                   : NULL);
    }
    return true;
}

static void
bytes_unref(void *bytes)
{
    if (bytes != NULL)
        g_bytes_unref(bytes);
}

static bool
detect(GitRepo *git, const char *tree, CheckPlan **ret_plan, GError **error)
{
    g_autoptr(GHashTable) files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, bytes_unref);
    g_autoptr(TreeEntry) tests = NULL;

    if (!add_folder(git, tree, "", files, error))
        return false;
    tests = contents_entry(git, tree, "tests", NULL);
    if (tests != NULL && tests->kind == ENTRY_FOLDER && !add_folder(git, tree, "tests", files, error))
        return false;
    *ret_plan = check_plan_detect(files);
    return true;
}

/* What is recognised, with what a coop.yaml without commands says. */
static bool
detect_under(GitRepo *git, const char *tree, CheckLook *look, GError **error)
{
    g_autoptr(CheckPlan) said = g_steal_pointer(&look->plan);

    if (!detect(git, tree, &look->plan, error))
        return false;
    if (look->plan == NULL)
        return true;
    if (said->template != NULL) {
        g_free(look->plan->template);
        look->plan->template = g_steal_pointer(&said->template);
        look->plan->template_is_guess = false;
    }
    look->plan->timeout_s = said->timeout_s;
    return true;
}

/* coop.yaml of the tree, or what is recognised in it.  Neither plan nor problem: it has none. */
static bool
read_plan(GitRepo *git, const char *tree, CheckLook *look, GError **error)
{
    g_autoptr(GError) failed = NULL;
    g_autoptr(TreeEntry) entry = contents_entry(git, tree, plan_file_name, &failed);

    if (g_error_matches(failed, ERR_DOMAIN, ERR_NOT_FOUND))
        return detect(git, tree, &look->plan, error);
    if (failed != NULL) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return false;
    }
    g_autoptr(GBytes) bytes = read_small(git, tree, plan_file_name);
    gsize len;

    if (bytes == NULL) {
        look->problem = g_strdup_printf("%s is not a file of at most %d bytes", plan_file_name,
                                        PLAN_FILE_MAX);
        return true;
    }
    const char *text = g_bytes_get_data(bytes, &len);

    look->plan = check_plan_parse(text != NULL ? text : "", len, &failed);
    if (look->plan == NULL)
        look->problem = g_strdup(failed->message);
    return look->plan == NULL || look->plan->commands->len > 0 || detect_under(git, tree, look, error);
}

bool
check_look(GitRepo *git, CheckLook *look, GError **error)
{
    check_look_clear(look);
    if (!read_commit(git, look, error) || !read_links(git, look, error) ||
        !read_plan(git, look->base_oid, look, error))
        return false;
    look->from_head = look->plan == NULL && look->problem == NULL;
    return !look->from_head || read_plan(git, look->head_oid, look, error);
}

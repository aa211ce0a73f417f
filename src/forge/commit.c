/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/commit.h"

#include <string.h>

#include "base/err.h"
#include "forge/batch.h"
#include "forge/contents.h"
#include "forge/records.h"

enum { READ_TOTAL_MAX = 32 << 20 };

/* ---- names ---- */

/* What git allows in a ref, so that nothing in it is read as a revision's operators. */
static bool
name_is_plain(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n > COMMIT_NAME_MAX || strchr("-/.", name[0]) != NULL || name[n - 1] == '/' ||
        name[n - 1] == '.' || g_str_has_suffix(name, ".lock"))
        return false;
    for (const char *p = name; *p != '\0'; p++) {
        if ((guchar)*p <= ' ' || *p == 0x7f || strchr("~^:?*[\\", *p) != NULL)
            return false;
    }
    return strstr(name, "..") == NULL && strstr(name, "@{") == NULL && strstr(name, "//") == NULL &&
           strcmp(name, "@") != 0;
}

static bool
add_candidates(GPtrArray *names, const char *name)
{
    static const char *const allowed[] = {"refs/heads/", "refs/tags/", "refs/pull/"};

    if (git_oid_is_valid(name)) {
        g_ptr_array_add(names, g_strdup_printf("%s^{commit}", name));
        return true;
    }
    if (!name_is_plain(name))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(allowed); i++) {
        if (g_str_has_prefix(name, allowed[i]))
            g_ptr_array_add(names, g_strdup_printf("%s^{commit}", name));
    }
    /* A branch may be called "refs/heads/x" in full; git would never make one by itself. */
    if (names->len == 0) {
        g_ptr_array_add(names, g_strdup_printf("refs/heads/%s^{commit}", name));
        g_ptr_array_add(names, g_strdup_printf("refs/tags/%s^{commit}", name));
    }
    return true;
}

static bool
take_first(size_t index, const char *oid, const char *type, guint64 size, void *ctx)
{
    char **ret = ctx;

    if (oid == NULL || strcmp(type, "commit") != 0)
        return true;
    *ret = g_strdup(oid);
    return false;
}

char *
commit_resolve(GitRepo *repo, const char *name, GError **error)
{
    static const BatchSink sink = {.object = take_first};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *oid = NULL;

    if (!add_candidates(names, name)) {
        err_set(error, ERR_INVALID, "this is no name of a branch, a tag or a commit");
        return NULL;
    }
    if (!batch_run(repo, (const char *const *)names->pdata, names->len, &sink, &oid, error))
        return NULL;
    if (oid == NULL)
        err_set(error, ERR_NOT_FOUND, "there is no branch, tag or commit '%s'", name);
    return g_steal_pointer(&oid);
}

/* ---- objects ---- */

static bool
oids_are_valid(const char *head, const char *without, GError **error)
{
    return (git_oid_is_valid(head) && (without == NULL || git_oid_is_valid(without))) ||
           err_set(error, ERR_INVALID, "this is no object's name");
}

GPtrArray *
commit_read_many(GitRepo *repo, const char *const *oids, GError **error)
{
    g_autoptr(GPtrArray) commits = g_ptr_array_new_with_free_func((GDestroyNotify)git_commit_free);
    size_t n = 0;

    for (; oids[n] != NULL; n++) {
        if (!oids_are_valid(oids[n], NULL, error))
            return NULL;
    }
    g_autoptr(GPtrArray) objects = batch_read(repo, oids, n, COMMIT_OBJECT_MAX, READ_TOTAL_MAX, error);

    for (size_t i = 0; objects != NULL && i < n; i++) {
        const BatchObject *object = objects->pdata[i];
        GitCommit *commit = NULL;

        if (object->oid[0] == '\0' || strcmp(object->type, "commit") != 0)
            err_set(error, ERR_NOT_FOUND, "there is no commit %s", oids[i]);
        else if (object->bytes == NULL)
            err_set(error, ERR_LIMIT, "commit %s has %" G_GUINT64_FORMAT " bytes", oids[i], object->size);
        else
            commit = git_commit_parse(oids[i], object->bytes->data, object->bytes->len, error);
        if (commit == NULL)
            return NULL;
        g_ptr_array_add(commits, commit);
    }
    return objects != NULL ? g_steal_pointer(&commits) : NULL;
}

GitCommit *
commit_read(GitRepo *repo, const char *oid, GError **error)
{
    const char *const oids[] = {oid, NULL};
    g_autoptr(GPtrArray) commits = commit_read_many(repo, oids, error);

    return commits != NULL ? g_ptr_array_steal_index(commits, 0) : NULL;
}

/* ---- ranges ---- */

static GPtrArray *
list_oids(GitRepo *repo, const CommitRange *range, bool *ret_more, GError **error)
{
    g_autofree char *without = range->without != NULL ? g_strconcat("^", range->without, NULL) : NULL;
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();

    g_strv_builder_add(list, "rev-list");
    /* git's own bounds are of what is newest, whatever the order: records.h counts. */
    if (range->oldest_first)
        g_strv_builder_add_many(list, "--reverse", "--topo-order", NULL);
    g_strv_builder_add(list, range->head);
    if (without != NULL)
        g_strv_builder_add(list, without);
    g_strv_builder_add(list, "--");
    if (range->path != NULL && range->path[0] != '\0')
        g_strv_builder_add(list, range->path);
    g_auto(GStrv) args = g_strv_builder_end(list);
    RecordsSpec spec = {
        .args = (const char *const *)args,
        .separator = '\n',
        .skip = range->skip,
        .max = MIN(range->max, COMMIT_PAGE_MAX),
    };

    return records_read(repo, &spec, ret_more, error);
}

GPtrArray *
commit_list(GitRepo *repo, const CommitRange *range, bool *ret_more, GError **error)
{
    if (!oids_are_valid(range->head, range->without, error) ||
        (range->path != NULL && !contents_path_is_valid(range->path, error)))
        return NULL;
    g_autoptr(GPtrArray) oids = list_oids(repo, range, ret_more, error);

    if (oids == NULL)
        return NULL;
    g_ptr_array_add(oids, NULL);
    return commit_read_many(repo, (const char *const *)oids->pdata, error);
}

bool
commit_count(GitRepo *repo, const char *head, const char *without, guint max, guint *ret_n, GError **error)
{
    g_autofree char *most = g_strdup_printf("--max-count=%u", max > 0 ? max : COMMIT_COUNT_MAX);
    g_autofree char *except = g_strconcat("^", without, NULL);
    guint64 n;

    if (!oids_are_valid(head, without, error))
        return false;
    const char *args[] = {"rev-list", "--count", most, head, without != NULL ? except : "--", NULL};
    g_autofree char *text = git_text(repo, GIT_READ, args, error);

    if (text == NULL)
        return false;
    if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT, &n, NULL))
        return err_set(error, ERR_INTERNAL, "git counted '%s' commits", text);
    *ret_n = (guint)n;
    return true;
}

/* ---- how they hang together ---- */

bool
commit_merge_base(GitRepo *repo, const char *a, const char *b, char **ret_oid, GError **error)
{
    g_autoptr(GByteArray) out = NULL;
    int code;

    if (!oids_are_valid(a, b, error))
        return false;
    GitCall call = {.args = GIT_ARGS("merge-base", a, b)};

    if (!git_ask(repo, &call, &code, &out, error))
        return false;
    if (code > 1)
        return err_set(error, ERR_NOT_FOUND, "there is no commit %s, or no %s", a, b);
    g_autofree char *oid = g_strndup((const char *)out->data, MIN(out->len, GIT_OID_LEN));

    *ret_oid = code == 0 && git_oid_is_valid(oid) ? g_steal_pointer(&oid) : NULL;
    return true;
}

bool
commit_is_ancestor(GitRepo *repo, const char *old, const char *new, bool *ret_is, GError **error)
{
    int code;

    if (!oids_are_valid(old, new, error))
        return false;
    GitCall call = {.args = GIT_ARGS("merge-base", "--is-ancestor", old, new)};

    if (!git_ask(repo, &call, &code, NULL, error))
        return false;
    if (code > 1)
        return err_set(error, ERR_NOT_FOUND, "there is no commit %s, or no %s", old, new);
    *ret_is = code == 0;
    return true;
}

bool
commit_ahead_behind(GitRepo *repo, const char *base, const char *head, guint *ret_ahead, guint *ret_behind,
                    GError **error)
{
    g_autofree char *range = g_strconcat(base, "...", head, NULL);
    guint64 ahead, behind;

    if (!oids_are_valid(base, head, error))
        return false;
    g_autofree char *text = git_text(repo, GIT_READ,
                                     GIT_ARGS("rev-list", "--left-right", "--count", range, "--"), error);

    if (text == NULL)
        return false;
    g_auto(GStrv) words = g_strsplit(text, "\t", 3);

    if (g_strv_length(words) != 2 || !g_ascii_string_to_unsigned(words[0], 10, 0, G_MAXUINT, &behind, NULL) ||
        !g_ascii_string_to_unsigned(words[1], 10, 0, G_MAXUINT, &ahead, NULL))
        return err_set(error, ERR_INTERNAL, "git counted '%s' commits", text);
    *ret_ahead = (guint)ahead;
    *ret_behind = (guint)behind;
    return true;
}

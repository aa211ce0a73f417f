/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/forge-private.h"

typedef struct Listing {
    Repo *repo; /* for the loop only */
    char *after;
    guint limit;
    ForgeJsonFunc done;
    void *data;
    Json *list; /* what was found */
    bool more;
    GString *line; /* unfinished */
} Listing;

/* "oid name"; git sorts by name, so those before `after` are skipped and the rest is cut off. */
static bool
take_line(Listing *l, const char *line)
{
    const char *name = strchr(line, ' ');

    if (name == NULL || strcmp(name + 1, l->after) <= 0)
        return true;
    l->more = json_array_size(l->list) == l->limit;
    if (l->more)
        return false;
    g_autofree char *commit = g_strndup(line, (gsize)(name - line));

    json_array_append_new(l->list, json_pack("{s:s, s:s}", "name", name + 1, "commit", commit));
    return true;
}

static bool
take(const guint8 *bytes, size_t n, void *ctx)
{
    Listing *l = ctx;

    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            g_string_append_c(l->line, (char)bytes[i]);
            continue;
        }
        if (!take_line(l, l->line->str))
            return false;
        g_string_truncate(l->line, 0);
    }
    return true;
}

static bool
list_work(GitRepo *git, void *data, GError **error)
{
    Listing *l = data;
    GitCall call = {
        .access = GIT_READ,
        .args = GIT_ARGS("for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "--", "refs/heads/"),
        .take = take,
        .ctx = l};

    json_array_clear(l->list);
    g_string_truncate(l->line, 0);
    return git_run(git, &call, NULL, error);
}

static void
on_listed(void *data, const GError *error)
{
    Listing *l = data;
    size_t n = json_array_size(l->list);
    Json *next = l->more ? json_incref(json_object_get(json_array_get(l->list, n - 1), "name")) : json_null();
    g_autoptr(Json) answer = json_pack("{s:O, s:o}", "branches", l->list, "next", next);

    l->done(error == NULL ? answer : NULL, error, l->data);
}

static void
listing_free(gpointer data)
{
    Listing *l = data;

    repo_unref(l->repo);
    json_decref(l->list);
    g_string_free(l->line, TRUE);
    g_free(l->after);
    g_free(l);
}

void
repo_list_branches(Repo *repo, const char *after, guint limit, ForgeJsonFunc done, void *data)
{
    g_autoptr(GError) error = NULL;

    if (!repo_require_ready(repo, &error)) {
        done(NULL, error, data);
        return;
    }
    Listing *l = g_new0(Listing, 1);

    *l = (Listing){.repo = repo_ref(repo),
                   .after = g_strdup(after != NULL ? after : ""),
                   .limit = limit,
                   .done = done,
                   .data = data,
                   .list = json_array(),
                   .line = g_string_new(NULL)};
    forge_read(repo->forge, repo, "list branches", list_work, on_listed, l, listing_free);
}

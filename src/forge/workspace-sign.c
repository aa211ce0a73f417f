/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/workspace-private.h"

enum { COMMIT_MAX = 1 << 20 };

/* The next line, without its end; the rest begins behind it. */
static bool
next_line(const char **at, const char *end, const char **ret_line, size_t *ret_n)
{
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));

    if (stop == NULL)
        return false;
    *ret_line = *at;
    *ret_n = (size_t)(stop - *at);
    *at = stop + 1;
    return true;
}

static bool
starts(const char *line, size_t n, const char *word)
{
    return n > strlen(word) && memcmp(line, word, strlen(word)) == 0;
}

static bool
is_oid(const char *text, size_t n)
{
    g_autofree char *oid = g_strndup(text, n);

    return git_oid_is_valid(oid);
}

/* "author NAME <EMAIL> TIME ZONE" */
static char *
dup_email(const char *line, size_t n)
{
    const char *close = memrchr(line, '>', n);
    const char *open = close != NULL ? memrchr(line, '<', (size_t)(close - line)) : NULL;

    return open != NULL ? g_strndup(open + 1, (gsize)(close - open - 1)) : NULL;
}

/* Behind it are the people. */
static bool
skip_parents(const char **at, const char *end)
{
    const char *line;
    size_t n;

    for (const char *next = *at; next_line(&next, end, &line, &n) && starts(line, n, "parent "); *at = next) {
        if (!is_oid(line + strlen("parent "), n - strlen("parent ")))
            return false;
    }
    return true;
}

static char *
read_email(const char **at, const char *end, const char *word)
{
    const char *line;
    size_t n;

    return next_line(at, end, &line, &n) && starts(line, n, word) ? dup_email(line, n) : NULL;
}

/* A commit as git hashes it, in git's own order: anything else could be made to look like something
 * that was never meant to be signed.  The e-mail of both people, which have to be one. */
static char *
read_commit(const void *bytes, size_t n, GError **error)
{
    const char *at = bytes;
    const char *end = at + n;
    const char *line = NULL;
    size_t len = 0;
    bool sound = n <= COMMIT_MAX && memchr(bytes, '\0', n) == NULL && next_line(&at, end, &line, &len) &&
                 starts(line, len, "tree ") && is_oid(line + strlen("tree "), len - strlen("tree ")) &&
                 skip_parents(&at, end);
    g_autofree char *author = sound ? read_email(&at, end, "author ") : NULL;
    g_autofree char *committer = author != NULL ? read_email(&at, end, "committer ") : NULL;

    if (committer == NULL) {
        err_set(error, ERR_INVALID, "this is no commit");
        return NULL;
    }
    if (strcmp(author, committer) != 0) {
        err_set(error, ERR_DENIED, "only commits of one's own are signed: author and committer differ");
        return NULL;
    }
    return g_steal_pointer(&author);
}

typedef struct Search {
    Forge *forge;
    const char *email;
    const Identity *found;
} Search;

static void
match(const Workspace *w, void *data)
{
    Search *search = data;
    const Identity *who = w->identity_id != NULL ? identity_find(search->forge, w->identity_id) : NULL;

    if (who != NULL && strcmp(who->email, search->email) == 0)
        search->found = who;
}

char *
workspace_sign(Forge *forge, const char *box_id, const void *commit, size_t n, GError **error)
{
    g_autofree char *email = read_commit(commit, n, error);
    Search search = {forge, email, NULL};

    if (email == NULL)
        return NULL;
    workspace_each(forge, box_id, match, &search);
    if (search.found == NULL) {
        err_set(error, ERR_DENIED, "this sandbox commits under another e-mail address than '%s'", email);
        return NULL;
    }
    return identity_sign(forge, search.found, commit, n, error);
}

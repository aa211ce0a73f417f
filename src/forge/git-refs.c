/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/git-private.h"

static bool
ref_of(const char *branch, char **ret_ref, GError **error)
{
    if (!git_branch_is_valid(branch, error))
        return false;
    *ret_ref = g_strconcat("refs/heads/", branch, NULL);
    return true;
}

/* *ret_oid: NULL when there is no such branch. */
static bool
look_up(GitRepo *repo, const char *ref, char **ret_oid, GError **error)
{
    g_autoptr(GByteArray) out = NULL;
    GitCall call = {.args = GIT_ARGS("for-each-ref", "--format=%(objectname) %(refname)", "--", ref)};

    if (!git_run(repo, &call, &out, error))
        return false;
    g_auto(GStrv) lines = g_strsplit((const char *)out->data, "\n", -1);

    /* It also names what lies below: "a" finds "a/b" where there is no "a". */
    for (guint i = 0; lines[i] != NULL; i++) {
        if (strlen(lines[i]) > GIT_OID_LEN && strcmp(lines[i] + GIT_OID_LEN + 1, ref) == 0) {
            *ret_oid = g_strndup(lines[i], GIT_OID_LEN);
            return true;
        }
    }
    *ret_oid = NULL;
    return true;
}

static const char *
short_name(const char *ref)
{
    return strchr(ref + strlen("refs/"), '/') + 1;
}

static const char *
noun_of(const char *ref)
{
    return g_str_has_prefix(ref, "refs/heads/") ? "branch" : "tag";
}

static bool
ref_is_valid(const char *ref, GError **error)
{
    if (!g_str_has_prefix(ref, "refs/heads/") && !g_str_has_prefix(ref, "refs/tags/"))
        return err_set(error, ERR_INVALID, "'%s' is neither below refs/heads/ nor below refs/tags/", ref);
    return git_branch_is_valid(short_name(ref), error);
}

char *
git_ref_oid(GitRepo *repo, const char *ref, GError **error)
{
    char *oid = NULL;

    if (!ref_is_valid(ref, error) || !look_up(repo, ref, &oid, error))
        return NULL;
    if (oid == NULL)
        err_set(error, ERR_NOT_FOUND, "there is no %s '%s'", noun_of(ref), short_name(ref));
    return oid;
}

char *
git_branch_oid(GitRepo *repo, const char *branch, GError **error)
{
    g_autofree char *ref = NULL;

    return ref_of(branch, &ref, error) ? git_ref_oid(repo, ref, error) : NULL;
}

/* On some file systems, and to some people, two such names are one. */
static bool
has_no_twin(GitRepo *repo, const char *ref, GError **error)
{
    g_autofree char *text = git_text(
        repo, GIT_READ, GIT_ARGS("for-each-ref", "--ignore-case", "--format=%(refname)", "--", ref), error);

    if (text == NULL)
        return false;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        if (g_ascii_strcasecmp(lines[i], ref) == 0 && strcmp(lines[i], ref) != 0)
            return err_set(error, ERR_CONFLICT, "there is a %s '%s' already", noun_of(ref),
                           short_name(lines[i]));
    }
    return true;
}

static const char *
place_name(const char *oid)
{
    return oid == NULL || strcmp(oid, git_oid_zero) == 0 ? "nothing" : oid;
}

/* Why the move was refused: looked up afterwards, because git's words are not an interface. */
static bool
explain(GitRepo *repo, const char *ref, const char *old, const GitEnd *end, GError **error)
{
    g_autofree char *now = NULL;

    if (!look_up(repo, ref, &now, error))
        return false;
    if (g_strcmp0(now != NULL ? now : git_oid_zero, old) != 0)
        return err_set(error, ERR_CONFLICT, "%s '%s' is at %s, not at %s", noun_of(ref), short_name(ref),
                       place_name(now), place_name(old));
    return git_error_set(repo, end, error);
}

bool
git_ref_move(GitRepo *repo, const char *ref, const char *old, const char *new, const char *why,
             GError **error)
{
    g_auto(GitEnd) end = {0};

    if (!ref_is_valid(ref, error))
        return false;
    if (!git_oid_is_valid(old) || !git_oid_is_valid(new))
        return err_set(error, ERR_INVALID, "'%s' to '%s' is no move of a %s", old, new, noun_of(ref));
    if (strcmp(old, git_oid_zero) == 0 && !has_no_twin(repo, ref, error))
        return false;
    const char *const *args = strcmp(new, git_oid_zero) == 0
                                  ? GIT_ARGS("update-ref", "--no-deref", "-m", why, "-d", "--", ref, old)
                                  : GIT_ARGS("update-ref", "--no-deref", "--create-reflog", "-m", why, "--",
                                             ref, new, old);
    GitCall call = {.access = GIT_WRITE, .args = args};

    if (!git_child_run(repo, &call, &end, error))
        return false;
    return end.code == 0 || explain(repo, ref, old, &end, error);
}

bool
git_branch_move(GitRepo *repo, const char *branch, const char *old, const char *new, const char *why,
                GError **error)
{
    g_autofree char *ref = NULL;

    return ref_of(branch, &ref, error) && git_ref_move(repo, ref, old, new, why, error);
}

static GString *
moves_text(const GitRefMove *moves, size_t n)
{
    GString *text = g_string_new("start\n");

    for (size_t i = 0; i < n; i++) {
        bool removes = strcmp(moves[i].new, git_oid_zero) == 0;

        g_string_append_printf(text, "option no-deref\n%s %s", removes ? "delete" : "update", moves[i].ref);
        if (!removes)
            g_string_append_printf(text, " %s", moves[i].new);
        if (moves[i].old != NULL)
            g_string_append_printf(text, " %s", moves[i].old);
        g_string_append_c(text, '\n');
    }
    g_string_append(text, "prepare\ncommit\n");
    return text;
}

static bool
explain_moves(GitRepo *repo, const GitRefMove *moves, size_t n, const GitEnd *end, GError **error)
{
    for (size_t i = 0; i < n; i++) {
        g_autofree char *now = NULL;

        if (moves[i].old == NULL)
            continue;
        if (!look_up(repo, moves[i].ref, &now, error))
            return false;
        if (g_strcmp0(now != NULL ? now : git_oid_zero, moves[i].old) != 0)
            return err_set(error, ERR_CONFLICT, "'%s' is at %s, not at %s", moves[i].ref, place_name(now),
                           place_name(moves[i].old));
    }
    return git_error_set(repo, end, error);
}

bool
git_refs_move(GitRepo *repo, const GitRefMove *moves, size_t n, const char *why, GError **error)
{
    g_autoptr(GString) text = moves_text(moves, n);
    g_auto(GitEnd) end = {0};
    GitCall call = {.access = GIT_WRITE,
                    .args = GIT_ARGS("update-ref", "--create-reflog", "-m", why, "--stdin"),
                    .input = text->str,
                    .input_len = text->len};

    for (size_t i = 0; i < n; i++) {
        if (strpbrk(moves[i].ref, " \n") != NULL || !git_oid_is_valid(moves[i].new) ||
            (moves[i].old != NULL && !git_oid_is_valid(moves[i].old)))
            return err_set(error, ERR_INVALID, "this is no move of '%s'", moves[i].ref);
    }
    if (!git_child_run(repo, &call, &end, error))
        return false;
    return end.code == 0 || explain_moves(repo, moves, n, &end, error);
}

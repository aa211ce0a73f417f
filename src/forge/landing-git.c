/* SPDX-License-Identifier: Apache-2.0 */
/* What the queue asks of git: a merge or a squash takes 4 children before it is checked (tip, merge,
 * commit, ref), and 1 to land. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/landing-private.h"

static const char heads[] = "refs/heads/";

char *
landing_ref(gint64 id)
{
    return g_strdup_printf("refs/coop/landing/%" G_GINT64_FORMAT, id);
}

/* ---- building ---- */

/* Texts of rows are null where there are none. */
static char *
dup_text(const Json *row, const char *name)
{
    return g_strdup(row_text(row, name));
}

static char *
message_of(const Json *entry)
{
    const char *title = row_text(entry, "title"), *message = row_text(entry, "message");

    if (title == NULL)
        return NULL;
    return message != NULL && message[0] != '\0' ? g_strconcat(title, "\n\n", message, NULL)
                                                 : g_strdup(title);
}

LandingBuild *
landing_build_new(const Json *taken, const char *ref)
{
    const Json *entry = json_object_get(taken, "entry"), *pull = json_object_get(taken, "pull");
    const Json *ours = json_object_get(taken, "ours");
    LandingBuild *b = g_new0(LandingBuild, 1);

    *b = (LandingBuild){.target = dup_text(entry, "target"),
                        .head = dup_text(pull, "head"),
                        .head_oid = dup_text(entry, "head_oid"),
                        .message = message_of(entry),
                        .author_name = dup_text(entry, "author_name"),
                        .author_email = dup_text(entry, "author_email"),
                        .ref = g_strdup(ref),
                        .ours_title = dup_text(ours, "title"),
                        .ours_body = dup_text(ours, "body"),
                        .title = dup_text(pull, "title"),
                        .body = dup_text(pull, "body"),
                        .time_s = row_int(entry, "created_us") / G_USEC_PER_SEC,
                        .up_to_date = row_is(taken, "up_to_date")};
    merge_method_parse(row_text(entry, "method"), &b->method);
    return b;
}

void
landing_build_free(LandingBuild *b)
{
    char **texts[] = {&b->target,      &b->head,   &b->head_oid,   &b->message,
                      &b->author_name, &b->bundle, &b->ours_title, &b->ours_body,
                      &b->title,       &b->body,   &b->ref,        &b->author_email};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(*texts[i]);
    g_free(b);
}

/* The target's commit and its tree, by one child. */
static bool
find_target(GitRepo *git, LandingBuild *b, char ret_tree[GIT_OID_LEN + 1], GError **error)
{
    g_autofree char *ref = g_strconcat(heads, b->target, NULL);
    g_autofree char *text = git_text(
        git, GIT_READ, GIT_ARGS("for-each-ref", "--format=%(objectname) %(tree) %(refname)", "--", ref),
        error);
    g_auto(GStrv) lines = text != NULL ? g_strsplit(text, "\n", -1) : NULL;

    for (guint i = 0; lines != NULL && lines[i] != NULL; i++) {
        g_auto(GStrv) words = g_strsplit(lines[i], " ", 3);

        if (g_strv_length(words) == 3 && strcmp(words[2], ref) == 0) {
            g_strlcpy(b->target_oid, words[0], sizeof b->target_oid);
            g_strlcpy(ret_tree, words[1], GIT_OID_LEN + 1);
            return true;
        }
    }
    return lines != NULL && err_set(error, ERR_NOT_FOUND, "there is no branch '%s'", b->target);
}

/* Contents of files go first: the paths, and what git says of them, are the smaller part. */
static char *
encode_bundle(Json *bundle)
{
    static const char *const versions[] = {"base", "ours", "theirs", "merged"};
    g_autofree char *text = json_encode(bundle);
    size_t i;
    Json *file;

    if (strlen(text) <= LANDING_BUNDLE_MAX)
        return g_steal_pointer(&text);
    json_array_foreach(json_object_get(bundle, "files"), i, file)
    {
        for (size_t v = 0; v < G_N_ELEMENTS(versions); v++) {
            Json *version = json_object_get(file, versions[v]);

            if (json_is_object(version))
                json_object_set_new(version, "text", json_null());
        }
    }
    json_object_set_new(bundle, "truncated", json_true());
    return json_encode(bundle);
}

static bool
keep_bundle(GitRepo *git, LandingBuild *b, const MergeDone *done, GError **error)
{
    const MergeIntent ours = {b->target, b->target_oid, b->ours_title, b->ours_body};
    const MergeIntent theirs = {b->head, b->head_oid, b->title, b->body};
    g_autoptr(Json) bundle = merge_bundle(git, done->conflict, &ours, &theirs, error);

    if (bundle == NULL)
        return false;
    if (done->conflict_commit != NULL)
        json_object_set_new(bundle, "commit", json_string(done->conflict_commit));
    b->bundle = encode_bundle(bundle);
    return true;
}

/* The target has all of it: nothing would be said by a commit. */
static bool
find_nothing(GitRepo *git, LandingBuild *b, const MergeDone *done, const char *tree, GError **error)
{
    if (strcmp(done->tree, tree) != 0)
        return true;
    b->nothing = b->method != MERGE_COMMIT;
    return b->nothing || commit_is_ancestor(git, b->head_oid, b->target_oid, &b->nothing, error);
}

static bool
make_candidate(GitRepo *git, LandingBuild *b, const char *tree, GError **error)
{
    const MergePerson author = {b->author_name, b->author_email, b->time_s, 0};
    const MergePerson coop = {"Coop", "coop@localhost", b->time_s, 0};
    g_auto(MergeDone) done = {0};

    if (!merge_make(git,
                    &(MergeSpec){.method = b->method,
                                 .base = b->target_oid,
                                 .head = b->head_oid,
                                 .author = author,
                                 .committer = coop,
                                 .message = b->message},
                    &done, error))
        return false;
    if (done.conflict != NULL)
        return keep_bundle(git, b, &done, error);
    if (!find_nothing(git, b, &done, tree, error) || b->nothing)
        return b->nothing;
    FAILPOINT("landing-built");
    g_strlcpy(b->candidate, done.oid, sizeof b->candidate);
    return git_refs_move(git, &(GitRefMove){.ref = b->ref, .new = b->candidate}, 1, "merge queue", error);
}

bool
landing_build_work(GitRepo *git, void *data, GError **error)
{
    LandingBuild *b = data;
    char tree[GIT_OID_LEN + 1];
    bool has_all = true;

    g_clear_pointer(&b->bundle, g_free);
    b->candidate[0] = '\0';
    b->nothing = false;
    if (!find_target(git, b, tree, error))
        return false;
    if (b->up_to_date && !commit_is_ancestor(git, b->target_oid, b->head_oid, &has_all, error))
        return false;
    b->behind = !has_all;
    if (!b->behind && !make_candidate(git, b, tree, error))
        return false;
    FAILPOINT("landing-kept");
    return true;
}

/* ---- landing ---- */

void
landing_move_free(LandingMove *move)
{
    g_free(move->target);
    g_free(move->ref);
    g_free(move->target_oid);
    g_free(move->landing_oid);
    g_free(move->why);
    g_free(move);
}

/* After a crash the branch may be there, and others may have gone on from it. */
static bool
is_there(GitRepo *git, LandingMove *move, GError **error)
{
    g_autofree char *tip = git_branch_oid(git, move->target, error);

    return tip != NULL && commit_is_ancestor(git, move->landing_oid, tip, &move->landed, error);
}

bool
landing_move_work(GitRepo *git, void *data, GError **error)
{
    LandingMove *move = data;
    g_autofree char *ref = g_strconcat(heads, move->target, NULL);
    const GitRefMove moves[] = {{ref, move->target_oid, move->landing_oid}, {move->ref, NULL, git_oid_zero}};
    g_autoptr(GError) failed = NULL;

    move->landed = git_refs_move(git, moves, G_N_ELEMENTS(moves), move->why, &failed);
    move->ref_left = !move->landed;
    if (!move->landed && !is_there(git, move, error))
        return false;
    if (!move->landed && !g_error_matches(failed, ERR_DOMAIN, ERR_CONFLICT)) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return false;
    }
    FAILPOINT("landing-moved");
    return true;
}

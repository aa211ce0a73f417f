/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/bring.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "forge/repo.h"

const char bring_fsck[] = "zeroPaddedFilemode=ignore,missingSpaceBeforeDate=ignore,badTimezone=ignore,"
                          "missingEmail=ignore,missingNameBeforeEmail=ignore,missingTaggerEntry=ignore,"
                          "badTagName=ignore,gitmodulesParse=ignore";

/* In the order in which git comes to them, of a fetch and of a pack that is made and read. */
static const struct {
    const char *step;
    gint from, to;
} steps[] = {
    {"Receiving objects:", 0, 80},   {"Resolving deltas:", 80, 99}, {"Counting objects:", 0, 5},
    {"Compressing objects:", 5, 20}, {"Writing objects:", 20, 50},  {"Indexing objects:", 50, 80},
};

void
bring_clear(Bring *bring)
{
    g_clear_pointer(&bring->head, g_free);
    bring->moved = bring->removed = bring->left_out = bring->kept_back = 0;
}

bool
bring_too_big(const Bring *bring, GError **error)
{
    g_autofree char *max = g_format_size_full(bring->size_max, G_FORMAT_SIZE_IEC_UNITS);

    return err_set(error, ERR_LIMIT, "it has more than %s, which 'forge.fetch_max' allows", max);
}

void
bring_progress(const char *line, void *data)
{
    Bring *b = data;

    if (g_str_has_prefix(line, "remote: "))
        return; /* what the other side does is not what we have */
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        if (!g_str_has_prefix(line, steps[i].step))
            continue;
        long n = CLAMP(strtol(line + strlen(steps[i].step), NULL, 10), 0, 100);
        gint percent = steps[i].from + (gint)n * (steps[i].to - steps[i].from) / 100;

        if (percent > g_atomic_int_get(&b->percent))
            g_atomic_int_set(&b->percent, percent);
        return;
    }
}

bool
bring_list_refs(GitRepo *git, const char *prefix, const gint *cancel, GHashTable **ret_refs, GError **error)
{
    g_autoptr(GByteArray) out = NULL;
    GitCall call = {.access = GIT_READ,
                    .args = GIT_ARGS("for-each-ref", "--format=%(objectname) %(refname)", "--", prefix),
                    .output_max = BRING_LIST_MAX,
                    .cancel = cancel};

    if (!git_run(git, &call, &out, error))
        return false;
    g_auto(GStrv) lines = g_strsplit((const char *)out->data, "\n", -1);
    g_autoptr(GHashTable) refs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    for (guint i = 0; lines[i] != NULL && lines[i][0] != '\0'; i++) {
        char *space = strchr(lines[i], ' ');

        if (i == BRING_REFS_MAX)
            return err_set(error, ERR_LIMIT, "there are more than %d branches and tags", BRING_REFS_MAX);
        if (space == NULL)
            return err_set(error, ERR_INTERNAL, "git lists refs in an unknown way");
        g_hash_table_insert(refs, g_strdup(space + 1), g_strndup(lines[i], (gsize)(space - lines[i])));
    }
    *ret_refs = g_steal_pointer(&refs);
    return true;
}

static bool
points_to(GitRepo *git, const char *branch)
{
    g_autofree char *oid = branch[0] != '\0' ? git_branch_oid(git, branch, NULL) : NULL;

    return oid != NULL;
}

/* Asked for, of the source, or the usual ones; the first that is there. */
bool
bring_set_head(GitRepo *git, Bring *bring, const char *found, GError **error)
{
    const char *const wishes[] = {bring->branch, found != NULL ? found : "", repo_branch_default, "master"};
    const char *branch = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(wishes) && branch == NULL; i++) {
        if (points_to(git, wishes[i]))
            branch = wishes[i];
    }
    if (bring->branch[0] != '\0' && branch != bring->branch && branch != NULL)
        return err_set(error, ERR_NOT_FOUND, "the source has no branch '%s'", bring->branch);
    if (branch == NULL) /* nothing but tags, or nothing at all */
        branch = bring->branch[0] != '\0' ? bring->branch : repo_branch_default;
    g_autofree char *ref = g_strconcat("refs/heads/", branch, NULL);

    bring->head = g_strdup(branch);
    return git_run(git, &(GitCall){.access = GIT_WRITE, .args = GIT_ARGS("symbolic-ref", "HEAD", ref)}, NULL,
                   error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A comment on a line keeps the hunk that it was made on, and only git knows that: so it is asked before
 * the rows are written.  Where it cannot tell, the comment has none. */
#include "forge/hunk.h"
#include "forge/review-private.h"

typedef struct Making {
    Forge *forge;
    Repo *repo;
    const RowOp *op;
    void *spec;             /* a copy */
    const char **ret_hunk;  /* in the copy, of a single comment; else NULL */
    const char *commit_oid; /* borrowed from the copy; NULL: the head */
    Json *lines;
    char *base, *commit;
    ForgeJsonFunc done;
    void *data;
} Making;

static void
making_free(void *data)
{
    Making *m = data;

    row_spec_free(m->op, m->spec);
    repo_unref(m->repo);
    json_decref(m->lines);
    g_free(m->base);
    g_free(m->commit);
    g_free(m);
}

static void
write_rows(Making *m)
{
    const char *hunk = row_text(json_array_get(m->lines, 0), "diff_hunk");

    if (m->ret_hunk != NULL)
        *m->ret_hunk = g_strdup(hunk);
    row_run(m->forge, m->repo, m->op, m->spec, m->done, m->data);
}

static bool
look_work(GitRepo *git, void *data, GError **error)
{
    Making *m = data;

    return hunks_fill(git, m->base, m->commit, m->lines, error);
}

static void
look_done(void *data, const GError *error)
{
    write_rows(data);
}

static void
on_pull(Json *pull, const GError *error, void *data)
{
    Making *m = data;
    const char *commit = m->commit_oid != NULL ? m->commit_oid : row_text(pull, "head_oid");

    /* What is wrong with it the rows' own function says. */
    if (error != NULL || !git_oid_is_valid(commit)) {
        write_rows(m);
        making_free(m);
        return;
    }
    g_autofree char *what = g_strdup_printf("look at lines of #%" G_GINT64_FORMAT, row_int(pull, "number"));

    m->base = g_strdup(row_text(pull, "base_oid"));
    m->commit = g_strdup(commit);
    forge_read(m->forge, m->repo, what, look_work, look_done, m, making_free);
}

static bool
run_create(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    return review_create_row(job, data, ret_value, error);
}

void
review_create(Forge *forge, Repo *repo, const ReviewSpec *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(ReviewSpec, actor), ROW_AT_TEXT(ReviewSpec, body),
                                        ROW_AT_TEXT(ReviewSpec, commit_oid), ROW_AT_JSON(ReviewSpec, lines),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(ReviewSpec), members, run_create};

    if (json_array_size(spec->lines) == 0 || json_array_size(spec->lines) > REVIEW_LINES_MAX) {
        row_run(forge, repo, &op, spec, done, data);
        return;
    }
    Making *m = g_new0(Making, 1);
    ReviewSpec *copy = row_spec_dup(&op, spec);

    *m = (Making){.forge = forge,
                  .repo = repo_ref(repo),
                  .op = &op,
                  .spec = copy,
                  .commit_oid = copy->commit_oid,
                  .lines = json_incref(copy->lines),
                  .done = done,
                  .data = data};
    thread_get(forge, repo, spec->number, "pull", on_pull, m);
}

static bool
run_add(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    return line_comment_add_row(job, data, ret_value, error);
}

void
line_comment_add(Forge *forge, Repo *repo, const LineSpec *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(LineSpec, actor),
                                        ROW_AT_TEXT(LineSpec, body),
                                        ROW_AT_TEXT(LineSpec, path),
                                        ROW_AT_TEXT(LineSpec, side),
                                        ROW_AT_TEXT(LineSpec, diff_hunk),
                                        ROW_AT_TEXT(LineSpec, commit_oid),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(LineSpec), members, run_add};

    if (spec->in_reply_to > 0 || spec->path == NULL) {
        row_run(forge, repo, &op, spec, done, data);
        return;
    }
    Making *m = g_new0(Making, 1);
    LineSpec *copy = row_spec_dup(&op, spec);

    g_assert(spec->diff_hunk == NULL);
    *m = (Making){.forge = forge,
                  .repo = repo_ref(repo),
                  .op = &op,
                  .spec = copy,
                  .ret_hunk = &copy->diff_hunk,
                  .commit_oid = copy->commit_oid,
                  .lines = json_pack("[{s:s, s:s?, s:I}]", "path", spec->path, "side", spec->side, "line",
                                     (json_int_t)spec->line),
                  .done = done,
                  .data = data};
    thread_get(forge, repo, spec->number, "pull", on_pull, m);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/diff.h"

#include <string.h>

#include "base/err.h"
#include "forge/contents.h"
#include "forge/diff-parse.h"
#include "forge/diff-raw.h"
#include "forge/git-private.h"

#define EMPTY_TREE "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

static void
add(GPtrArray *args, const char *arg)
{
    g_ptr_array_add(args, g_strdup(arg));
}

static GPtrArray *
make_args(const DiffSpec *spec, const char *from, const char *const *formats)
{
    GPtrArray *args = g_ptr_array_new_with_free_func(g_free);

    add(args, "-c");
    g_ptr_array_add(args, g_strdup_printf("core.bigFileThreshold=%dm", DIFF_BLOB_MAX_MIB));
    add(args, "diff-tree");
    for (guint i = 0; formats[i] != NULL; i++)
        add(args, formats[i]);
    add(args, "-r");
    add(args, "-M");
    g_ptr_array_add(args, g_strdup_printf("-l%d", DIFF_RENAMES_MAX));
    add(args, "--full-index");
    add(args, "--no-ext-diff");
    add(args, "--no-textconv");
    add(args, "--submodule=short");
    if (from != NULL)
        g_ptr_array_add(args, g_strconcat("--skip-to=", from, NULL));
    add(args, spec->old != NULL ? spec->old : EMPTY_TREE);
    add(args, spec->new);
    add(args, "--");
    if (spec->path != NULL && spec->path[0] != '\0')
        add(args, spec->path);
    g_ptr_array_add(args, NULL);
    return args;
}

static bool
spec_is_valid(const DiffSpec *spec, GError **error)
{
    if ((spec->old != NULL && !git_oid_is_valid(spec->old)) || !git_oid_is_valid(spec->new))
        return err_set(error, ERR_INVALID, "this is no object's name");
    if (spec->from != NULL && (spec->from[0] == '\0' || strlen(spec->from) > DIFF_PATH_MAX))
        return err_set(error, ERR_INVALID, "no page of changes begins there");
    return spec->path == NULL || contents_path_is_valid(spec->path, error);
}

static bool
on_output(const guint8 *bytes, size_t n, void *ctx)
{
    return diff_parser_feed(ctx, bytes, n);
}

static DiffPage *
read_page(GitRepo *repo, const DiffSpec *spec, const char *from, const DiffParserSpec *bounds, GError **error)
{
    const char *formats[] = {"-z", "--raw", bounds->patches ? "-p" : NULL, NULL};
    g_autoptr(GPtrArray) args = make_args(spec, from, formats);
    g_autoptr(DiffParser) parser = diff_parser_new(bounds);
    g_autoptr(GError) problem = NULL;
    GitCall call = {
        .args = (const char *const *)args->pdata,
        .timeout_ms = DIFF_TIMEOUT_MS,
        .take = on_output,
        .ctx = parser,
        .cancel = spec->cancel,
    };

    if (git_run(repo, &call, NULL, &problem))
        return diff_parser_end(parser, false, error);
    /* Patches that take too long are left out; the files are known. */
    if (err_kind(problem) == ERR_TIMEOUT && diff_parser_is_listed(parser))
        return diff_parser_end(parser, true, error);
    g_propagate_error(error, g_steal_pointer(&problem));
    return NULL;
}

/* The name of the change that `skip` others come before; NULL in `*ret_from`: there are not so many. */
static bool
find_start(GitRepo *repo, const DiffSpec *spec, char **ret_from, GError **error)
{
    DiffParserSpec bounds = {.skip = spec->skip, .read_max = DIFF_READ_MAX};
    g_autoptr(DiffPage) page = read_page(repo, spec, NULL, &bounds, error);

    if (page == NULL)
        return false;
    *ret_from = g_steal_pointer(&page->next);
    return true;
}

DiffPage *
diff_files(GitRepo *repo, const DiffSpec *spec, GError **error)
{
    g_autofree char *found = NULL;
    DiffParserSpec bounds = {
        .max = spec->max > 0 ? MIN(spec->max, DIFF_PAGE_MAX) : DIFF_PAGE_MAX,
        .patches = !spec->names_only,
        .patch_max = DIFF_PATCH_MAX,
        .line_max = DIFF_LINE_MAX,
        .text_max = DIFF_TEXT_MAX,
        .read_max = DIFF_READ_MAX,
    };

    if (!spec_is_valid(spec, error))
        return NULL;
    if (spec->from == NULL && spec->skip > 0) {
        if (!find_start(repo, spec, &found, error))
            return NULL;
        if (found == NULL) {
            DiffPage *none = g_new0(DiffPage, 1);

            none->files = g_ptr_array_new_with_free_func((GDestroyNotify)diff_file_free);
            return none;
        }
    }
    return read_page(repo, spec, found != NULL ? found : spec->from, &bounds, error);
}

static bool
count_totals(GitRepo *repo, const DiffSpec *spec, DiffTotals *ret_totals, GError **error)
{
    g_autoptr(GByteArray) out = NULL;
    g_autoptr(GPtrArray) args = make_args(spec, NULL, GIT_ARGS("--shortstat"));
    GitCall call = {.args = (const char *const *)args->pdata, .timeout_ms = DIFF_TIMEOUT_MS};

    if (!git_run(repo, &call, &out, error))
        return false;
    g_autofree char *text = g_strndup((const char *)out->data, out->len);

    return diff_totals_parse(g_strstrip(text), ret_totals) ||
           err_set(error, ERR_INTERNAL, "git summed changes up as '%s'", text);
}

/* The lines of all files are counted for it, also when a page shows few of them: so it is done once. */
bool
diff_totals(GitRepo *repo, const char *old, const char *new, DiffTotals *ret_totals, GError **error)
{
    DiffSpec spec = {.old = old, .new = new};
    GitFact fact = {0};

    if (!spec_is_valid(&spec, error))
        return false;
    g_strlcpy(fact.old, old != NULL ? old : EMPTY_TREE, sizeof fact.old);
    g_strlcpy(fact.new, new, sizeof fact.new);
    if (git_fact_find(repo, &fact)) {
        *ret_totals = (DiffTotals){(guint)fact.values[0], fact.values[1], fact.values[2]};
        return true;
    }
    if (!count_totals(repo, &spec, ret_totals, error))
        return false;
    fact.values[0] = ret_totals->files;
    fact.values[1] = ret_totals->additions;
    fact.values[2] = ret_totals->deletions;
    git_fact_keep(repo, &fact);
    return true;
}

typedef struct Stream {
    DiffTake take;
    void *ctx;
    guint64 sent;
    bool cut;
} Stream;

static bool
pass_on(const guint8 *bytes, size_t n, void *ctx)
{
    Stream *s = ctx;

    s->cut = s->sent + n > DIFF_STREAM_MAX;
    n = s->cut ? (size_t)(DIFF_STREAM_MAX - s->sent) : n;
    s->sent += n;
    return s->take(bytes, n, s->ctx) && !s->cut;
}

bool
diff_stream(GitRepo *repo, const DiffSpec *spec, DiffTake take, void *ctx, bool *ret_cut, GError **error)
{
    Stream stream = {.take = take, .ctx = ctx};

    if (!spec_is_valid(spec, error))
        return false;
    g_autoptr(GPtrArray) args = make_args(spec, NULL, GIT_ARGS("-p"));
    GitCall call = {
        .args = (const char *const *)args->pdata,
        .timeout_ms = DIFF_TIMEOUT_MS,
        .take = pass_on,
        .ctx = &stream,
        .cancel = spec->cancel,
    };

    if (!git_run(repo, &call, NULL, error))
        return false;
    if (ret_cut != NULL)
        *ret_cut = stream.cut;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/v3/push.h"
#include "base/err.h"
#include "forge/commit.h"
#include "forge/records.h"
#include "http/url.h"

/* What is below refs/ besides is the server's own. */
#define BRANCHES "refs/heads/"
#define TAGS "refs/tags/"

static Json *
ref_json(const V3Place *place, const char *ref, const char *oid, const char *type)
{
    g_autofree char *coded = url_encode_path(ref);
    g_autofree char *url = g_strdup_printf("%s/git/%s", place->api, coded);
    g_autofree char *at = g_strdup_printf("%s/git/%ss/%s", place->api, type, oid);

    return json_pack("{s:s, s:s, s:s, s:{s:s, s:s, s:s}}", "ref", ref, "node_id", ref, "url", url, "object",
                     "sha", oid, "type", type, "url", at);
}

/* ---- reading ---- */

typedef struct RefsWork {
    V3Work work;
    const char *wanted; /* in full; of a list: how their names begin */
    bool exactly;
} RefsWork;

/* "OID TYPE REF" */
static bool
is_wanted(const char *line, const void *ctx)
{
    const RefsWork *w = ctx;
    const char *type = strchr(line, ' ');
    const char *ref = type != NULL ? strchr(type + 1, ' ') : NULL;

    if (ref == NULL)
        return false;
    return w->exactly ? strcmp(ref + 1, w->wanted) == 0 : g_str_has_prefix(ref + 1, w->wanted);
}

static bool
list_work(GitRepo *git, void *data, GError **error)
{
    RefsWork *w = data;
    const ForgePage *page = &w->work.page;
    const RecordsSpec spec = {
        .args = GIT_ARGS("for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", "--", BRANCHES,
                         TAGS),
        .separator = '\n',
        .skip = w->exactly ? 0 : (page->page - 1) * page->per_page,
        .max = w->exactly ? 1 : page->per_page,
        .keep = is_wanted,
        .keep_ctx = w,
    };
    g_autoptr(GPtrArray) lines = records_read(git, &spec, &w->work.more, error);
    g_autoptr(Json) list = json_array();

    for (guint i = 0; lines != NULL && i < lines->len; i++) {
        g_auto(GStrv) words = g_strsplit(lines->pdata[i], " ", 3);

        json_array_append_new(list, ref_json(&w->work.place, words[2], words[0], words[1]));
    }
    if (lines == NULL)
        return false;
    if (w->exactly && lines->len == 0)
        return err_set(error, ERR_NOT_FOUND, "there is no %s", w->wanted);
    w->work.value = w->exactly ? json_incref(json_array_get(list, 0)) : g_steal_pointer(&list);
    return true;
}

static void
read_refs(ApiCall *call, bool exactly)
{
    const char *name = call_param(call, "ref");

    if (name != NULL && !g_utf8_validate(name, -1, NULL)) {
        respond_error(call->request, 404, "there is no such ref");
        return;
    }
    RefsWork *w = V3_WORK_NEW(RefsWork, call);

    if (w == NULL)
        return;
    g_autofree char *wanted = g_strconcat("refs/", name, NULL);

    w->wanted = v3_work_text(&w->work, wanted);
    w->exactly = exactly;
    w->work.paged = !exactly;
    v3_read_page(call, &w->work.page);
    v3_work_read(&w->work, "list refs", list_work);
}

static void
get_ref(ApiCall *call)
{
    read_refs(call, true);
}

static void
list_refs(ApiCall *call)
{
    read_refs(call, false);
}

/* ---- moving ---- */

typedef struct RefWork {
    V3Push push;
    const char *sha; /* NULL: it is removed */
    bool make, force;
} RefWork;

static bool
move_work(GitRepo *git, void *data, GError **error)
{
    RefWork *w = data;
    V3Work *work = &w->push.work;
    const V3Move move = {.old = w->make ? git_oid_zero : NULL,
                         .new = w->sha != NULL ? w->sha : git_oid_zero,
                         .force = w->force};
    g_autoptr(GError) problem = NULL;

    if (!v3_push_move(git, &w->push, &move, &problem)) {
        ErrKind kind = err_kind(problem);

        if (kind == ERR_NOT_FOUND)
            return err_set(error, ERR_INVALID, "Reference does not exist");
        if (kind == ERR_CONFLICT && w->make)
            return err_set(error, ERR_INVALID, "Reference already exists: %s", problem->message);
        g_propagate_error(error, g_steal_pointer(&problem));
        return false;
    }
    if (w->sha == NULL)
        return true;
    g_autofree char *type = git_text(git, GIT_READ, GIT_ARGS("cat-file", "-t", w->sha), error);

    if (type == NULL)
        return false;
    work->value = ref_json(&work->place, w->push.ref, w->sha, type);
    return true;
}

typedef struct RefWish {
    const char *ref, *sha; /* of `body`, but for `ref`; sha NULL: it is removed */
    Json *body;            /* NULL: none */
    bool make, force;
} RefWish;

static void
begin_move(ApiCall *call, const RefWish *wish, const char *what)
{
    RefWork *w = V3_WORK_NEW(RefWork, call);

    if (w == NULL)
        return;
    w->push.ref = g_string_chunk_insert(w->push.work.texts, wish->ref);
    w->push.work.body = json_incref(wish->body);
    w->push.work.status = wish->make ? 201 : 200;
    w->sha = wish->sha;
    w->make = wish->make;
    w->force = wish->force;
    v3_push_begin(&w->push, what, move_work);
}

static void
create(ApiCall *call, Json *body, void *data)
{
    RefWish wish = {.body = body, .make = true};
    const JsonField fields[] = {
        {"ref", JSON_KIND_STRING, &wish.ref, true, 1, COMMIT_NAME_MAX},
        {"sha", JSON_KIND_STRING, &wish.sha, true, GIT_OID_LEN, GIT_OID_LEN},
        {NULL},
    };

    if (v3_read_fields(call, body, fields, "Reference"))
        begin_move(call, &wish, "make a ref");
}

static void
post_ref(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

static char *
dup_full(ApiCall *call)
{
    return g_strconcat("refs/", call_param(call, "ref"), NULL);
}

static void
update(ApiCall *call, Json *body, void *data)
{
    g_autofree char *ref = dup_full(call);
    RefWish wish = {.ref = ref, .body = body};
    const JsonField fields[] = {
        {"sha", JSON_KIND_STRING, &wish.sha, true, GIT_OID_LEN, GIT_OID_LEN},
        {"force", JSON_KIND_BOOL, &wish.force},
        {NULL},
    };

    if (v3_read_fields(call, body, fields, "Reference"))
        begin_move(call, &wish, "move a ref");
}

static void
patch_ref(ApiCall *call)
{
    call_read_json(call, update, NULL);
}

static void
delete_ref(ApiCall *call)
{
    g_autofree char *ref = dup_full(call);

    begin_move(call, &(RefWish){.ref = ref}, "remove a ref");
}

const ApiRoute v3_refs_routes[] = {
    {"GET", V3_REPO "/git/ref/{ref...}", SCOPE_READ, ROUTE_BASIC, get_ref},
    {"GET", V3_REPO "/git/matching-refs/{ref...}", SCOPE_READ, ROUTE_BASIC, list_refs},
    {"GET", V3_REPO "/git/refs", SCOPE_READ, ROUTE_BASIC, list_refs},
    {"POST", V3_REPO "/git/refs", SCOPE_BOX, ROUTE_BASIC, post_ref},
    {"PATCH", V3_REPO "/git/refs/{ref...}", SCOPE_BOX, ROUTE_BASIC, patch_ref},
    {"DELETE", V3_REPO "/git/refs/{ref...}", SCOPE_BOX, ROUTE_BASIC, delete_ref},
    {NULL},
};

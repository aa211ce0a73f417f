/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"
#include "api/v3/push.h"
#include "base/clock.h"
#include "base/err.h"
#include "forge/pull.h"

static const char resource[] = "PullRequest";

typedef struct Update {
    V3Push push;
    const char *head, *base; /* branches */
    const char *head_oid, *base_oid;
} Update;

static bool
refuse(Update *update, const char *text, GError **error)
{
    update->push.work.error_status = 422;
    return err_set(error, ERR_CONFLICT, "%s", text);
}

/* The base into the branch, by a merge commit in the name of whoever asks. */
static bool
merge_base_in(GitRepo *git, void *data, GError **error)
{
    Update *update = data;
    V3Work *work = &update->push.work;
    g_autofree char *message = g_strdup_printf("Merge branch '%s' into %s\n", update->base, update->head);
    MergeSpec spec = {.base = update->base_oid,
                      .head = update->head_oid,
                      .committer = {"Coop", "coop@localhost", clock_wall_us() / G_USEC_PER_SEC, 0},
                      .message = message};
    g_auto(MergeDone) done = {0};

    if (!v3_person_read(work, NULL, &spec.author, error) || !merge_update_branch(git, &spec, &done, error))
        return false;
    if (done.conflict != NULL)
        return refuse(update, "merge conflict between base and head", error);
    if (strcmp(done.oid, update->head_oid) == 0)
        return refuse(update, "There are no new commits on the base branch.", error);
    if (!v3_push_move(git, &update->push, &(V3Move){.old = update->head_oid, .new = done.oid}, error)) {
        work->error_status = error != NULL && err_kind(*error) == ERR_CONFLICT ? 422 : 0;
        return false;
    }
    work->value = json_pack("{s:s, s:s}", "message", "Updating pull request branch.", "url", work->place.api);
    work->status = 202;
    return true;
}

static void
on_pull(Json *pull, const GError *error, void *data)
{
    V3Ask *ask = data;
    g_autofree char *expected = (char *)(guintptr)g_steal_pointer(&ask->more);
    bool is_open = error == NULL && strcmp(row_text(pull, "state"), "open") == 0;
    bool moved = is_open && expected != NULL && strcmp(expected, row_text(pull, "head_oid")) != 0;
    Update *update;

    if (error != NULL) {
        v3_ask_fail(ask, error);
        return;
    }
    if (!is_open || moved) {
        v3_respond_invalid(ask->call, &(V3Invalid){resource, moved ? "expected_head_sha" : NULL,
                                                   moved ? "invalid" : "custom",
                                                   moved ? "the head is another one" : "it is closed"});
    } else if ((update = V3_WORK_NEW(Update, ask->call)) != NULL) {
        V3Work *work = &update->push.work;
        g_autofree char *ref = g_strconcat("refs/heads/", row_text(pull, "head"), NULL);
        g_autofree char *what = g_strdup_printf("update #%" G_GINT64_FORMAT, ask->number);

        update->head = v3_work_text(work, row_text(pull, "head"));
        update->base = v3_work_text(work, row_text(pull, "base"));
        update->head_oid = v3_work_text(work, row_text(pull, "head_oid"));
        update->base_oid = v3_work_text(work, row_text(pull, "base_oid"));
        update->push.ref = (char *)(guintptr)v3_work_text(work, ref);
        v3_push_begin(&update->push, v3_work_text(work, what), merge_base_in);
    }
    v3_ask_free(ask);
}

static void
update(ApiCall *call, Json *body, void *data)
{
    const char *expected = NULL;
    const JsonField fields[] = {{"expected_head_sha", JSON_KIND_STRING, &expected, false, 1, GIT_OID_LEN},
                                {NULL}};
    V3Ask *ask;

    if (!v3_read_fields(call, body, fields, resource) ||
        (ask = v3_ask_new(call, resource, 202, NULL)) == NULL)
        return;
    ask->more = g_strdup(expected);
    thread_get(call->api->forge, ask->repo, ask->number, "pull", on_pull, ask);
}

static void
put_update(ApiCall *call)
{
    call_read_json(call, update, NULL);
}

const ApiRoute v3_pull_update_routes[] = {
    {"PUT", V3_REPO "/pulls/{number}/update-branch", SCOPE_BOX, ROUTE_BASIC, put_update},
    {NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/repos.h"
#include "api/state.h"
#include "api/v3/v3.h"

enum { TEXTS_BLOCK = 256 };

void
v3_place_init(V3Place *place, Api *api, const Repo *repo)
{
    *place = (V3Place){.server = g_strdup(api->address), .root = g_strconcat(api->address, V3, NULL)};
    if (repo == NULL)
        return;
    RepoInfo info;

    repo_info(repo, &info);
    place->api = g_strdup_printf("%s/repos/%s/%s", place->root, info.owner, info.name);
    place->html = g_strdup_printf("%s/%s/%s", place->server, info.owner, info.name);
}

void
v3_place_clear(V3Place *place)
{
    g_free(place->server);
    g_free(place->root);
    g_free(place->api);
    g_free(place->html);
    *place = (V3Place){0};
}

V3Work *
v3_work_new(ApiCall *call, size_t size)
{
    Repo *repo = call_repo(call);
    g_autoptr(GError) error = NULL;

    if (repo == NULL)
        return NULL;
    if (!repo_require_ready(repo, &error)) {
        call_respond_error(call, error);
        return NULL;
    }
    V3Work *work = g_malloc0(size);

    *work = (V3Work){.call = call, .repo = repo_ref(repo), .status = 200};
    work->texts = g_string_chunk_new(TEXTS_BLOCK);
    http_request_ref(call->request);
    v3_place_init(&work->place, call->api, repo);
    return work;
}

const char *
v3_work_text(V3Work *work, const char *text)
{
    return text != NULL ? g_string_chunk_insert(work->texts, text) : NULL;
}

static void
drop_answer(V3Work *work)
{
    g_clear_pointer(&work->value, json_decref);
    g_clear_pointer(&work->bytes, g_bytes_unref);
}

void
v3_work_drop(V3Work *work)
{
    if (work == NULL)
        return;
    drop_answer(work);
    json_decref(work->body);
    v3_place_clear(&work->place);
    g_string_chunk_free(work->texts);
    repo_unref(work->repo);
    http_request_unref(work->call->request);
    g_free(work);
}

static void
free_work(gpointer data)
{
    v3_work_drop(data);
}

/* May be called again after a try that failed. */
static bool
run(GitRepo *git, void *data, GError **error)
{
    V3Work *work = data;

    drop_answer(work);
    return work->func(git, work, error);
}

static void
on_ran(void *data, const GError *error)
{
    V3Work *work = data;

    if (error != NULL) {
        call_respond_error(work->call, error);
        return;
    }
    if (work->then != NULL) {
        work->then(work);
        return;
    }
    if (work->paged)
        v3_link_more(work->call, &work->page, work->more);
    if (work->bytes != NULL)
        v3_respond_bytes(work->call, work->type, work->bytes);
    else if (work->value != NULL)
        v3_respond(work->call, work->status, g_steal_pointer(&work->value));
    else
        v3_respond_empty(work->call);
}

void
v3_work_read(V3Work *work, const char *what, V3WorkFunc func)
{
    work->func = func;
    forge_read(work->call->api->forge, work->repo, what, run, on_ran, work, free_work);
}

void
v3_work_write(V3Work *work, const char *what, V3WorkFunc func)
{
    work->func = func;
    forge_write(work->call->api->forge, work->repo, what, run, on_ran, work, free_work);
}

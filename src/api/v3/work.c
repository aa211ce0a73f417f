/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "api/repos.h"
#include "api/state.h"
#include "api/v3/v3.h"
#include "base/err.h"
#include "forge/commit.h"
#include "forge/people.h"
#include "http/file.h"

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
    place->branch = g_strdup(info.default_branch);
}

void
v3_place_clear(V3Place *place)
{
    g_free(place->server);
    g_free(place->root);
    g_free(place->api);
    g_free(place->html);
    g_free(place->branch);
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

    *work = (V3Work){.call = call, .repo = repo_ref(repo), .status = 200, .fd = -1};
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
    v3_encoded_clear(&work->encoded);
    if (work->fd >= 0)
        close(g_steal_fd(&work->fd));
    work->error_status = 0;
}

void
v3_work_drop(V3Work *work)
{
    if (work == NULL)
        return;
    drop_answer(work);
    json_decref(work->body);
    json_decref(work->caller);
    repo_settings_free(work->settings);
    v3_place_clear(&work->place);
    g_string_chunk_free(work->texts);
    repo_unref(work->repo);
    http_request_unref(work->call->request);
    g_free(work);
}

/* ---- in a thread ---- */

/* May be called again after a try that failed.  Large answers are encoded here, not on the loop. */
static bool
run(GitRepo *git, void *data, GError **error)
{
    V3Work *work = data;

    drop_answer(work);
    if (!work->func(git, work, error))
        return false;
    if (work->bytes != NULL)
        v3_encode_bytes(&work->encoded, work->type, g_steal_pointer(&work->bytes));
    else if (work->value != NULL)
        v3_encode(&work->encoded, work->value);
    return true;
}

static bool
read_rows(DbTx *tx, void *data, GError **error)
{
    V3Work *work = data;
    g_autoptr(People) people = people_new(tx);

    g_clear_pointer(&work->settings, repo_settings_free);
    g_clear_pointer(&work->caller, json_decref);
    work->settings = repo_settings_load(tx, git_repo_id(repo_git(work->repo)), error);
    if (work->settings == NULL)
        return false;
    work->caller = people_json(people, work->call->caller.actor, error);
    return work->caller != NULL;
}

/* ---- on the loop ---- */

static void
respond_failure(const V3Work *work, const GError *error)
{
    if (work->error_status != 0)
        respond_error(work->call->request, work->error_status, error->message);
    else
        call_respond_error(work->call, error);
}

static void
send_file(V3Work *work)
{
    HttpRequest *request = work->call->request;

    v3_add_headers(request);
    http_response_header(request, "Cache-Control", "private, no-cache");
    http_respond_file(request, g_steal_fd(&work->fd), &(HttpFileSpec){.type = work->type, .whole = true});
}

void
v3_work_end(V3Work *work, const GError *error)
{
    if (error != NULL) {
        respond_failure(work, error);
    } else {
        if (work->paged)
            v3_link_more(work->call, &work->page, work->more);
        if (work->fd >= 0)
            send_file(work);
        else if (work->encoded.bytes != NULL)
            v3_respond_encoded(work->call, work->status, &work->encoded);
        else
            v3_respond_empty(work->call);
    }
    v3_work_drop(work);
}

static void
on_ran(void *data, const GError *error)
{
    V3Work *work = data;

    if (error == NULL && work->then != NULL)
        work->then(work);
    else
        v3_work_end(work, error);
}

static void
begin(V3Work *work)
{
    Forge *forge = work->call->api->forge;

    if (work->writes)
        forge_write(forge, work->repo, work->what, run, on_ran, work, NULL);
    else
        forge_read(forge, work->repo, work->what, run, on_ran, work, NULL);
}

static void
on_rows(void *data, const GError *error)
{
    V3Work *work = data;

    if (error != NULL)
        v3_work_end(work, error);
    else
        begin(work);
}

static void
queue(V3Work *work, const char *what, V3WorkFunc func)
{
    work->what = what;
    work->func = func;
    if (work->is_rowed)
        db_read(work->call->api->db, read_rows, on_rows, work, NULL);
    else
        begin(work);
}

void
v3_work_read(V3Work *work, const char *what, V3WorkFunc func)
{
    queue(work, what, func);
}

void
v3_work_write(V3Work *work, const char *what, V3WorkFunc func)
{
    work->writes = true;
    queue(work, what, func);
}

/* ---- names of commits ---- */

static char *
resolve_default(GitRepo *git, const V3Place *place, GError **error)
{
    g_autofree char *ref = g_strconcat("refs/heads/", place->branch, NULL);
    g_autoptr(GError) problem = NULL;
    char *oid = commit_resolve(git, ref, &problem);

    if (oid == NULL && err_kind(problem) == ERR_NOT_FOUND)
        err_set(error, ERR_CONFLICT, "Git Repository is empty.");
    else if (oid == NULL)
        g_propagate_error(error, g_steal_pointer(&problem));
    return oid;
}

char *
v3_resolve(GitRepo *git, const V3Place *place, const char *name, GError **error)
{
    g_autoptr(GError) problem = NULL;

    if (name == NULL || strcmp(name, "HEAD") == 0)
        return resolve_default(git, place, error);
    char *oid = commit_resolve(git, name, &problem);

    if (oid == NULL && (g_str_has_prefix(name, "heads/") || g_str_has_prefix(name, "tags/"))) {
        g_autofree char *full = g_strconcat("refs/", name, NULL);

        g_clear_error(&problem);
        oid = commit_resolve(git, full, &problem);
    }
    if (oid != NULL)
        return oid;
    /* What can be no name names nothing. */
    if (err_kind(problem) == ERR_INVALID)
        err_set(error, ERR_NOT_FOUND, "%s", problem->message);
    else
        g_propagate_error(error, g_steal_pointer(&problem));
    return NULL;
}

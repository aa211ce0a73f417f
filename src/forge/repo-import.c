/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/bring.h"
#include "forge/forge-private.h"
#include "forge/push.h"

enum { WATCH_MS = 500, TELL_EVERY = 5 /* percent */ };

/* One import, or one fetch of a mirror.  `bring` is the thread's while it works; the loop looks at
 * its percent alone. */
typedef struct Import {
    LoopTimer watch; /* first: the loop hands back its address */
    Repo *repo;
    const char *operation; /* "import", "fetch" */
    Bring bring;
    GitHostSpec host;
    char *credentials, *actor;
    gint told;
} Import;

/* ---- in a thread ---- */

static bool
import_work(GitRepo *git, void *data, GError **error)
{
    Import *i = data;
    Bring *b = &i->bring;
    bool is_url = repo_source_is_url(b->source);

    bring_clear(b);
    if (!repo_init_folder(git, b->branch[0] != '\0' ? b->branch : repo_branch_default, error))
        return false;
    FAILPOINT("repo-import-begun");
    g_autofree char *folder = is_url ? NULL : repo_source_find_folder(b->source, error);

    if (!is_url && folder == NULL)
        return false;
    if (!(is_url ? bring_from_url(git, b, error) : bring_from_folder(git, b, &i->host, error)))
        return false;
    FAILPOINT("repo-import-brought");
    return true;
}

static bool
fetch_work(GitRepo *git, void *data, GError **error)
{
    Import *i = data;

    bring_clear(&i->bring);
    return bring_from_url(git, &i->bring, error);
}

/* ---- on the loop ---- */

static void
import_free(Import *i)
{
    Loop *loop = i->repo->forge->spec.loop;

    loop_timer_cancel(loop, &i->watch);
    bring_clear(&i->bring);
    g_free((gpointer)(guintptr)i->bring.source);
    g_free((gpointer)(guintptr)i->bring.branch);
    repo_wipe(i->credentials);
    g_free(i->actor);
    repo_unref(i->repo);
    g_free(i);
}

static void
on_watch(LoopTimer *timer)
{
    Import *i = (Import *)timer;
    Repo *r = i->repo;
    gint percent = g_atomic_int_get(&i->bring.percent);

    r->percent = percent;
    if (percent >= i->told + TELL_EVERY) {
        i->told = percent;
        repo_tell(
            r, &(RepoEvent){.kind = "git.progressed",
                            .actor = i->actor,
                            .data = json_pack("{s:s, s:i}", "operation", i->operation, "percent", percent)});
    }
    loop_timer_set(r->forge->spec.loop, &i->watch, WATCH_MS);
}

static void
import_failed(Import *i, const GError *error)
{
    Repo *r = i->repo;
    RepoEvent event = {.kind = "git.failed",
                       .actor = i->actor,
                       .data = json_pack("{s:s, s:s}", "operation", i->operation, "error", error->message)};

    /* A mirror that could be read once is still of use when its upstream is away. */
    repo_set_state(r, r->state == REPO_IMPORTING ? REPO_FAILED : r->state, error);
    repo_rows_update(r, &event, NULL, NULL);
}

typedef struct Arrived {
    Forge *forge; /* it may be freed before the row is written */
    Repo *repo;
    char *actor;
} Arrived;

static void
on_arrived(void *data, const GError *error)
{
    g_autofree Arrived *a = data;
    g_autoptr(ForgeRef) f = a->forge;
    g_autoptr(Repo) r = a->repo;
    g_autofree char *actor = a->actor;

    if (error != NULL)
        log_error("forge", "an import's end was not written", log_str("repository", r->folded),
                  log_gerror(error));
    if (r->state == REPO_READY && f->work != NULL) {
        repo_upkeep_soon(r);
        forge_settle_refs(f, r, actor, NULL, NULL);
    }
}

static void
import_ended(Import *i)
{
    Repo *r = i->repo;
    const Bring *b = &i->bring;
    bool is_first = r->state == REPO_IMPORTING;
    RepoEvent event = {.kind = is_first ? "git.cloned" : "git.fetched",
                       .actor = i->actor,
                       .data = json_pack("{s:s, s:i, s:i, s:i, s:i}", "operation", i->operation, "moved",
                                         (int)b->moved, "removed", (int)b->removed, "left_out",
                                         (int)b->left_out, "kept_back", (int)b->kept_back)};

    g_free(r->default_branch);
    r->default_branch = g_strdup(b->head);
    r->fetched_us = clock_wall_us();
    if (is_first || b->moved + b->removed > 0)
        r->pushed_us = r->fetched_us;
    Arrived *a = g_new(Arrived, 1);

    *a = (Arrived){forge_ref(r->forge), repo_ref(r), g_strdup(i->actor)};
    repo_rows_arrive(r, &event, on_arrived, a);
}

static void
on_brought(void *data, const GError *error)
{
    Import *i = data;

    i->repo->percent = -1;
    i->repo->fetching = false;
    if (error == NULL)
        import_ended(i);
    else if (!g_error_matches(error, ERR_DOMAIN, ERR_CANCELLED) && i->repo->state != REPO_REMOVING)
        import_failed(i, error); /* else the next server goes on; what is removed is nobody's */
    import_free(i);
}

static Import *
import_new(Repo *r, const char *operation, const char *actor)
{
    Forge *f = r->forge;
    Import *i = g_new0(Import, 1);

    *i = (Import){.watch.expired = on_watch,
                  .repo = repo_ref(r),
                  .operation = operation,
                  .bring = {.source = g_strdup(r->upstream != NULL ? r->upstream : r->source),
                            .branch = g_strdup(r->default_branch),
                            .mirror = r->upstream != NULL,
                            .cancel = &r->cancel,
                            .size_max = f->spec.fetch_max},
                  .host = {.launcher = f->spec.git, .hooks = f->spec.hooks, .holder = f->holder},
                  .actor = g_strdup(actor)};
    if (f->credentials != NULL && repo_source_is_url(i->bring.source))
        i->credentials = f->credentials(i->bring.source, f->credentials_ctx);
    i->bring.credentials = i->credentials;
    r->fetching = true;
    r->percent = 0;
    loop_timer_set(f->spec.loop, &i->watch, WATCH_MS);
    return i;
}

void
repo_import(Repo *repo, const char *credentials)
{
    Import *i = import_new(repo, "import", repo->actor);

    if (credentials != NULL) {
        repo_wipe(i->credentials);
        i->credentials = g_strdup(credentials);
        i->bring.credentials = i->credentials;
    }
    forge_write_slow(repo->forge, repo, "import", import_work, on_brought, i, NULL);
}

/* ---- asked for ---- */

static void
on_again_row(void *data, const GError *error)
{
    g_autoptr(Repo) repo = data;

    if (error == NULL)
        repo_import(repo, NULL);
    else
        repo_set_state(repo, REPO_FAILED, error);
}

static bool
may_fetch(Repo *r, GError **error)
{
    if (r->fetching || r->state == REPO_IMPORTING)
        return err_set(error, ERR_CONFLICT, "repository '%s/%s' is being fetched", r->owner, r->name);
    if (r->state == REPO_REMOVING)
        return repo_require_ready(r, error);
    if (r->state == REPO_FAILED ? r->source == NULL : r->upstream == NULL)
        return err_set(error, ERR_CONFLICT, "repository '%s/%s' mirrors no other", r->owner, r->name);
    return true;
}

bool
repo_fetch(Repo *repo, const char *actor, GError **error)
{
    if (!may_fetch(repo, error))
        return false;
    if (repo->state == REPO_READY) {
        forge_write_slow(repo->forge, repo, "fetch", fetch_work, on_brought, import_new(repo, "fetch", actor),
                         NULL);
    } else {
        repo_set_state(repo, REPO_IMPORTING, NULL);
        repo_rows_update(repo, NULL, on_again_row, repo_ref(repo));
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/smart.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/push-private.h"
#include "forge/repo.h"
#include "forge/smart-private.h"
#include "wire/hook.h"

Smart *
smart_new(Forge *forge, Loop *loop)
{
    Smart *s = g_new0(Smart, 1);

    s->forge = forge;
    s->loop = loop;
    return s;
}

/* ---- exchanges ---- */

Exchange *
smart_exchange_new(Smart *s, Repo *repo, HttpRequest *request, const SmartCaller *caller)
{
    Exchange *x = g_new0(Exchange, 1);
    RepoInfo info;

    repo_info(repo, &info);
    x->smart = s;
    x->repo = repo_ref(repo);
    x->git = git_repo_ref(repo_git(repo));
    x->request = request != NULL ? http_request_ref(request) : NULL;
    x->actor = g_strdup(caller->actor);
    x->box_id = g_strdup(caller->box_id);
    x->branch = g_strdup(caller->branch);
    x->default_branch = g_strdup(info.default_branch);
    x->ask = (SmartAsk){.actor = x->actor,
                        .box_id = x->box_id,
                        .branch = x->branch,
                        .may_force = caller->may_force,
                        .may_advance = caller->may_advance,
                        .default_branch = x->default_branch,
                        .root = git_repo_path(repo_git(repo))};
    x->in.fd = x->out.fd = x->err.fd = x->report.fd = -1;
    x->next = s->exchanges;
    if (x->next != NULL)
        x->next->prev = x;
    s->exchanges = x;
    s->n_exchanges++;
    repo_enter(repo);
    return x;
}

static void
leave(Exchange *x)
{
    if (x->repo == NULL)
        return;
    repo_leave(x->repo);
    g_clear_pointer(&x->repo, repo_unref);
    if (x->request != NULL)
        http_request_on_gone(x->request, NULL, NULL);
    g_clear_pointer(&x->request, http_request_unref);
}

void
exchange_free(Exchange *x)
{
    leave(x);
    git_repo_unref(x->git);
    repo_settings_free(x->settings);
    buf_clear(&x->to_child);
    buf_clear(&x->answer);
    buf_clear(&x->said);
    buf_clear(&x->moved);
    g_free(x->actor);
    g_free(x->box_id);
    g_free(x->branch);
    g_free(x->default_branch);
    g_free(x);
}

/* git takes most of it away itself.  Where another one is under way in the repository, that one's end
 * or the next start will do. */
static bool
clear_leftovers(GitRepo *git, void *data, GError **error)
{
    g_autoptr(GError) busy = NULL;

    return git_clear_stale(git, 0, NULL, &busy) || err_kind(busy) == ERR_CONFLICT ||
           (g_propagate_error(error, g_steal_pointer(&busy)), false);
}

void
smart_drop(Exchange *x)
{
    Smart *s = x->smart;

    exchange_close(x);
    if (x->spare)
        s->n_spares--;
    else if (x->cut && x->ask.service == SMART_PUSH)
        forge_write(s->forge, x->repo, "clear what a push left", clear_leftovers, NULL, NULL, NULL);
    *(x->prev != NULL ? &x->prev->next : &s->exchanges) = x->next;
    if (x->next != NULL)
        x->next->prev = x->prev;
    s->n_exchanges--;
    exchange_free(x);
}

/* ---- what has moved ---- */

static void
on_told(void *data, const GError *error)
{
    Exchange *x = data;

    if (error != NULL)
        log_warn("forge", "a push was not written down; the next start will", log_gerror(error));
    x->telling = false;
    if (x->smart == NULL)
        exchange_free(x);
    else
        exchange_told(x);
}

/* "OLD NEW REF": what our own hook says, after git has said it to the hook. */
static bool
read_move(char *line, ForgePush *push)
{
    char *new = strchr(line, ' ');
    char *ref = new != NULL ? strchr(new + 1, ' ') : NULL;

    if (ref == NULL)
        return false;
    *new = *ref = '\0';
    push->old = line;
    push->new = new + 1;
    push->ref = ref + 1;
    return git_oid_is_valid(push->old) && git_oid_is_valid(push->new) &&
           g_str_has_prefix(push->ref, "refs/") && g_utf8_validate(push->ref, -1, NULL);
}

void
smart_tell(Exchange *x)
{
    size_t n;
    const guint8 *bytes = buf_peek(&x->moved, &n);
    g_autofree char *text = g_strndup((const char *)bytes, n);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GArray) moves = g_array_new(FALSE, FALSE, sizeof(ForgePush));

    for (guint i = 0; lines[i] != NULL; i++) {
        ForgePush push = {.actor = x->actor, .box_id = x->box_id};

        if (lines[i][0] != '\0' && read_move(lines[i], &push))
            g_array_append_val(moves, push);
    }
    if (moves->len == 0)
        return;
    FAILPOINT("push-moved");
    x->telling = true;
    forge_push_all(x->smart->forge, x->repo, (const ForgePush *)(void *)moves->data, moves->len, on_told, x);
}

/* ---- the way in ---- */

static bool
read_settings(DbTx *tx, void *data, GError **error)
{
    Exchange *x = data;

    x->settings = repo_settings_load(tx, git_repo_id(x->git), error);
    return x->settings != NULL;
}

static void
on_settings(void *data, const GError *error)
{
    Exchange *x = data;

    x->reading = false;
    x->ask.settings = x->settings;
    if (x->smart == NULL) {
        exchange_free(x);
        return;
    }
    if (error != NULL) {
        log_warn("forge", "settings of a repository cannot be read", log_gerror(error));
        smart_exchange_refuse(x, 503, "the server cannot read the repository's settings");
    }
    if (error != NULL || http_request_is_gone(x->request)) {
        smart_drop(x);
        return;
    }
    Exchange *spare = smart_take_spare(x);

    if (spare != NULL) {
        smart_drop(x);
        exchange_attend(spare);
    } else if (smart_exchange_start(x) && x->ask.service == SMART_ADVERTISE_PUSH) {
        smart_make_spare(x);
    }
}

static bool
may_begin(const Smart *s, const SmartCaller *caller)
{
    guint of_box = 0;

    for (const Exchange *x = s->exchanges; x != NULL; x = x->next)
        of_box += !x->spare && caller->box_id != NULL && g_strcmp0(x->box_id, caller->box_id) == 0;
    return s->n_exchanges - s->n_spares < SMART_CHILDREN_MAX && of_box < SMART_CHILDREN_PER_BOX;
}

static void
refuse(HttpRequest *request, int status, const char *message)
{
    g_autofree char *text = g_strdup_printf("coop: %s\n", message);

    http_respond_text(request, status, "text/plain; charset=utf-8", text);
}

void
smart_serve(Forge *forge, Repo *repo, HttpRequest *request, SmartService service, const SmartCaller *caller)
{
    Smart *smart = forge->smart;
    SmartAsk ask = {.service = service};
    g_autoptr(GError) error = NULL;
    int status = 409;

    g_assert(caller->box_id == NULL || caller->branch != NULL);
    if (!repo_require_ready(repo, &error) || !smart_read_headers(request, &ask, &status, &error)) {
        refuse(request, status, error->message);
        return;
    }
    if (!may_begin(smart, caller)) {
        http_response_header(request, "Retry-After", "1");
        refuse(request, 503, "too many pushes and fetches are under way");
        return;
    }
    Exchange *x = smart_exchange_new(smart, repo, request, caller);

    x->ask.service = service;
    x->ask.protocol = ask.protocol;
    x->ask.encoding = ask.encoding;
    x->reading = true;
    db_read(smart->forge->spec.db, read_settings, on_settings, x, NULL);
}

void
smart_free(Smart *s)
{
    if (s == NULL)
        return;
    while (s->exchanges != NULL) {
        Exchange *x = s->exchanges;

        s->exchanges = x->next;
        exchange_close(x);
        leave(x);
        x->smart = NULL;
        /* Whoever still has it frees it. */
        if (!x->reading && !x->telling && !x->holding)
            exchange_free(x);
    }
    g_free(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "forge/hook-private.h"

static const RowColumn columns[] = {
    {"id", ROW_INT},       {"hook_id", ROW_INT}, {"seq", ROW_INT},      {"guid", ROW_TEXT},
    {"event", ROW_TEXT},   {"action", ROW_TEXT}, {"state", ROW_TEXT},   {"status", ROW_INT},
    {"tries", ROW_INT},    {"next_us", ROW_INT}, {"problem", ROW_TEXT}, {"created_us", ROW_INT},
    {"ended_us", ROW_INT}, {"body", ROW_TEXT},
};
static const RowTable whole = {"delivery", "deliveries", columns, G_N_ELEMENTS(columns)};
static const RowTable without_body = {"delivery", "deliveries", columns, G_N_ELEMENTS(columns) - 1};

/* What has ended long ago goes. */
static bool
prune(RowJob *job, gint64 hook_id, GError **error)
{
    return db_exec(
        job->tx,
        "DELETE FROM deliveries WHERE hook_id = ? AND state <> 'waiting' AND id <= (SELECT id FROM "
        "deliveries WHERE hook_id = ? AND state <> 'waiting' ORDER BY id DESC LIMIT 1 OFFSET ?)",
        DB_ARGS(db_int(hook_id), db_int(hook_id), db_int(HOOK_KEPT_MAX)), error);
}

bool
delivery_insert(RowJob *job, const DeliveryNew *new, gint64 *ret_id, GError **error)
{
    gint64 waiting = 0;

    if (!row_ask_int(job, "SELECT COUNT(*) FROM deliveries WHERE hook_id = ? AND state = 'waiting'",
                     DB_ARGS(db_int(new->hook_id)), &waiting, error) ||
        !row_next_id(job, "deliveries", ret_id, error))
        return false;
    bool large = strlen(new->body) > HOOK_BODY_MAX, full = large || waiting >= HOOK_WAITING_MAX;
    g_autofree char *problem = large
                                   ? g_strdup_printf("its body has %zu bytes, more than %d: it was not sent",
                                                     strlen(new->body), HOOK_BODY_MAX)
                                   : g_strdup("too many others were waiting");

    if (large)
        log_warn("hooks", "a delivery is too large to be sent", log_str("event", new->name.name),
                 log_int("hook", new->hook_id), log_int("bytes", (gint64)strlen(new->body)));
    return db_exec(job->tx,
                   "INSERT INTO deliveries (id, hook_id, seq, guid, event, action, body, state, status, "
                   "tries, next_us, problem, created_us, ended_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, "
                   "?, ?, ?) ON CONFLICT (hook_id, seq, event) DO NOTHING",
                   DB_ARGS(db_int(*ret_id), db_int(new->hook_id), new->seq > 0 ? db_int(new->seq) : db_null(),
                           db_text(new->guid), db_text(new->name.name), db_text(new->name.action),
                           db_text(large ? "{}" : new->body), db_text(full ? "failed" : "waiting"),
                           db_int(job->now_us), db_text(full ? problem : NULL), db_int(job->now_us),
                           db_int(full ? job->now_us : 0)),
                   error) &&
           prune(job, new->hook_id, error);
}

/* ---- asking ---- */

typedef struct DeliveryAsk {
    HookOwner owner;
    const char *actor;
    gint64 hook_id, id;
    ForgePage page;
} DeliveryAsk;
static const RowMember ask_members[] = {ROW_AT_TEXT(DeliveryAsk, owner.id), ROW_AT_TEXT(DeliveryAsk, actor),
                                        ROW_AT_END};

static Json *
load(RowJob *job, const DeliveryAsk *ask, GError **error)
{
    g_autoptr(Json) hook = hook_load(job, ask->owner, ask->hook_id, error);

    return hook != NULL ? row_get(job, &whole, "id = ? AND hook_id = ?",
                                  DB_ARGS(db_int(ask->id), db_int(ask->hook_id)), error)
                        : NULL;
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const DeliveryAsk *ask = data;
    g_autoptr(Json) hook = hook_load(job, ask->owner, ask->hook_id, error);
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    if (hook == NULL)
        return false;
    row_where_add(&where, "hook_id = ?", DB_ARGS(db_int(ask->hook_id)));
    *ret_value = ask->id > 0 ? load(job, ask, error)
                             : row_list(job, &without_body, &where, "id DESC", ask->page, error);
    return *ret_value != NULL;
}

static bool
run_again(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    DeliveryAsk ask = *(const DeliveryAsk *)data;
    g_autoptr(Json) old = load(job, &ask, error);

    if (old == NULL)
        return false;
    DeliveryNew new = {.hook_id = ask.hook_id,
                       .guid = row_text(old, "guid"),
                       .name = {row_text(old, "event"), row_text(old, "action")},
                       .body = row_text(old, "body")};

    if (!delivery_insert(job, &new, &ask.id, error) ||
        !hook_tell(job, ask.owner, ask.actor,
                   json_pack("{s:I, s:s}", "hook_id", (json_int_t)ask.hook_id, "action", "redelivered"),
                   error))
        return false;
    *ret_value = load(job, &ask, error);
    return *ret_value != NULL;
}

/* ---- calls that send something behind their row ---- */

typedef struct Sending {
    Hooks *hooks;
    HookOwner owner; /* its id is ours */
    gint64 hook_id;
    char *actor;
    ForgeJsonFunc done;
    void *data;
} Sending;

static Sending *
sending_new(Hooks *hooks, HookOwner owner, const char *actor, gint64 hook_id, ForgeJsonFunc done, void *data)
{
    Sending *s = g_new0(Sending, 1);

    *s = (Sending){hooks_ref(hooks), {owner.kind, g_strdup(owner.id)}, hook_id, g_strdup(actor), done, data};
    return s;
}

static void
on_written(Json *value, const GError *error, void *data)
{
    Sending *s = data;

    if (error == NULL)
        hooks_send(s->hooks);
    if (s->done != NULL)
        s->done(value, error, s->data);
    hooks_unref(s->hooks);
    g_free((char *)(guintptr)s->owner.id);
    g_free(s->actor);
    g_free(s);
}

void
delivery_list(Hooks *hooks, HookOwner owner, gint64 hook_id, gint64 id, ForgePage page, ForgeJsonFunc done,
              void *data)
{
    static const RowOp op = {ROW_READS, sizeof(DeliveryAsk), ask_members, run_list};

    hook_run(hooks, owner, &op, &(DeliveryAsk){.owner = owner, .hook_id = hook_id, .id = id, .page = page},
             done, data);
}

void
delivery_again(Hooks *hooks, HookOwner owner, const char *actor, gint64 hook_id, gint64 id,
               ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_WRITES, sizeof(DeliveryAsk), ask_members, run_again};

    hook_run(hooks, owner, &op, &(DeliveryAsk){.owner = owner, .actor = actor, .hook_id = hook_id, .id = id},
             on_written, sending_new(hooks, owner, actor, hook_id, done, data));
}

/* ---- a ping: the hook is read, the body made, the delivery written ---- */

typedef struct PingSpec {
    HookOwner owner;
    gint64 hook_id;
    const char *body;
} PingSpec;

static bool
run_ping(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const PingSpec *ping = data;
    char guid[ID_UUID_LEN + 1];
    gint64 id = 0;

    id_new_uuid(guid);
    DeliveryNew new = {.hook_id = ping->hook_id, .guid = guid, .name = {"ping", NULL}, .body = ping->body};
    DeliveryAsk ask = {.owner = ping->owner, .hook_id = ping->hook_id};

    if (!delivery_insert(job, &new, &id, error))
        return false;
    ask.id = id;
    *ret_value = load(job, &ask, error);
    return *ret_value != NULL;
}

static bool
run_hook_and_sender(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const DeliveryAsk *ask = data;
    g_autoptr(Json) hook = hook_load(job, ask->owner, ask->hook_id, error);
    g_autoptr(Json) sender = hook != NULL ? people_json(job->people, ask->actor, error) : NULL;

    if (sender == NULL)
        return false;
    *ret_value = json_pack("{s:O, s:O}", "hook", hook, "sender", sender);
    return true;
}

static Json *
render_ping(const Sending *s, const Json *about)
{
    const HooksSpec *spec = &s->hooks->spec;
    bool is_repo = s->owner.kind == HOOK_OF_REPOSITORY;
    Repo *repo = is_repo && spec->forge != NULL ? forge_find_id(spec->forge, s->owner.id) : NULL;
    HookEvent event = {.name = "ping",
                       .kind = "ping",
                       .actor = s->actor,
                       .at_us = clock_wall_us(),
                       .object = json_object_get(about, "hook"),
                       .sender = json_object_get(about, "sender"),
                       .address = spec->address};

    return is_repo && repo == NULL ? NULL : spec->render[s->owner.kind](repo, &event, spec->ctx);
}

static void
on_hook_read(Json *value, const GError *error, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(PingSpec, owner.id), ROW_AT_TEXT(PingSpec, body),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(PingSpec), members, run_ping};
    Sending *s = data;
    g_autoptr(GError) refused = NULL;
    g_autoptr(Json) body = NULL;

    if (error == NULL && !s->hooks->stopped)
        body = render_ping(s, value);
    if (body == NULL) {
        if (error == NULL)
            err_set(&refused, ERR_UNAVAILABLE, "no ping can be sent now");
        on_written(NULL, error != NULL ? error : refused, s);
        return;
    }
    g_autofree char *text = json_encode(body);

    hook_run(s->hooks, s->owner, &op, &(PingSpec){s->owner, s->hook_id, text}, on_written, s);
}

void
hook_ping(Hooks *hooks, HookOwner owner, const char *actor, gint64 id, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(DeliveryAsk), ask_members, run_hook_and_sender};

    hook_run(hooks, owner, &op, &(DeliveryAsk){.owner = owner, .actor = actor, .hook_id = id}, on_hook_read,
             sending_new(hooks, owner, actor, id, done, data));
}

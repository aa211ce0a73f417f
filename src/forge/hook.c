/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/hook.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/err.h"
#include "forge/forge-private.h"
#include "forge/hook-private.h"
#include "http/address.h"

static const RowColumn columns[] = {
    {"id", ROW_INT},         {"repository_id", ROW_TEXT},
    {"url", ROW_TEXT},       {"has_secret", ROW_BOOL, "secret IS NOT NULL"},
    {"events", ROW_JSON},    {"active", ROW_BOOL},
    {"created_us", ROW_INT}, {"updated_us", ROW_INT},
    {"squad_id", ROW_TEXT},
};
static const RowTable table = {"hook", "hooks", columns, G_N_ELEMENTS(columns)};

/* What each kind of owner decides. */
static const struct {
    const char *column, *noun, *there; /* rows that may have hooks */
    const char *events;                /* of a hook that names none */
} owners[HOOK_OWNER_MAX] = {
    [HOOK_OF_REPOSITORY] = {"repository_id", "repository", "SELECT COUNT(*) FROM repositories WHERE id = ?",
                            "[\"push\"]"},
    [HOOK_OF_SQUAD] = {"squad_id", "squad",
                       "SELECT COUNT(*) FROM squads WHERE id = ? AND status <> 'removed'",
                       "[\"task.*\", \"human.*\", \"pr.*\"]"},
    [HOOK_OF_TASK] = {"task_id", "task", "SELECT COUNT(*) FROM tasks WHERE id = ?", "[\"*\"]"},
};

const char *
hook_owner_column(HookOwnerKind kind)
{
    return owners[kind].column;
}

Json *
hook_load(RowJob *job, HookOwner owner, gint64 id, GError **error)
{
    g_autofree char *where = g_strdup_printf("id = ? AND %s = ?", owners[owner.kind].column);

    return row_get(job, &table, where, DB_ARGS(db_int(id), db_text(owner.id)), error);
}

void
hook_run(Hooks *hooks, HookOwner owner, const RowOp *op, const void *spec, ForgeJsonFunc done, void *data)
{
    row_run_in(hooks->spec.db, owner.kind == HOOK_OF_REPOSITORY ? owner.id : "", op, spec, done, data);
}

bool
hook_tell(RowJob *job, HookOwner owner, const char *actor, Json *data, GError **error)
{
    EventSpec event = {.kind = "hook.changed", .actor = actor}; /* nobody's: hooks are shown to few */

    if (owner.kind == HOOK_OF_REPOSITORY)
        return row_tell(job, event, data, error);
    g_autoptr(Json) object = data;

    json_object_set_new(object, owners[owner.kind].column, json_string(owner.id));
    g_autofree char *text = json_encode(object);

    /* Not an event of the squad: its own hooks would tell of their changes. */
    event.data = text;
    return event_append(job->tx, &event, NULL, error);
}

typedef struct HookPut {
    HookOwner owner;
    HookSpec spec;
    const Seal *seal;
    bool allow_loopback;
} HookPut;

/* An address that stands in the URL is refused at once; a name is judged when it is called. */
static bool
check_literal(const char *host, bool allow_loopback, GError **error)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const struct sockaddr *address = NULL;
    const char *why;

    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1)
        address = (const struct sockaddr *)&v4;
    else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1)
        address = (const struct sockaddr *)&v6;
    if (address == NULL || address_judge(address, &why) == ADDRESS_PUBLIC ||
        (allow_loopback && address_is_loopback(address)))
        return true;
    return err_set(error, ERR_DENIED, "hooks do not go to %s: %s", host, why);
}

static bool
check_url(const char *url, bool allow_loopback, GError **error)
{
    g_autoptr(GUri) uri = NULL;

    if (!row_check_text("the URL", url, HOOK_URL_MAX, ROW_TEXT_NEEDED, error))
        return false;
    uri = g_uri_parse(url, G_URI_FLAGS_NONE, NULL);
    if (uri == NULL || g_uri_get_host(uri) == NULL || g_uri_get_host(uri)[0] == '\0' ||
        (strcmp(g_uri_get_scheme(uri), "http") != 0 && strcmp(g_uri_get_scheme(uri), "https") != 0))
        return err_set(error, ERR_INVALID, "the URL must begin with http:// or https:// and a host");
    if (g_uri_get_userinfo(uri) != NULL)
        return err_set(error, ERR_INVALID, "the URL must not carry a password");
    return check_literal(g_uri_get_host(uri), allow_loopback, error);
}

static bool
check_events(HookOwnerKind kind, const char *const *events, GError **error)
{
    if (g_strv_length((char **)(guintptr)events) > HOOK_EVENTS_MAX)
        return err_set(error, ERR_LIMIT, "a hook names at most %d events", HOOK_EVENTS_MAX);
    for (; *events != NULL; events++) {
        if (!hook_event_is_known(kind, *events))
            return err_set(error, ERR_INVALID, "there is no event '%s'", *events);
    }
    return true;
}

static char *
events_text(const char *const *events)
{
    g_autoptr(Json) list = json_array();

    for (; *events != NULL; events++)
        json_array_append_new(list, json_string(*events));
    return json_encode(list);
}

char *
hook_purpose(gint64 id)
{
    return g_strdup_printf("hook:%" G_GINT64_FORMAT, id);
}

bool
hook_set_secret(RowJob *job, const Seal *seal, gint64 id, const char *secret, GError **error)
{
    if (secret == NULL)
        return true;
    if (secret[0] == '\0')
        return db_exec(job->tx, "UPDATE hooks SET secret = NULL WHERE id = ?", DB_ARGS(db_int(id)), error);
    g_autofree char *purpose = hook_purpose(id);
    g_autoptr(GBytes) sealed = seal_close_over(seal, purpose, secret, strlen(secret));

    return db_exec(job->tx, "UPDATE hooks SET secret = ? WHERE id = ?",
                   DB_ARGS(db_blob(g_bytes_get_data(sealed, NULL), g_bytes_get_size(sealed)), db_int(id)),
                   error);
}

bool
hook_insert(RowJob *job, HookOwner owner, gint64 *ret_id, GError **error)
{
    const char *column = owners[owner.kind].column, *noun = owners[owner.kind].noun;
    g_autofree char *of_owner = g_strdup_printf("SELECT COUNT(*) FROM hooks WHERE %s = ?", column);
    g_autofree char *sql = g_strdup_printf("INSERT INTO hooks (id, %s, url, events, active, since_seq, "
                                           "created_us, updated_us) VALUES (?, ?, '', ?, 1, ?, ?, ?)",
                                           column);
    gint64 there = 0, count = 0, seq = 0;

    if (!row_ask_int(job, owners[owner.kind].there, DB_ARGS(db_text(owner.id)), &there, error) ||
        !row_ask_int(job, of_owner, DB_ARGS(db_text(owner.id)), &count, error) ||
        !row_ask_int(job, "SELECT MAX(seq) FROM events", DB_NO_ARGS, &seq, error))
        return false;
    if (there == 0)
        return err_set(error, ERR_NOT_FOUND, "the %s is gone", noun);
    if (count >= HOOK_COUNT_MAX)
        return err_set(error, ERR_LIMIT, "the %s has %d hooks already", noun, HOOK_COUNT_MAX);
    return row_next_id(job, "hooks", ret_id, error) &&
           db_exec(job->tx, sql,
                   DB_ARGS(db_int(*ret_id), db_text(owner.id), db_text(owners[owner.kind].events),
                           db_int(seq), db_int(job->now_us), db_int(job->now_us)),
                   error);
}

static bool
update(RowJob *job, const HookPut *put, const Json *old, GError **error)
{
    const HookSpec *spec = &put->spec;
    const char *url = spec->url != NULL ? spec->url : row_text(old, "url");

    if (!check_url(url, put->allow_loopback, error) ||
        (spec->events != NULL && !check_events(put->owner.kind, spec->events, error)))
        return false;
    if (spec->secret != NULL && strlen(spec->secret) > HOOK_SECRET_MAX)
        return err_set(error, ERR_INVALID, "the secret is longer than %d bytes", HOOK_SECRET_MAX);
    g_autofree char *events = spec->events != NULL ? events_text(spec->events) : NULL;
    bool active = spec->active < 0 ? row_is(old, "active") : spec->active > 0;

    return db_exec(job->tx,
                   "UPDATE hooks SET url = ?, events = COALESCE(?, events), active = ?, updated_us = ? "
                   "WHERE id = ?",
                   DB_ARGS(db_text(url), db_text(events), db_int(active), db_int(row_later_us(job, old)),
                           db_int(row_int(old, "id"))),
                   error);
}

static bool
tell(RowJob *job, HookOwner owner, const char *actor, gint64 id, const char *action, GError **error)
{
    return hook_tell(job, owner, actor, json_pack("{s:I, s:s}", "hook_id", (json_int_t)id, "action", action),
                     error);
}

static bool
run_put(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const HookPut *put = data;
    gint64 id = put->spec.id;

    if (id == 0 && !hook_insert(job, put->owner, &id, error))
        return false;
    g_autoptr(Json) old = hook_load(job, put->owner, id, error);

    if (old == NULL || !update(job, put, old, error) ||
        !hook_set_secret(job, put->seal, id, put->spec.secret, error))
        return false;
    *ret_value = hook_load(job, put->owner, id, error);
    return *ret_value != NULL &&
           tell(job, put->owner, put->spec.actor, id, put->spec.id == 0 ? "created" : "edited", error);
}

typedef struct HookAsk {
    HookOwner owner;
    const char *actor;
    gint64 id;
    ForgePage page;
} HookAsk;
static const RowMember ask_members[] = {ROW_AT_TEXT(HookAsk, owner.id), ROW_AT_TEXT(HookAsk, actor),
                                        ROW_AT_END};

static bool
run_remove(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const HookAsk *ask = data;
    g_autoptr(Json) old = hook_load(job, ask->owner, ask->id, error);

    return old != NULL &&
           db_exec(job->tx, "DELETE FROM hooks WHERE id = ?", DB_ARGS(db_int(ask->id)), error) &&
           tell(job, ask->owner, ask->actor, ask->id, "deleted", error);
}

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const HookAsk *ask = data;

    *ret_value = hook_load(job, ask->owner, ask->id, error);
    return *ret_value != NULL;
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const HookAsk *ask = data;
    g_autofree char *is_owner = g_strdup_printf("%s = ?", owners[ask->owner.kind].column);
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    row_where_add(&where, is_owner, DB_ARGS(db_text(ask->owner.id)));
    *ret_value = row_list(job, &table, &where, "id", ask->page, error);
    return *ret_value != NULL;
}

void
hook_put(Hooks *hooks, HookOwner owner, const HookSpec *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(HookPut, owner.id),     ROW_AT_TEXT(HookPut, spec.actor),
                                        ROW_AT_TEXT(HookPut, spec.url),     ROW_AT_TEXT(HookPut, spec.secret),
                                        ROW_AT_TEXTS(HookPut, spec.events), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(HookPut), members, run_put};
    HookPut put = {owner, *spec, hooks->spec.seal, hooks->spec.allow_loopback};

    /* Before the row: an event behind it must not pass by.  One too many costs a query. */
    g_hash_table_add(hooks->watched, g_strdup(owner.id));
    hook_run(hooks, owner, &op, &put, done, data);
}

void
hook_remove(Hooks *hooks, HookOwner owner, const char *actor, gint64 id, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_WRITES, sizeof(HookAsk), ask_members, run_remove};

    hook_run(hooks, owner, &op, &(HookAsk){.owner = owner, .actor = actor, .id = id}, done, data);
}

void
hook_get(Hooks *hooks, HookOwner owner, gint64 id, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(HookAsk), ask_members, run_get};

    hook_run(hooks, owner, &op, &(HookAsk){.owner = owner, .id = id}, done, data);
}

void
hook_list(Hooks *hooks, HookOwner owner, ForgePage page, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(HookAsk), ask_members, run_list};

    hook_run(hooks, owner, &op, &(HookAsk){.owner = owner, .page = page}, done, data);
}

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
};
static const RowTable table = {"hook", "hooks", columns, G_N_ELEMENTS(columns)};

Json *
hook_load(RowJob *job, gint64 id, GError **error)
{
    return row_get(job, &table, "id = ? AND repository_id = ?",
                   DB_ARGS(db_int(id), db_text(job->repository_id)), error);
}

typedef struct HookPut {
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
check_events(const char *const *events, GError **error)
{
    if (g_strv_length((char **)(guintptr)events) > HOOK_EVENTS_MAX)
        return err_set(error, ERR_LIMIT, "a hook names at most %d events", HOOK_EVENTS_MAX);
    for (; *events != NULL; events++) {
        if (!hook_event_is_known(*events))
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

static bool
set_secret(RowJob *job, const HookPut *put, gint64 id, GError **error)
{
    const char *secret = put->spec.secret;

    if (secret == NULL)
        return true;
    if (secret[0] == '\0')
        return db_exec(job->tx, "UPDATE hooks SET secret = NULL WHERE id = ?", DB_ARGS(db_int(id)), error);
    if (strlen(secret) > HOOK_SECRET_MAX)
        return err_set(error, ERR_INVALID, "the secret is longer than %d bytes", HOOK_SECRET_MAX);
    g_autofree char *purpose = g_strdup_printf("hook:%" G_GINT64_FORMAT, id);
    g_autoptr(GBytes) sealed = seal_close_over(put->seal, purpose, secret, strlen(secret));

    return db_exec(job->tx, "UPDATE hooks SET secret = ? WHERE id = ?",
                   DB_ARGS(db_blob(g_bytes_get_data(sealed, NULL), g_bytes_get_size(sealed)), db_int(id)),
                   error);
}

static bool
insert(RowJob *job, gint64 *ret_id, GError **error)
{
    gint64 count = 0, seq = 0;

    if (!row_ask_int(job, "SELECT COUNT(*) FROM hooks WHERE repository_id = ?",
                     DB_ARGS(db_text(job->repository_id)), &count, error) ||
        !row_ask_int(job, "SELECT MAX(seq) FROM events", DB_NO_ARGS, &seq, error))
        return false;
    if (count >= HOOK_COUNT_MAX)
        return err_set(error, ERR_LIMIT, "the repository has %d hooks already", HOOK_COUNT_MAX);
    return row_next_id(job, "hooks", ret_id, error) &&
           db_exec(job->tx,
                   "INSERT INTO hooks (id, repository_id, url, events, active, since_seq, created_us, "
                   "updated_us) VALUES (?, ?, '', '[\"push\"]', 1, ?, ?, ?)",
                   DB_ARGS(db_int(*ret_id), db_text(job->repository_id), db_int(seq), db_int(job->now_us),
                           db_int(job->now_us)),
                   error);
}

static bool
update(RowJob *job, const HookPut *put, const Json *old, GError **error)
{
    const HookSpec *spec = &put->spec;
    const char *url = spec->url != NULL ? spec->url : row_text(old, "url");

    if (!check_url(url, put->allow_loopback, error) ||
        (spec->events != NULL && !check_events(spec->events, error)))
        return false;
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
tell(RowJob *job, const char *actor, gint64 id, const char *action, GError **error)
{
    return row_event(job, "hook.changed", actor, NULL,
                     json_pack("{s:I, s:s}", "hook_id", (json_int_t)id, "action", action), error);
}

static bool
run_put(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const HookPut *put = data;
    gint64 id = put->spec.id;

    if (id == 0 && !insert(job, &id, error))
        return false;
    g_autoptr(Json) old = hook_load(job, id, error);

    if (old == NULL || !update(job, put, old, error) || !set_secret(job, put, id, error))
        return false;
    *ret_value = hook_load(job, id, error);
    return *ret_value != NULL &&
           tell(job, put->spec.actor, id, put->spec.id == 0 ? "created" : "edited", error);
}

typedef struct HookAsk {
    const char *actor;
    gint64 id;
    ForgePage page;
} HookAsk;
static const RowMember ask_members[] = {ROW_AT_TEXT(HookAsk, actor), ROW_AT_END};

static bool
run_remove(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const HookAsk *ask = data;
    g_autoptr(Json) old = hook_load(job, ask->id, error);

    return old != NULL &&
           db_exec(job->tx, "DELETE FROM hooks WHERE id = ?", DB_ARGS(db_int(ask->id)), error) &&
           tell(job, ask->actor, ask->id, "deleted", error);
}

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    *ret_value = hook_load(job, ((const HookAsk *)data)->id, error);
    return *ret_value != NULL;
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    row_where_add(&where, "repository_id = ?", DB_ARGS(db_text(job->repository_id)));
    *ret_value = row_list(job, &table, &where, "id", ((const HookAsk *)data)->page, error);
    return *ret_value != NULL;
}

void
hook_put(Hooks *hooks, Repo *repo, const HookSpec *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(HookPut, spec.actor), ROW_AT_TEXT(HookPut, spec.url),
                                        ROW_AT_TEXT(HookPut, spec.secret), ROW_AT_TEXTS(HookPut, spec.events),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(HookPut), members, run_put};
    HookPut put = {*spec, hooks->spec.seal, hooks->spec.allow_loopback};

    /* Before the row: an event behind it must not pass by.  One too many costs a query. */
    g_hash_table_add(hooks->watched, g_strdup(repo->id));
    row_run(hooks->spec.forge, repo, &op, &put, done, data);
}

void
hook_remove(Hooks *hooks, Repo *repo, const char *actor, gint64 id, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_WRITES, sizeof(HookAsk), ask_members, run_remove};

    row_run(hooks->spec.forge, repo, &op, &(HookAsk){.actor = actor, .id = id}, done, data);
}

void
hook_get(Hooks *hooks, Repo *repo, gint64 id, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(HookAsk), ask_members, run_get};

    row_run(hooks->spec.forge, repo, &op, &(HookAsk){.id = id}, done, data);
}

void
hook_list(Hooks *hooks, Repo *repo, ForgePage page, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(HookAsk), ask_members, run_list};

    row_run(hooks->spec.forge, repo, &op, &(HookAsk){.page = page}, done, data);
}

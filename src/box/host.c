/* SPDX-License-Identifier: Apache-2.0 */
#include "box/host.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "box/host-private.h"

/* ---- making and freeing ---- */

BoxHost *
host_ref(BoxHost *host)
{
    host->refs++;
    return host;
}

static void
spec_copy(BoxHost *host, const BoxHostSpec *spec)
{
    host->spec = *spec;
    host->spec.home = host->home = g_strdup(spec->home);
    host->spec.keeper_socket = host->socket = g_strdup(spec->keeper_socket);
    host->spec.default_template = host->default_template = g_strdup(spec->default_template);
}

void
host_unref(BoxHost *host)
{
    if (--host->refs > 0)
        return;
    g_free(host->home);
    g_free(host->socket);
    g_free(host->default_template);
    g_free(host->off);
    g_strfreev(host->env);
    g_hash_table_unref(host->boxes);
    g_hash_table_unref(host->leases);
    g_ptr_array_unref(host->to_probe);
    g_free(host);
}

static void
on_later(LoopTimer *timer)
{
    BoxHost *host = (BoxHost *)(void *)((char *)timer - offsetof(BoxHost, later_timer));

    host_run_later(host);
}

static void
on_upkeep(LoopTimer *timer)
{
    BoxHost *host = (BoxHost *)(void *)((char *)timer - offsetof(BoxHost, upkeep_timer));

    loop_timer_set(host->spec.loop, timer, BOX_UPKEEP_S * 1000);
    host_upkeep(host);
}

BoxHost *
box_host_new(const BoxHostSpec *spec)
{
    BoxHost *host = g_new0(BoxHost, 1);

    host->refs = 1;
    spec_copy(host, spec);
    host->boxes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)box_unref);
    host->leases = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    host->to_probe = g_ptr_array_new_with_free_func((GDestroyNotify)box_unref);
    g_queue_init(&host->later);
    g_queue_init(&host->load.waiting);
    host->later_timer.expired = on_later;
    host->upkeep_timer.expired = on_upkeep;
    pool_init(host);
    host_start_tick(host);
    loop_timer_set(spec->loop, &host->upkeep_timer, BOX_UPKEEP_S * 1000);
    return host;
}

static void
let_go(Box *box, void *data)
{
    host_create_cancel(box, data);
    box_answer_waiters(box, data);
    g_clear_pointer(&box->link, box_link_free);
}

void
box_host_free(BoxHost *host)
{
    if (host == NULL)
        return;
    g_autoptr(GError) ends = g_error_new_literal(ERR_DOMAIN, ERR_CANCELLED, "the server ends");

    host_flush_used(host);
    host->closed = true;
    loop_timer_cancel(host->spec.loop, &host->tick_timer);
    loop_timer_cancel(host->spec.loop, &host->upkeep_timer);
    g_ptr_array_set_size(host->to_probe, 0);
    host_create_waiting(host, ends);
    g_clear_pointer(&host->keeper, keeper_client_free);
    host_each(host, let_go, ends);
    pool_clear(host);
    host_load_clear(host);
    while (host->later.length > 0)
        host_run_later(host);
    loop_timer_cancel(host->spec.loop, &host->later_timer);
    g_hash_table_remove_all(host->leases);
    g_hash_table_remove_all(host->boxes);
    host_unref(host);
}

/* Floors are far from empty: a second is soon enough.  But nobody is refused for what may have
 * changed since. */
bool
host_check_free(BoxHost *host, GError **error)
{
    gint64 now_us = clock_mono_us();

    if (host->free_us != 0 && now_us - host->free_us < HOST_FREE_US &&
        admit_check(&host->free, &host->spec, NULL))
        return true;
    admit_read(host->spec.home, &host->free);
    host->free_us = now_us;
    return admit_check(&host->free, &host->spec, error);
}

/* ---- later ---- */

void
host_later(BoxHost *host, void (*func)(void *data), void *data)
{
    HostLater *l = g_new(HostLater, 1);

    *l = (HostLater){.func = func, .data = data};
    g_queue_push_tail(&host->later, l);
    if (!host->closed)
        loop_timer_set(host->spec.loop, &host->later_timer, 0);
}

void
host_run_later(BoxHost *host)
{
    host_ref(host);
    for (guint n = host->later.length; n > 0 && host->later.length > 0; n--) {
        g_autofree HostLater *l = g_queue_pop_head(&host->later);

        l->func(l->data);
    }
    if (!host->closed && host->later.length > 0)
        loop_timer_set(host->spec.loop, &host->later_timer, 0);
    host_unref(host);
}

/* ---- the table ---- */

void
host_add(BoxHost *host, Box *box)
{
    g_hash_table_insert(host->boxes, box->row.id, box_ref(box));
    if (box->row.facts.lease != NULL)
        lease_set(host, box);
}

void
host_remove(BoxHost *host, Box *box)
{
    lease_drop(host, box);
    if (g_hash_table_lookup(host->boxes, box->row.id) == box)
        g_hash_table_remove(host->boxes, box->row.id);
}

/* `func` may add and remove boxes. */
void
host_each(BoxHost *host, void (*func)(Box *box, void *data), void *data)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func((GDestroyNotify)box_unref);
    GHashTableIter iter;
    gpointer box;

    g_hash_table_iter_init(&iter, host->boxes);
    while (g_hash_table_iter_next(&iter, NULL, &box))
        g_ptr_array_add(all, box_ref(box));
    for (guint i = 0; i < all->len; i++)
        func(all->pdata[i], data);
}

static Box *
find_by_uuid(BoxHost *host, const char *uuid)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, host->boxes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (strcmp(((Box *)value)->row.uuid, uuid) == 0)
            return value;
    }
    return NULL;
}

Box *
box_host_find(BoxHost *host, const char *id, const char *owner)
{
    if (g_str_has_prefix(id, "sb-"))
        id += strlen("sb-");
    Box *box = id_is_uuid(id) ? find_by_uuid(host, id) : g_hash_table_lookup(host->boxes, id);

    if (box == NULL || !box_is_live(box) || (owner != NULL && strcmp(box->row.facts.owner, owner) != 0))
        return NULL;
    return box;
}

typedef struct Each {
    const char *owner;
    void (*func)(Box *box, void *data);
    void *data;
} Each;

static void
each_of_owner(Box *box, void *data)
{
    const Each *each = data;

    if (box_is_live(box) && (each->owner == NULL || strcmp(box->row.facts.owner, each->owner) == 0))
        each->func(box, each->data);
}

void
box_host_each(BoxHost *host, const char *owner, void (*func)(Box *box, void *data), void *data)
{
    Each each = {.owner = owner, .func = func, .data = data};

    host_each(host, each_of_owner, &each);
}

/* ---- state ---- */

void
box_host_set_env(BoxHost *host, const char *const *env)
{
    char **copy = wish_merge_env(env, NULL);

    g_strfreev(host->env);
    host->env = copy;
}

void
box_host_set_off(BoxHost *host, const char *reason)
{
    g_free(host->off);
    host->off = g_strdup(reason);
}

void
host_set_degraded(BoxHost *host, const char *part, const char *reason)
{
    if (host->spec.degraded != NULL)
        host->spec.degraded(part, reason, host->spec.ctx);
}

void
host_call_keeper(BoxHost *host, KeeperVerb verb, Box *box, KeeperFunc func, void *data)
{
    static const int no_fds[KEEPER_FDS] = {-1, -1, -1};
    KeeperRequest request = {.verb = verb};

    memcpy(request.box, box->row.id, KEEPER_ID_LEN);
    if (host->keeper != NULL) {
        keeper_client_call(host->keeper, &request, func, data);
        return;
    }
    /* Only after the host was freed, or before it was loaded. */
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, "the keeper is away");

    func(NULL, no_fds, error, data);
}

void
box_host_stats(const BoxHost *host, BoxHostStats *ret_stats)
{
    GHashTableIter iter;
    gpointer value;

    *ret_stats = host->stats;
    g_hash_table_iter_init(&iter, host->boxes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Box *box = value;

        ret_stats->creating += box->row.state == BOX_CREATING;
        ret_stats->paused += box->row.state == BOX_PAUSED;
        ret_stats->live += box_is_live(box);
    }
    ret_stats->pooled = g_hash_table_size(host->pool.boxes);
    ret_stats->degraded = host->degraded;
    ret_stats->keeper_ready = host->keeper != NULL && keeper_client_is_ready(host->keeper);
}

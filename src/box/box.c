/* SPDX-License-Identifier: Apache-2.0 */
#include "box/box.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "box/box-private.h"
#include "box/host-private.h"
#include "box/state.h"

Box *
box_new(BoxHost *host, const char *id)
{
    Box *box = g_new0(Box, 1);

    box->refs = 1;
    box->host = host_ref(host);
    box->door_fd = -1;
    if (id != NULL)
        g_strlcpy(box->row.id, id, sizeof box->row.id);
    else
        id_new_box(box->row.id);
    id_new_uuid(box->row.uuid);
    box->commands = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)command_row_unref);
    box->oom_asked = g_array_new(FALSE, FALSE, sizeof(guint32));
    box->ending.waiters = g_array_new(FALSE, FALSE, sizeof(BoxWaiter));
    return box;
}

Box *
box_ref(Box *box)
{
    box->refs++;
    return box;
}

void
box_unref(Box *box)
{
    if (box == NULL || --box->refs > 0)
        return;
    g_assert(box->ending.waiters->len == 0);
    box_link_free(box->link);
    if (box->template != NULL)
        template_unref(box->template);
    if (box->door_fd >= 0)
        close(box->door_fd);
    box_row_clear(&box->row);
    g_free(box->ending.reason);
    g_free(box->ending.actor);
    g_array_unref(box->ending.waiters);
    g_free(box->unsaved.actor);
    g_free(box->unsaved.data);
    g_hash_table_unref(box->commands);
    g_clear_pointer(&box->early, g_ptr_array_unref);
    g_array_unref(box->oom_asked);
    host_unref(box->host);
    g_free(box);
}

void
box_set_state(Box *box, BoxState state, const char *reason)
{
    BoxRow *row = &box->row;
    char *copy = g_strdup(reason);

    g_assert(box_state_may_follow(row->state, state));
    log_debug("box", "state", log_str("box", row->id), log_str("from", box_state_name(row->state, false)),
              log_str("to", box_state_name(state, false)), log_str("reason", reason));
    row->state = state;
    g_free(row->reason);
    row->reason = copy;
    row->updated_us = clock_wall_us();
    if (box_state_is_end(state) && box->gone)
        row->ended_us = row->updated_us;
}

/* ---- its row ---- */

typedef struct Save {
    Box *box;
    BoxRow row;
    const char *kind;
    char *actor, *data;
    BoxFunc done;
    void *user;
} Save;

static bool
save_work(DbTx *tx, void *data, GError **error)
{
    Save *s = data;

    return rows_put_box(tx, &s->row, error) &&
           (s->kind == NULL ||
            rows_event(tx, s->kind, s->actor, s->row.facts.task_id, s->row.id, s->data, error));
}

static void
remember(BoxUnsaved *unsaved, Save *s)
{
    unsaved->pending = true;
    if (s->kind == NULL)
        return;
    unsaved->kind = s->kind;
    g_free(unsaved->actor);
    g_free(unsaved->data);
    unsaved->actor = g_steal_pointer(&s->actor);
    unsaved->data = g_steal_pointer(&s->data);
}

static void
save_done(void *data, const GError *error)
{
    Save *s = data;

    s->box->saving--;
    if (error != NULL && !s->box->host->closed) {
        log_warn("box", "a row could not be written", log_str("box", s->row.id), log_gerror(error));
        remember(&s->box->unsaved, s);
    }
    if (s->done != NULL)
        s->done(s->box, error, s->user);
}

static void
save_free(gpointer data)
{
    Save *s = data;

    box_row_clear(&s->row);
    box_unref(s->box);
    g_free(s->actor);
    g_free(s->data);
    g_free(s);
}

static void
save(Box *box, const char *kind, const char *actor, char *data, BoxFunc done, void *user)
{
    Save *s = g_new0(Save, 1);

    *s = (Save){.box = box_ref(box), .kind = kind, .data = data, .done = done, .user = user};
    s->actor = g_strdup(actor != NULL ? actor : "coop");
    box_row_copy(&s->row, &box->row);
    box->dirty = false;
    box->saving++;
    db_write(box->host->spec.db, save_work, save_done, s, save_free);
}

void
box_save(Box *box, const char *kind, const char *actor, Json *data, BoxFunc done, void *user)
{
    save(box, kind, actor, data != NULL ? json_encode(data) : NULL, done, user);
    json_decref(data);
}

void
box_save_again(Box *box)
{
    BoxUnsaved u = box->unsaved;

    if (!u.pending)
        return;
    box->unsaved = (BoxUnsaved){0};
    save(box, u.kind, u.actor, u.data, NULL, NULL);
    g_free(u.actor);
}

/* ---- what is shown ---- */

static gint64
expires_us(const Box *box)
{
    gint64 left_us = box_life_end_us(&box->row.life, box->row.state == BOX_PAUSED) - clock_mono_us();

    return box->gone ? box->row.ended_us : clock_wall_us() + MAX(left_us, 0);
}

static const char *
shell_of(const BoxFacts *f)
{
    const char *shell = f->env != NULL ? g_environ_getenv(f->env, "SHELL") : NULL;

    return shell != NULL && shell[0] == '/' ? shell : "/bin/sh";
}

static void
fill_facts(const BoxFacts *f, BoxInfo *info)
{
    info->owner = f->owner;
    info->name = f->name;
    info->template = f->template;
    info->template_hash = f->template_hash;
    info->agent_id = f->agent_id;
    info->task_id = f->task_id;
    info->squad_id = f->squad_id;
    info->repo_url = f->repo_url;
    info->lease = f->lease;
    info->metadata = f->metadata;
    info->shell = shell_of(f);
    info->limits = f->limits;
    info->from_pool = f->from_pool;
}

void
box_info(const Box *box, BoxInfo *ret_info)
{
    const BoxRow *row = &box->row;
    gint64 until_us = row->ended_us != 0 ? row->ended_us : clock_wall_us();

    *ret_info = (BoxInfo){
        .id = row->id,
        .uuid = row->uuid,
        .state = row->state,
        .busy = row->state == BOX_READY && box->link != NULL && box_link_live(box->link) > 0,
        .reason = box_state_is_end(row->state) ? row->reason : NULL,
        .degraded = row->degraded,
        .created_us = row->created_us,
        .updated_us = row->updated_us,
        .last_used_us = row->last_used_us,
        .ended_us = row->ended_us,
        .expires_us = expires_us(box),
        .lifetime_ms = row->life.lifetime_ms,
        .idle_ms = row->life.idle_ms,
        .uptime_ms = box->gone ? (until_us - row->created_us) / 1000
                               : (clock_mono_us() - row->life.born_us) / 1000,
        .executions = row->executions,
        .sudo = box->template != NULL && box->template->sudo,
    };
    fill_facts(&row->facts, ret_info);
}

bool
box_is_cut_off(const Box *box)
{
    return box->link_closed_us != 0;
}

void
box_touch(Box *box)
{
    box_life_touch(&box->row.life, clock_mono_us());
    box->row.last_used_us = clock_wall_us();
    box->dirty = true;
}

/* ---- how much it uses ---- */

typedef struct UseCall {
    Box *box;
    BoxUseFunc func;
    void *data;
} UseCall;

static void
on_use(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    UseCall *call = data;
    BoxUse use = {0};

    if (error == NULL)
        use = (BoxUse){.memory_bytes = answer->memory_bytes,
                       .memory_peak_bytes = answer->memory_peak_bytes,
                       .disk_bytes = answer->disk_bytes,
                       .cpu_us = answer->cpu_us,
                       .pids = answer->pids,
                       .inodes = answer->inodes,
                       .oom_kills = answer->oom_kills};
    call->func(call->box, error == NULL ? &use : NULL, error, call->data);
    box_unref(call->box);
    g_free(call);
}

void
box_use(Box *box, BoxUseFunc func, void *data)
{
    UseCall *call = g_new(UseCall, 1);

    *call = (UseCall){.box = box_ref(box), .func = func, .data = data};
    host_call_keeper(box->host, KEEPER_STAT, box, on_use, call);
}

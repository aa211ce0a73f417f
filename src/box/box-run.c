/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a box: their start, and what its channel tells of them. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "box/box-private.h"
#include "box/host-private.h"
#include "box/rows-json.h"

/* ---- what the link tells ---- */

static CommandRow *
found_row(Box *box, Run *run)
{
    CommandRow *row = command_row_new();

    memcpy(row->box_id, box->row.id, sizeof row->box_id);
    row->run = run_id(run);
    row->command = g_strdup("");
    row->argv = g_strdup("[]");
    row->user = g_strdup(box->row.facts.user);
    row->cwd = g_strdup(box->row.facts.workdir);
    row->actor = g_strdup("coop");
    row->task_id = g_strdup(box->row.facts.task_id);
    row->tty = run_is_terminal(run);
    row->started_us = run_started_us(run);
    row->found = true;
    return row;
}

/* A server was killed before its row was written. */
static void
on_found(BoxLink *link, Run *run, void *ctx)
{
    Box *box = ctx;
    g_autoptr(CommandRow) row = found_row(box, run);

    box->row.last_run = MAX(box->row.last_run, run_id(run));
    box_command_started(box, row);
}

static void
on_ended(BoxLink *link, Run *run, void *ctx)
{
    Box *box = ctx;
    CommandRow *row = g_hash_table_lookup(box->commands, GUINT_TO_POINTER(run_id(run)));
    const RunEnd *end = run_end(run);

    if (row == NULL) {
        box_link_forget(link, run);
        return;
    }
    box->host->stats.runs_by_reason[end->reason]++;
    if (end->reason == RUN_EXIT && end->code != 0)
        box->host->stats.runs_failed++;
    box->host->stats.run_us += end->duration_us;
    box_touch(box);
    box_command_ended(box, row, run);
}

static void
on_active(BoxLink *link, void *ctx)
{
    box_touch(ctx);
}

static void
on_closed(BoxLink *link, const GError *error, void *ctx)
{
    Box *box = ctx;

    /* The keeper's word about it follows; if not, the tick ends the box. */
    box->link_closed_us = clock_mono_us();
    if (error != NULL)
        log_warn("box", "the channel broke", log_str("box", box->row.id), log_gerror(error));
}

/* ---- whether the kernel killed for memory ---- */

static void ask_oom(Box *box);

static void
on_oom_stat(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    Box *box = data;
    bool oom = error == NULL && answer->oom_kills > box->oom_kills;
    /* Who asked meanwhile may be among those whom the number counts. */
    guint n = oom ? box->oom_asked->len : box->oom_under_way;

    if (error == NULL)
        box->oom_kills = MAX(box->oom_kills, answer->oom_kills);
    box->oom_under_way = 0;
    for (guint i = 0; i < n; i++) {
        guint32 id = g_array_index(box->oom_asked, guint32, i);
        Run *run = box->link != NULL ? box_link_find(box->link, id) : NULL;

        if (run != NULL)
            box_link_set_oom(box->link, run, oom);
    }
    g_array_remove_range(box->oom_asked, 0, n);
    if (box->oom_asked->len > 0 && !box->host->closed)
        ask_oom(box);
    box_unref(box);
}

/* One question for all that died before it was asked: the counter moves once for several. */
static void
ask_oom(Box *box)
{
    box->oom_under_way = box->oom_asked->len;
    host_call_keeper(box->host, KEEPER_STAT, box, on_oom_stat, box_ref(box));
}

static void
on_ask_oom(BoxLink *link, Run *run, void *ctx)
{
    Box *box = ctx;
    guint32 id = run_id(run);

    g_array_append_val(box->oom_asked, id);
    if (box->oom_under_way == 0)
        ask_oom(box);
}

/* ---- the channel ---- */

static GArray *
known_runs(GPtrArray *commands)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(BoxLinkRun));

    for (guint i = 0; commands != NULL && i < commands->len; i++) {
        const CommandRow *row = commands->pdata[i];
        BoxLinkRun run = {.run = row->run, .terminal = row->tty, .started_us = row->started_us};

        g_array_append_val(runs, run);
    }
    return runs;
}

bool
box_attach(Box *box, const KeeperAnswer *answer, const int fds[KEEPER_FDS], GPtrArray *commands,
           GError **error)
{
    g_autofree char *folder = host_dup_log_folder(box->host, box->row.id);
    g_autoptr(GArray) runs = known_runs(commands);
    BoxLinkSpec spec = {.loop = box->host->spec.loop,
                        .fd = fds[KEEPER_FD_CHANNEL],
                        .folder = folder,
                        .runs = (const BoxLinkRun *)(gpointer)runs->data,
                        .n_runs = runs->len,
                        .last_run = box->row.last_run,
                        .events = {.found = on_found,
                                   .ended = on_ended,
                                   .ask_oom = on_ask_oom,
                                   .active = on_active,
                                   .closed = on_closed},
                        .ctx = box};

    close(fds[KEEPER_FD_PIDFD]);
    box->door_fd = fds[KEEPER_FD_DOOR];
    box->door_cookie = answer->netns_cookie;
    box->row.degraded = answer->degraded;
    for (guint i = 0; commands != NULL && i < commands->len; i++) {
        CommandRow *row = commands->pdata[i];

        g_hash_table_replace(box->commands, GUINT_TO_POINTER(row->run), command_row_ref(row));
    }
    box->link = box_link_new(&spec, error);
    return box->link != NULL;
}

void
box_open_door(Box *box)
{
    const BoxHostSpec *spec = &box->host->spec;

    if (box->door_fd < 0 || spec->door_opened == NULL)
        return;
    box->door_told = true;
    spec->door_opened(box, g_steal_fd(&box->door_fd), box->door_cookie, spec->ctx);
}

void
box_close_door(Box *box)
{
    const BoxHostSpec *spec = &box->host->spec;

    if (!box->door_told)
        return;
    box->door_told = false;
    spec->door_closed(box->row.id, spec->ctx);
}

/* ---- starting ---- */

static bool
check_usable(const Box *box, GError **error)
{
    const char *id = box->row.id;

    if (box->row.state == BOX_PAUSED || box->op == BOX_OP_PAUSE)
        return err_set(error, ERR_CONFLICT, "the box '%s' is paused: resume it first", id);
    if (box->row.state == BOX_CREATING && box->link == NULL)
        return err_set(error, ERR_CONFLICT, "the box '%s' is still being made", id);
    if (box->row.state == BOX_ERROR && !box->gone)
        return err_set(error, ERR_CONFLICT, "the box '%s' is in error: %s", id, box->row.reason);
    if (box->row.state != BOX_READY && box->row.state != BOX_CREATING)
        return err_set(error, ERR_CONFLICT, "the box '%s' has ended or is being ended", id);
    if (box->host->closed || box->link == NULL)
        return err_set(error, ERR_UNAVAILABLE, "the keeper of the box '%s' is away", id);
    return true;
}

static CommandRow *
started_row(Box *box, const RunSpec *spec, Run *run, const char *actor)
{
    CommandRow *row = command_row_new();

    memcpy(row->box_id, box->row.id, sizeof row->box_id);
    row->run = run_id(run);
    row->command = command_dup_line(spec->argv);
    row->argv = command_dup_argv_json(spec->argv);
    row->user = g_utf8_make_valid((spec->flags & START_ROOT) != 0 ? "root" : spec->user, -1);
    row->cwd = g_utf8_make_valid(spec->cwd, -1);
    row->actor = g_strdup(actor != NULL ? actor : "coop");
    row->task_id = g_strdup(box->row.facts.task_id);
    row->tty = (spec->flags & START_TTY) != 0;
    row->started_us = clock_wall_us();
    return row;
}

Run *
box_start(Box *box, const RunSpec *spec, const char *actor, GError **error)
{
    const BoxFacts *f = &box->row.facts;
    RunSpec full = *spec;

    if (!check_usable(box, error))
        return NULL;
    g_auto(GStrv) env = wish_merge_env((const char *const *)f->env, spec->env);

    full.env = (const char *const *)env;
    if (spec->user == NULL || spec->user[0] == '\0')
        full.user = f->user;
    if (spec->cwd == NULL || spec->cwd[0] == '\0')
        full.cwd = f->workdir;
    Run *run = box_link_start(box->link, &full, error);

    if (run == NULL)
        return NULL;
    FAILPOINT("box-start-sent");
    /* Streamed runs count by themselves and are not known after a restart. */
    if (spec->sink == NULL)
        box_touch(box);
    if (spec->sink != NULL)
        return run;
    box->row.last_run = MAX(box->row.last_run, run_id(run));
    /* Files that are read and written are no commands. */
    if ((spec->flags & START_BUILTIN) == 0) {
        g_autoptr(CommandRow) row = started_row(box, &full, run, actor);

        box_command_started(box, row);
    }
    return run;
}

Run *
box_find_run(Box *box, guint32 run)
{
    return box->link != NULL ? box_link_find(box->link, run) : NULL;
}

static Json *
show(Box *box, const CommandRow *row)
{
    Run *run = box_find_run(box, row->run);

    return command_row_json(row, run != NULL ? run_end(run) : NULL, clock_wall_us());
}

Json *
box_command_row(Box *box, guint32 run)
{
    const CommandRow *row = g_hash_table_lookup(box->commands, GUINT_TO_POINTER(run));

    return row != NULL ? show(box, row) : NULL;
}

static gint
compare_runs(gconstpointer a, gconstpointer b)
{
    guint32 first = ((const CommandRow *)a)->run, second = ((const CommandRow *)b)->run;

    return first < second ? -1 : first > second;
}

void
box_each_command(Box *box, void (*func)(Json *row, void *data), void *data)
{
    g_autoptr(GList) rows = g_list_sort(g_hash_table_get_values(box->commands), compare_runs);

    for (GList *l = rows; l != NULL; l = l->next) {
        g_autoptr(Json) row = show(box, l->data);

        func(row, data);
    }
}

typedef struct RefusedConnect {
    BoxConnectFunc func;
    void *data;
    GError *error;
} RefusedConnect;

static void
refuse_connect(void *data)
{
    RefusedConnect *r = data;

    r->func(-1, r->error, r->data);
    g_error_free(r->error);
    g_free(r);
}

void
box_connect(Box *box, guint16 port, BoxConnectFunc func, void *data)
{
    GError *error = NULL;

    if (!check_usable(box, &error)) {
        RefusedConnect *r = g_new(RefusedConnect, 1);

        *r = (RefusedConnect){.func = func, .data = data, .error = error};
        host_later(box->host, refuse_connect, r);
        return;
    }
    box_touch(box);
    box_link_connect(box->link, port, func, data);
}

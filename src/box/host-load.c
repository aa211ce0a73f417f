/* SPDX-License-Identifier: Apache-2.0 */
/* After a restart: rows say which boxes there were, the keeper's LIST which there are.
 *
 *   row and box        adopted: the channel comes back, and with it what commands did meanwhile;
 *                      interrupted, if it was made for a caller who was never told of it
 *   row, box is GONE   ended, with its reason
 *   row, no box        error: lost; interrupted, if it was never finished or the machine was
 *                      started anew; or what had been decided before the restart
 *   box, no row        killed: nobody ever got it, or it was one of the pool
 *
 * The same is done whenever the keeper comes back to a server that goes on. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/path.h"
#include "box/host-private.h"

enum { EXIT_SIGKILL = 128 + 9 };

static const char boot_setting[] = "box.boot_id";

/* ---- rows ---- */

typedef struct LoadJob {
    BoxHost *host;
    char *boot_before; /* NULL: never */
    GPtrArray *boxes;  /* LoadedBox* */
    GError *refusal;   /* why there must be no start; NULL: none */
} LoadJob;

/* The numbers of runs that init may have and no row knows are left out in the rows too: what the
 * next server finds there are those of this one, should it not come to write any. */
static bool
load_work(DbTx *tx, void *data, GError **error)
{
    LoadJob *job = data;

    return rows_get_setting(tx, boot_setting, &job->boot_before, error) &&
           rows_end_strays(tx, clock_wall_us(), error) && rows_load(tx, job->boxes, error) &&
           rows_skip_runs(tx, job->boxes, BOX_RUN_SLACK, error);
}

static void
load_job_free(gpointer data)
{
    LoadJob *job = data;

    g_ptr_array_unref(job->boxes);
    g_clear_error(&job->refusal);
    g_free(job->boot_before);
    host_unref(job->host);
    g_free(job);
}

/* The row of a box that stops says why and not as what it ends.  These are the server's own decisions;
 * whoever else has a box ended gives it words of his own. */
static bool
is_failure(const char *reason)
{
    static const char *const failures[] = {"broken", "interrupted", "unresponsive", NULL};

    return g_strv_contains(failures, reason);
}

static void
restore_ending(Box *box)
{
    const BoxRow *row = &box->row;
    bool stopping = row->state == BOX_STOPPING;

    if (!stopping && g_strcmp0(row->reason, "stuck") != 0)
        return;
    const char *reason = stopping && row->reason != NULL ? row->reason : "killed";
    bool failed = is_failure(reason);

    box->ending.state = failed ? BOX_ERROR : BOX_TERMINATED;
    box->ending.reason = g_strdup(reason);
    box->ending.kind = failed ? "box.failed" : strcmp(reason, "expired") == 0 ? "box.expired" : "box.killed";
    box->ending.actor = g_strdup("coop");
    box->ending.sent_us = clock_mono_us();
    box->ending.written = true;
}

static void
restore(BoxHost *host, LoadedBox *loaded)
{
    g_autoptr(Box) box = box_new(host, loaded->row.id);
    BoxRow *row = &box->row;

    *row = loaded->row;
    loaded->row = (BoxRow){0};
    row->life.used_us = clock_mono_us();
    /* Of its deadline it was told then; idleness begins anew. */
    box->warned = row->life.used_us >= box_life_warn_us(&row->life, true);
    restore_ending(box);
    host_add(host, box);
    if (box->ending.reason != NULL)
        lease_drop(host, box);
    g_hash_table_insert(host->load.commands, g_strdup(row->id), g_steal_pointer(&loaded->commands));
    loaded->commands = g_ptr_array_new();
}

static void
tell_loaded(BoxHost *host, const GError *error)
{
    HostLoad *load = &host->load;

    if (load->told)
        return;
    load->told = true;
    host_create_waiting(host, error);
    load->done(load->data, error);
}

static void
start_keeper(BoxHost *host)
{
    KeeperClientSpec spec = {.loop = host->spec.loop,
                             .socket = host->spec.keeper_socket,
                             .events = host_keeper_events(),
                             .ctx = host};

    host->keeper = keeper_client_new(&spec);
}

static void
load_done(void *data, const GError *error)
{
    LoadJob *job = data;
    BoxHost *host = job->host;

    if (host->closed)
        return;
    if (error != NULL || job->refusal != NULL) {
        tell_loaded(host, error != NULL ? error : job->refusal);
        return;
    }
    host->load.rebooted = job->boot_before != NULL && strcmp(job->boot_before, host->load.boot_id) != 0;
    for (guint i = 0; i < job->boxes->len; i++)
        restore(host, job->boxes->pdata[i]);
    start_keeper(host);
}

/* A file that is of no use now may be of use to the next start, which would find none of the boxes
 * of this one in it and kill them: so it has to go. */
static bool
open_told(BoxHost *host, GError **error)
{
    g_autofree char *path = g_build_filename(host->spec.home, "told", NULL);
    g_autoptr(GError) first = NULL, second = NULL;

    host->load.callers = told_open(path, clock_mono_us(), &first);
    if (host->load.callers != NULL)
        return true;
    if (unlink(path) < 0 && errno != ENOENT)
        return err_errno(error, "remove what cannot be used (%s)", first->message);
    host->load.callers = told_open(path, clock_mono_us(), &second);
    if (host->load.callers == NULL)
        log_warn("box", "boxes that nobody was told of will not be found", log_gerror(second));
    return true;
}

void
box_host_load(BoxHost *host, DbDone done, void *data)
{
    LoadJob *job = g_new0(LoadJob, 1);
    g_autofree char *logs = g_build_filename(host->spec.home, "logs", NULL);
    g_autoptr(GError) error = NULL;

    host->load.done = done;
    host->load.data = data;
    host->load.commands = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                                (GDestroyNotify)g_ptr_array_unref);
    job->host = host_ref(host);
    job->boxes = g_ptr_array_new_with_free_func((GDestroyNotify)loaded_box_free);
    if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &host->load.boot_id, NULL, NULL))
        host->load.boot_id = g_strdup("unknown");
    if (!path_make_private_dir(logs, 0700, &error))
        log_warn("box", "no folder for logs", log_gerror(error));
    (void)open_told(host, &job->refusal);
    db_write(host->spec.db, load_work, load_done, job, load_job_free);
}

void
host_load_clear(BoxHost *host)
{
    g_clear_pointer(&host->load.commands, g_hash_table_unref);
    g_clear_pointer(&host->load.unknown, g_ptr_array_unref);
    g_clear_pointer(&host->load.boot_id, g_free);
    g_clear_pointer(&host->load.callers, told_close);
}

/* ---- a box that is there ---- */

static void
on_first_stat(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    Box *box = data;

    if (error == NULL)
        box->oom_kills = MAX(box->oom_kills, answer->oom_kills);
    box_unref(box);
}

static void
hold_template(Box *box)
{
    /* An update may have replaced the one it was made from. */
    box->template = template_store_find(box->host->spec.templates, box->row.facts.template_hash);
}

/* Or can find it: by the words it asked with. */
static bool
was_told(const Box *box)
{
    const Told *told = box->host->load.callers;

    return box->row.facts.lease != NULL || told == NULL || told_has(told, box->row.id, box->row.life.born_us);
}

/* The keeper knows better than a row that was not written in time. */
static void
follow_keeper(Box *box, const KeeperAnswer *answer)
{
    BoxState state = box->row.state;

    if (state == BOX_CREATING && was_told(box)) {
        box_set_state(box, BOX_READY, NULL);
        box_save(box, "box.ready", "coop", NULL, NULL, NULL);
    } else if (state == BOX_READY && answer->frozen != 0) {
        box_set_state(box, BOX_PAUSED, NULL);
        box_save(box, "box.paused", "coop", NULL, NULL, NULL);
    } else if (state == BOX_PAUSED && answer->frozen == 0) {
        box_set_state(box, BOX_READY, NULL);
        box_save(box, "box.resumed", "coop", NULL, NULL, NULL);
    }
}

static void
adopt(BoxHost *host, Box *box, const KeeperAnswer *answer, const int fds[KEEPER_FDS])
{
    g_autoptr(GError) error = NULL;
    GPtrArray *commands = g_hash_table_lookup(host->load.commands, box->row.id);

    FAILPOINT("box-adopt");
    hold_template(box);
    if (!box_attach(box, answer, fds, commands, &error)) {
        log_warn("box", "a box could not be taken over", log_str("box", box->row.id), log_gerror(error));
        box->link_closed_us = clock_mono_us();
    }
    g_hash_table_remove(host->load.commands, box->row.id);
    follow_keeper(box, answer);
    if (box->ending.reason == NULL)
        box_open_door(box);
    log_info("box", "found again", log_str("box", box->row.id));
}

static void
close_all(const int fds[KEEPER_FDS])
{
    for (int i = 0; i < KEEPER_FDS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
}

static void
on_keeper_box(const KeeperAnswer *answer, const int fds[KEEPER_FDS], void *ctx)
{
    BoxHost *host = ctx;
    Box *box = g_hash_table_lookup(host->boxes, answer->box);

    if (box == NULL || box->gone)
        box = pool_find(host, answer->box);
    if (box == NULL) {
        if (host->load.unknown == NULL)
            host->load.unknown = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(host->load.unknown, g_strdup(answer->box));
        close_all(fds);
        return;
    }
    box->seen = true;
    if (box->link == NULL && box->link_closed_us == 0)
        adopt(host, box, answer, fds);
    else
        close_all(fds);
}

/* ---- one that is not ---- */

static void
on_keeper_gone(const KeeperAnswer *answer, void *ctx)
{
    BoxHost *host = ctx;
    Box *box = g_hash_table_lookup(host->boxes, answer->box);

    if (box == NULL || box->gone) {
        pool_gone(host, answer->box);
        return;
    }
    g_autoptr(Box) held = box_ref(box);
    bool killed = answer->exit_code == EXIT_SIGKILL && answer->oom_kills == 0;

    if (!host->load.listed && killed)
        box_vanished(box, BOX_TERMINATED, "killed");
    else
        box_gone(box, answer);
}

/* It was made, or taken from the pool, for a caller who was not told of it. */
static bool
is_nobodys(const Box *box)
{
    return (box->row.state == BOX_CREATING || box->row.state == BOX_READY) && !was_told(box);
}

static void
judge(Box *box, void *data)
{
    BoxHost *host = data;

    if (box->gone || box->create != NULL)
        return;
    if (!box->seen) {
        bool interrupted = host->load.rebooted || box->row.state == BOX_CREATING;

        box_vanished(box, BOX_ERROR, interrupted ? "interrupted" : "lost");
    } else if (box->ending.reason != NULL) {
        if (box->ending.written)
            box_send_kill(box);
    } else if (is_nobodys(box)) {
        box_stop(box, BOX_ERROR, "interrupted", "box.failed", "coop");
    } else if (!host->load.listed) {
        host_call_keeper(host, KEEPER_STAT, box, on_first_stat, box_ref(box));
    }
}

static void
judge_pooled(Box *box, void *data)
{
    if (!box->seen)
        pool_gone(data, box->row.id);
}

static void
kill_nobodys(BoxHost *host, const char *id)
{
    KeeperRequest request = {.verb = KEEPER_KILL};

    log_info("box", "nobody's box is killed", log_str("box", id));
    g_strlcpy(request.box, id, sizeof request.box);
    keeper_client_call(host->keeper, &request, NULL, NULL);
}

static void
kill_unknown(BoxHost *host)
{
    g_autoptr(GPtrArray) unknown = g_steal_pointer(&host->load.unknown);

    for (guint i = 0; unknown != NULL && i < unknown->len; i++)
        kill_nobodys(host, unknown->pdata[i]);
}

/* ---- the keeper ---- */

static void
tell_degraded(BoxHost *host, guint32 degraded)
{
    const char *names[33];

    host->degraded = degraded;
    host_set_degraded(host, "keeper", NULL);
    box_degraded_names(degraded, names);
    if (names[0] == NULL) {
        host_set_degraded(host, "boxes", NULL);
        return;
    }
    g_autofree char *list = g_strjoinv(", ", (char **)(gpointer)names);
    g_autofree char *reason = g_strconcat("not enforced on this machine: ", list, NULL);

    host_set_degraded(host, "boxes", reason);
}

static void
prepare_disks(BoxHost *host)
{
    KeeperRequest request = {.verb = KEEPER_PREPARE, .limits = host->spec.limits};

    request.count = MIN(host->spec.disks, (guint)KEEPER_POOL_MAX);
    keeper_client_call(host->keeper, &request, NULL, NULL);
}

static void
unsee(Box *box, void *data)
{
    box->seen = false;
}

static bool
judged_work(DbTx *tx, void *data, GError **error)
{
    return rows_set_setting(tx, boot_setting, data, error) && rows_end_strays(tx, clock_wall_us(), error);
}

/* Behind the ends of the boxes that are not there: only then all of it is true, and only then
 * the end of their commands, which nobody can tell, is known to be lost. */
static void
write_judged(BoxHost *host)
{
    db_write(host->spec.db, judged_work, NULL, g_strdup(host->load.boot_id), g_free);
    host->load.rebooted = false;
    g_hash_table_remove_all(host->load.commands);
}

static void
on_keeper_listed(const KeeperAnswer *hello, void *ctx)
{
    BoxHost *host = host_ref(ctx);

    FAILPOINT("box-listed");
    tell_degraded(host, hello->degraded);
    host_each(host, judge, host);
    pool_each(host, judge_pooled, host);
    kill_unknown(host);
    host_each(host, unsee, NULL);
    pool_each(host, unsee, NULL);
    prepare_disks(host);
    if (!host->load.listed) {
        write_judged(host);
        host_sweep_logs(host);
        template_store_collect(host->spec.templates);
    }
    host->load.listed = true;
    tell_loaded(host, NULL);
    if (!host->closed)
        pool_warm(host);
    host_unref(host);
}

static void
on_keeper_lost(void *ctx)
{
    BoxHost *host = ctx;

    host_set_degraded(host, "keeper", "the keeper of the boxes is away");
    host_each(host, unsee, NULL);
    pool_each(host, unsee, NULL);
    g_clear_pointer(&host->load.unknown, g_ptr_array_unref);
    tell_loaded(host, NULL);
}

static void
on_keeper_told(const KeeperAnswer *answer, void *ctx)
{
    BoxHost *host = ctx;
    Box *box = g_hash_table_lookup(host->boxes, answer->box);
    bool known = box != NULL && !box->gone;

    if (answer->verb == KEEPER_BOX && !known)
        kill_nobodys(host, answer->box);
    else if (answer->verb == KEEPER_TROUBLE && answer->stage == TROUBLE_STORAGE && known)
        box_storage_failed(box, answer->error);
    else if (answer->verb == KEEPER_TROUBLE)
        pool_trouble(host, answer->box);
    else
        log_warn("box", "an unknown word of the keeper", log_int("verb", answer->verb));
}

KeeperEvents
host_keeper_events(void)
{
    return (KeeperEvents){.box = on_keeper_box,
                          .gone = on_keeper_gone,
                          .listed = on_keeper_listed,
                          .lost = on_keeper_lost,
                          .told = on_keeper_told};
}

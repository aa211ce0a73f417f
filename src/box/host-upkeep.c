/* SPDX-License-Identifier: Apache-2.0 */
/* Every minute: whether boxes still answer, what is stuck, rows that no box stands behind, and
 * what was kept long enough. */
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "box/host-private.h"

enum {
    PROBES_AT_ONCE = 4,
    PRUNE_MAX = 64,                         /* boxes in one transaction */
    ROW_GRACE_US = 2 * 60 * G_USEC_PER_SEC, /* a row younger than this may belong to a create */
    TREE_FDS = 16,
};

/* ---- health ---- */

static void probe_next(BoxHost *host);

static void
on_probed(bool alive, void *data)
{
    Box *box = data;
    BoxHost *host = box->host;

    box->probing = false;
    host->probing--;
    box->probes_failed = alive ? 0 : box->probes_failed + 1;
    if (!host->closed && !alive && box->row.state == BOX_READY && box->op == BOX_OP_NONE) {
        log_warn("box", "does not answer", log_str("box", box->row.id), log_int("times", box->probes_failed));
        if (box->probes_failed >= BOX_PROBES_MAX)
            box_stop(box, BOX_ERROR, "unresponsive", "box.failed", "coop");
    }
    if (!host->closed)
        probe_next(host);
    box_unref(box);
}

static void
probe_next(BoxHost *host)
{
    while (host->probing < PROBES_AT_ONCE && host->to_probe->len > 0) {
        g_autoptr(Box) box = g_ptr_array_steal_index_fast(host->to_probe, host->to_probe->len - 1);

        if (box->row.state != BOX_READY || box->link == NULL || box->link_closed_us != 0 || box->probing)
            continue;
        box->probing = true;
        host->probing++;
        box_link_probe(box->link, on_probed, box_ref(box));
    }
}

static void
want_probe(Box *box, void *data)
{
    BoxHost *host = data;

    if (box->row.state == BOX_READY && !box->probing)
        g_ptr_array_add(host->to_probe, box_ref(box));
}

/* ---- what is stuck ---- */

static void
kill_again(Box *box, void *data)
{
    if (!box->gone && box->row.state == BOX_ERROR && box->ending.reason != NULL)
        box_send_kill(box);
}

/* ---- rows ---- */

typedef struct RowsJob {
    BoxHost *host;
    GPtrArray *ids; /* char* */
    gint64 before_us;
} RowsJob;

static RowsJob *
rows_job_new(BoxHost *host, gint64 before_us)
{
    RowsJob *job = g_new0(RowsJob, 1);

    *job = (RowsJob){.host = host_ref(host), .before_us = before_us};
    job->ids = g_ptr_array_new_with_free_func(g_free);
    return job;
}

static void
rows_job_free(gpointer data)
{
    RowsJob *job = data;

    g_ptr_array_unref(job->ids);
    host_unref(job->host);
    g_free(job);
}

static bool
live_work(DbTx *tx, void *data, GError **error)
{
    RowsJob *job = data;

    return rows_live_ids(tx, job->before_us, job->ids, error);
}

static bool
lost_work(DbTx *tx, void *data, GError **error)
{
    const RowsJob *job = data;

    for (guint i = 0; i < job->ids->len; i++) {
        if (!rows_mark_lost(tx, job->ids->pdata[i], clock_wall_us(), error))
            return false;
    }
    return true;
}

/* A backup that was restored, or a write that failed: no box stands behind such a row. */
static void
live_done(void *data, const GError *error)
{
    RowsJob *job = data;
    BoxHost *host = job->host;

    if (error != NULL || host->closed)
        return;
    RowsJob *lost = rows_job_new(host, 0);

    for (guint i = 0; i < job->ids->len; i++) {
        if (!g_hash_table_contains(host->boxes, job->ids->pdata[i]))
            g_ptr_array_add(lost->ids, g_strdup(job->ids->pdata[i]));
    }
    if (lost->ids->len > 0)
        db_write(host->spec.db, lost_work, NULL, lost, rows_job_free);
    else
        rows_job_free(lost);
}

/* ---- what was kept long enough ---- */

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void
remove_folders(void *data)
{
    RowsJob *job = data;

    for (guint i = 0; i < job->ids->len; i++) {
        g_autofree char *folder = host_dup_log_folder(job->host, job->ids->pdata[i]);

        /* What stays is found by the next start. */
        (void)nftw(folder, remove_one, TREE_FDS, FTW_DEPTH | FTW_PHYS);
    }
}

/* Takes the ids. */
static void
remove_logs(BoxHost *host, GPtrArray *ids)
{
    RowsJob *job = rows_job_new(host, 0);

    g_ptr_array_unref(job->ids);
    job->ids = ids;
    loop_offload(host->spec.loop, remove_folders, rows_job_free, job);
}

static bool
prune_work(DbTx *tx, void *data, GError **error)
{
    RowsJob *job = data;

    return rows_prune(tx, job->before_us, PRUNE_MAX, job->ids, error);
}

static void
prune_done(void *data, const GError *error)
{
    RowsJob *job = data;

    if (error == NULL && !job->host->closed && job->ids->len > 0)
        remove_logs(job->host, g_ptr_array_ref(job->ids));
}

/* ---- folders that no row knows ---- */

static void
list_folders(void *data)
{
    RowsJob *job = data;
    g_autofree char *path = g_build_filename(job->host->spec.home, "logs", NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        if (id_is_box(name))
            g_ptr_array_add(job->ids, g_strdup(name));
    }
}

static bool
unknown_work(DbTx *tx, void *data, GError **error)
{
    RowsJob *job = data;

    for (guint i = job->ids->len; i > 0; i--) {
        bool exists;

        if (!rows_exists(tx, job->ids->pdata[i - 1], &exists, error))
            return false;
        if (exists)
            g_ptr_array_remove_index_fast(job->ids, i - 1);
    }
    return true;
}

static void
folders_listed(void *data)
{
    RowsJob *job = data;

    if (job->host->closed || job->ids->len == 0)
        rows_job_free(job);
    else
        /* In the lane of the writes: rows of creates under way are before it. */
        db_write(job->host->spec.db, unknown_work, prune_done, job, rows_job_free);
}

void
host_sweep_logs(BoxHost *host)
{
    loop_offload(host->spec.loop, list_folders, folders_listed, rows_job_new(host, 0));
}

void
host_upkeep(BoxHost *host)
{
    if (host->keeper == NULL)
        return;
    if (keeper_client_is_ready(host->keeper)) {
        g_ptr_array_set_size(host->to_probe, 0);
        host_each(host, want_probe, host);
        probe_next(host);
        host_each(host, kill_again, NULL);
    }
    if (host->load.listed)
        db_read(host->spec.db, live_work, live_done, rows_job_new(host, clock_wall_us() - ROW_GRACE_US),
                rows_job_free);
    db_write(host->spec.db, prune_work, prune_done,
             rows_job_new(host, clock_wall_us() - host->spec.keep_rows_ms * 1000), rows_job_free);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of commands.
 *
 * Neither the start nor the answer waits for a row.  Init keeps a run with its output and its
 * end until box_link_forget(), and that happens only once the end is on the disk: so whoever is
 * killed, the next server finds the run again and nothing of it is lost. */
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "box/box-private.h"
#include "box/host-private.h"
#include "box/rows-json.h"

typedef struct CommandJob {
    Box *box;
    CommandRow *row;
    RunEnd end;
    char *tests; /* JSON; NULL: none */
    gint64 ended_us;
} CommandJob;

static CommandJob *
command_job_new(Box *box, CommandRow *row)
{
    CommandJob *job = g_new0(CommandJob, 1);

    *job = (CommandJob){.box = box_ref(box), .row = command_row_ref(row)};
    return job;
}

static void
command_job_free(gpointer data)
{
    CommandJob *job = data;

    command_row_unref(job->row);
    box_unref(job->box);
    g_free(job->tests);
    g_free(job);
}

static bool
started_work(DbTx *tx, void *data, GError **error)
{
    const CommandJob *job = data;

    return rows_put_command(tx, job->row, error) && rows_command_started_event(tx, job->row, error);
}

static void
started_done(void *data, const GError *error)
{
    CommandJob *job = data;

    FAILPOINT("box-start-row");
    if (error == NULL)
        return;
    /* The end brings what is missing here, but for the event. */
    job->box->dirty = true;
    log_warn("box", "a command could not be written", log_str("box", job->row->box_id), log_gerror(error));
}

static void
insert_row(Box *box, CommandRow *row)
{
    db_write(box->host->spec.db, started_work, started_done, command_job_new(box, row), command_job_free);
}

void
box_command_started(Box *box, CommandRow *row)
{
    g_hash_table_replace(box->commands, GUINT_TO_POINTER(row->run), command_row_ref(row));
    box->row.executions++;
    box->dirty = true;
    box->host->stats.runs_started++;
    if (box->row.state != BOX_CREATING) {
        insert_row(box, row);
        return;
    }
    if (box->early == NULL)
        box->early = g_ptr_array_new_with_free_func((GDestroyNotify)command_row_unref);
    g_ptr_array_add(box->early, command_row_ref(row));
}

void
box_commands_flush(Box *box)
{
    g_autoptr(GPtrArray) early = g_steal_pointer(&box->early);

    for (guint i = 0; early != NULL && i < early->len; i++)
        insert_row(box, early->pdata[i]);
}

static bool
ended_work(DbTx *tx, void *data, GError **error)
{
    const CommandJob *job = data;
    bool changed = false;

    return rows_end_command(tx, job->row, &job->end, job->tests, job->ended_us, &changed, error) &&
           (!changed || (rows_command_ended_event(tx, job->row, &job->end, error) &&
                         (job->tests == NULL || rows_tests_reported_event(tx, job->row, job->tests, error))));
}

static void
ended_done(void *data, const GError *error)
{
    CommandJob *job = data;
    Box *box = job->box;
    guint32 id = job->row->run;

    if (box->host->closed)
        return;
    if (error != NULL) {
        box->dirty = true;
        log_warn("box", "the end of a command could not be written", log_str("box", job->row->box_id),
                 log_gerror(error));
        return;
    }
    FAILPOINT("box-end-row");
    g_hash_table_remove(box->commands, GUINT_TO_POINTER(id));
    Run *run = box->link != NULL ? box_link_find(box->link, id) : NULL;

    if (run != NULL)
        box_link_forget(box->link, run);
    if (box_is_written(box) && g_hash_table_size(box->commands) == 0)
        host_remove(box->host, box);
}

static char *
dup_tests(const Run *run)
{
    const TestReport *report = run_test_report(run);
    g_autoptr(Json) object = report != NULL ? report_to_json(report) : NULL;

    return object != NULL ? json_encode(object) : NULL;
}

void
box_command_ended(Box *box, CommandRow *row, const Run *run)
{
    CommandJob *job = command_job_new(box, row);

    box_commands_flush(box);
    job->end = *run_end(run);
    job->tests = dup_tests(run);
    job->ended_us = clock_wall_us();
    db_write(box->host->spec.db, ended_work, ended_done, job, command_job_free);
}

static void
end_again(Run *run, void *data)
{
    Box *box = data;
    CommandRow *row = g_hash_table_lookup(box->commands, GUINT_TO_POINTER(run_id(run)));

    if (row != NULL && run_has_ended(run))
        box_command_ended(box, row, run);
}

void
box_commands_again(Box *box)
{
    if (box->link != NULL && g_hash_table_size(box->commands) > 0)
        box_link_each(box->link, end_again, box);
}

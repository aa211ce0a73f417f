/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/db.h"
#include "store/events.h"

/* usage: store-bench FILE SECONDS WRITERS BATCH
 *
 * WRITERS jobs are always under way, each appending BATCH events together with one change of
 * state; a job counts when it is on the disk and its events have been published.  FILE must
 * not exist. */

typedef struct Run {
    Db *db;
    gint64 deadline_us;
    guint batch;
    guint running;
    guint64 events;
} Run;

typedef struct Writer {
    Run *run;
    guint number;
    guint64 jobs;
} Writer;

static bool
append(DbTx *tx, void *data, GError **error)
{
    Writer *w = data;
    g_autofree char *box = g_strdup_printf("box%017u", w->number);
    g_autofree char *state = g_strdup_printf("%" G_GUINT64_FORMAT, w->jobs);
    const EventSpec event = {
        .kind = "command.output",
        .actor = "agent:5f1c8a52-5c35-4a6e-9f0e-2c1a55c0b0aa",
        .task_id = "0b6f4b5e-98c3-4c8e-8f7b-0a7f3f1f2a11",
        .box_id = box,
        .data = "{\"stream\":\"stdout\",\"from\":1048576,\"to\":1052672}",
    };

    for (guint i = 0; i < w->run->batch; i++) {
        if (!event_append(tx, &event, NULL, error))
            return false;
    }
    return db_exec(tx,
                   "INSERT INTO settings (name, value) VALUES (?, ?)"
                   " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                   DB_ARGS(db_text(box), db_text(state)), error);
}

static void
on_appended(void *data, const GError *error)
{
    Writer *w = data;
    Run *run = w->run;

    if (error != NULL)
        g_error("append: %s", error->message);
    w->jobs++;
    run->events += run->batch;
    if (clock_mono_us() < run->deadline_us)
        db_write(run->db, append, on_appended, w, NULL);
    else
        run->running--;
}

static guint
read_number(const char *text, guint max)
{
    guint64 n;
    g_autoptr(GError) error = NULL;

    if (!g_ascii_string_to_unsigned(text, 10, 1, max, &n, &error))
        g_error("%s", error->message);
    return (guint)n;
}

int
main(int argc, char **argv)
{
    enum { SECONDS_MAX = 3600, WRITERS_MAX = 4096, BATCH_MAX = 10000 };

    if (argc != 5) {
        fputs("usage: store-bench FILE SECONDS WRITERS BATCH\n", stderr);
        return 2;
    }
    const DbSpec spec = {.path = argv[1]};
    guint writers = read_number(argv[3], WRITERS_MAX);
    g_autoptr(GError) error = NULL;
    g_autoptr(Db) db = db_open(&spec, &error);
    g_autoptr(EventLog) log = db != NULL ? event_log_new(db, &error) : NULL;
    if (log == NULL)
        g_error("%s", error->message);

    gint64 began_us = clock_mono_us();
    Run run = {
        .db = db,
        .deadline_us = began_us + read_number(argv[2], SECONDS_MAX) * G_USEC_PER_SEC,
        .batch = read_number(argv[4], BATCH_MAX),
        .running = writers,
    };
    g_autofree Writer *w = g_new0(Writer, writers);
    for (guint i = 0; i < writers; i++) {
        w[i] = (Writer){.run = &run, .number = i};
        db_write(db, append, on_appended, &w[i], NULL);
    }
    while (run.running > 0)
        g_main_context_iteration(NULL, TRUE);
    double seconds = (double)(clock_mono_us() - began_us) / G_USEC_PER_SEC;

    DbStats stats;
    db_stats(db, &stats);
    g_assert((guint64)event_log_last_seq(log) == run.events);
    printf("{\"events_per_s\": %.0f, \"commits\": %" G_GUINT64_FORMAT ", \"writers\": %u, \"batch\": %u,"
           " \"events\": %" G_GUINT64_FORMAT ", \"seconds\": %.3f}\n",
           (double)run.events / seconds, stats.commits, writers, run.batch, run.events, seconds);
    return 0;
}

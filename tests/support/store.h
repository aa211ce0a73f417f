/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "store/db.h"
#include "store/events.h"

/* A database in a folder of its own, and jobs that are waited for. */

typedef struct StoreBench {
    char *dir;
    char *path; /* dir/coop.db */
    Db *db;
    EventLog *log;
} StoreBench;

StoreBench *store_bench_new(void);      /* folder only */
StoreBench *store_bench_new_open(void); /* with `db` and `log` */
void store_bench_open(StoreBench *bench, const DbSpec *spec /* NULL: defaults */);
void store_bench_close(StoreBench *bench);
void store_bench_free(StoreBench *bench);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StoreBench, store_bench_free)

char *store_bench_file(StoreBench *bench, const char *name);

/* Each runs the loop until the job is done. */
bool store_write(Db *db, DbWork work, void *data, GError **error);
bool store_read(Db *db, DbWork work, void *data, GError **error);
bool store_write_sql(Db *db, const char *sql, GError **error);
gint64 store_read_int(Db *db, const char *sql);
bool store_backup(Db *db, const char *path, GError **error);
bool store_restore(Db *db, const char *path, GError **error);

/* `n` events in one job; returns the last seq. */
gint64 store_append(Db *db, const EventSpec *event, guint n);
/* The seq of the first bad one, 0 when the log is sound. */
gint64 store_verify(EventLog *log, gint64 *ret_events);
void store_prune(EventLog *log, gint64 before_us);

/* Past the store, as somebody with the file could. */
void store_tamper(const char *path, const char *sql);

/* Holds a database thread inside a job, so that what is submitted meanwhile waits. */
typedef struct StoreGate {
    GMutex mutex;
    GCond cond;
    bool reached, open;
} StoreGate;
bool store_gate_work(DbTx *tx, void *gate, GError **error); /* a DbWork */
void store_gate_wait(StoreGate *gate);                      /* until the job is inside */
void store_gate_open(StoreGate *gate);

/* SPDX-License-Identifier: Apache-2.0 */
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/id.h"
#include "base/io.h"
#include "store/db.h"
#include "store/events.h"

/* The program that is killed.
 *
 *   store-crash write FILE JOBS       appends and writes state in pairs, by several writers;
 *                                     each seq goes to stdout once it is acknowledged
 *   store-crash restore FILE BACKUP   one byte on stdout when it is done
 *   store-crash lock FILE             one byte on stdout when it holds the lock; lets go when
 *                                     stdin ends */

enum { WRITERS = 12, REFUSED_EVERY = 7 };

typedef struct Run {
    Db *db;
    gint64 left;
    guint running;
} Run;

typedef struct Pair {
    Run *run;
    gint64 number;
    gint64 seqs[2];
} Pair;

static void
acknowledge(const void *bytes, size_t len)
{
    if (!io_write_all(STDOUT_FILENO, bytes, len))
        _exit(3);
}

static bool
write_one(DbTx *tx, gint64 *ret_seq, GError **error)
{
    char token[ID_UUID_LEN + 1];

    id_new_uuid(token);
    g_autofree char *data = g_strdup_printf("{\"token\":\"%s\"}", token);
    const EventSpec event = {.kind = "task.created", .actor = "local", .task_id = token, .data = data};
    if (!event_append(tx, &event, ret_seq, error))
        return false;
    g_autofree char *name = g_strdup_printf("job-%" G_GINT64_FORMAT, *ret_seq);
    return db_exec(tx, "INSERT INTO settings (name, value) VALUES (?, ?)",
                   DB_ARGS(db_text(name), db_text(token)), error);
}

/* Two events and two rows; some jobs are refused after the first half. */
static bool
write_pair(DbTx *tx, void *data, GError **error)
{
    Pair *p = data;

    if (!write_one(tx, &p->seqs[0], error))
        return false;
    if (p->number % REFUSED_EVERY == 0)
        return err_set(error, ERR_DENIED, "refused");
    return write_one(tx, &p->seqs[1], error);
}

static void write_next(Run *run, Pair *p);

static void
on_written(void *data, const GError *error)
{
    Pair *p = data;

    if (error == NULL)
        acknowledge(p->seqs, sizeof p->seqs);
    else if (err_kind(error) != ERR_DENIED)
        g_error("%s", error->message);
    write_next(p->run, p);
}

static void
write_next(Run *run, Pair *p)
{
    if (run->left == 0) {
        run->running--;
        g_free(p);
        return;
    }
    *p = (Pair){.run = run, .number = run->left--};
    db_write(run->db, write_pair, on_written, p, NULL);
}

static void
run_write(Db *db, const char *jobs)
{
    Run run = {.db = db, .left = g_ascii_strtoll(jobs, NULL, 10), .running = WRITERS};

    for (guint i = 0; i < WRITERS; i++)
        write_next(&run, g_new0(Pair, 1));
    while (run.running > 0)
        g_main_context_iteration(NULL, TRUE);
}

static void
on_restored(void *data, const GError *error)
{
    if (error != NULL)
        g_error("%s", error->message);
    acknowledge("R", 1);
    *(bool *)data = true;
}

static void
run_restore(Db *db, const char *from)
{
    bool done = false;

    db_restore(db, from, on_restored, &done);
    while (!done)
        g_main_context_iteration(NULL, TRUE);
}

static int
run_lock(const char *path)
{
    sqlite3 *db;
    char byte;

    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) != SQLITE_OK)
        g_error("lock: %s", sqlite3_errmsg(db));
    acknowledge("L", 1);
    (void)io_read_full(STDIN_FILENO, &byte, 1);
    sqlite3_close(db);
    return 0;
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;

    if (argc == 3 && strcmp(argv[1], "lock") == 0)
        return run_lock(argv[2]);
    if (argc != 4)
        g_error("usage: store-crash write|restore|lock FILE [JOBS|BACKUP]");
    const DbSpec spec = {.path = argv[2]};
    g_autoptr(Db) db = db_open(&spec, &error);
    g_autoptr(EventLog) log = db != NULL ? event_log_new(db, &error) : NULL;
    if (log == NULL)
        g_error("%s", error->message);
    if (strcmp(argv[1], "write") == 0)
        run_write(db, argv[3]);
    else
        run_restore(db, argv[3]);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/migrate.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "store/tx.h"

static bool
apply(const Backend *be, BackendConn *conn, const Migration *m, GError **error)
{
    g_auto(DbTx) tx = {.backend = be, .conn = conn};

    if (!be->script(conn, m->sql, error))
        return false;
    FAILPOINT("store.migrate.middle");
    return db_exec(&tx, "INSERT INTO schema (version, name, applied_us) VALUES (?, ?, ?)",
                   DB_ARGS(db_int(m->version), db_text(m->name), db_int(clock_wall_us())), error) &&
           be->set_version(conn, m->version, error);
}

/* The version is read again inside the transaction: another process may have been first. */
static bool
apply_if_missing(const Backend *be, BackendConn *conn, const Migration *m, GError **error)
{
    gint64 version;

    if (!be->begin(conn, BACKEND_WRITE, error))
        return false;
    bool ok = be->version(conn, &version, error) && (version >= m->version || apply(be, conn, m, error)) &&
              be->commit(conn, error);
    if (!ok) {
        be->rollback(conn);
        g_prefix_error(error, "migration %" G_GINT64_FORMAT " (%s): ", m->version, m->name);
    }
    return ok;
}

bool
migrate(const Backend *be, BackendConn *conn, const MigrationList *list, GError **error)
{
    gint64 newest = migrations_newest(list);
    gint64 version;

    if (!be->version(conn, &version, error))
        return false;
    if (version > newest)
        return err_set(error, ERR_INVALID,
                       "it was written by a newer Coop (schema %" G_GINT64_FORMAT
                       ", this program knows up to %" G_GINT64_FORMAT ")",
                       version, newest);
    for (size_t i = 0; i < list->len; i++) {
        g_assert(list->items[i].version == (gint64)i + 1);
        if (list->items[i].version > version && !apply_if_missing(be, conn, &list->items[i], error))
            return false;
    }
    return true;
}

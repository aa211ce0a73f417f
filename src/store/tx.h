/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/backend.h"
#include "store/event-writer.h"

/* What a job works with; on the stack of the thread that runs it. */
struct DbTx {
    const Backend *backend;
    BackendConn *conn;
    EventWriter *events; /* NULL in a read job */
    gint64 changes;
    guint rows_open;
    GError *lost; /* why the back end gave the whole transaction up; NULL: it stands */
};

void db_tx_clear(DbTx *tx);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DbTx, db_tx_clear)

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "store/db.h"
#include "json/json.h"

/* Where the server writes down what the door has told: each fact is an event, written once
 * however often the door says it, because the number of the last one is kept in the same
 * transaction. */
typedef struct DoorLedger DoorLedger;

enum { LEDGER_HELD_MAX = 512 };

typedef struct DoorLedgerSpec {
    Loop *loop; /* borrowed, as is the next */
    Db *db;
    /* Facts up to here are on the disk. */
    void (*stored)(guint64 upto, void *ctx);
    /* In the same transaction and in the store's thread, for what else is kept of a fact; NULL: nothing. */
    bool (*also)(DbTx *tx, Json *fact, GError **error);
    void *ctx;
} DoorLedgerSpec;

DoorLedger *door_ledger_new(const DoorLedgerSpec *spec);
/* What is under way is finished without `stored`. */
void door_ledger_free(DoorLedger *ledger);

/* A connection to this process of the door has begun; what was not written is told again. */
void door_ledger_begin(DoorLedger *ledger, const char *instance);
/* `fact` is borrowed.  False: as many are held as may be, tell no more until `stored`. */
bool door_ledger_add(DoorLedger *ledger, Json *fact);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/db.h"

/* A change to what is kept in the store and in force in memory: it is written first, and holds when
 * the transaction does.  Private to this folder. */
typedef struct ChangeKind {
    bool reads;                                         /* nothing is written */
    bool (*work)(DbTx *tx, void *what, GError **error); /* in the store's thread */
    void (*apply)(void *owner, void **what); /* on the loop; may steal `what`; NULL: nothing to do */
    void (*free)(void *what);                /* NULL and what is half made are no matter */
    void (*unref)(void *owner);
} ChangeKind;

typedef struct ChangeSpec {
    Db *db;
    void *owner;     /* a reference, taken */
    void *what;      /* taken */
    GError *refused; /* taken; NULL: go on.  Otherwise nothing is written, and `done` has it */
    DbDone done;     /* may be NULL */
    void *data;
} ChangeSpec;

void door_change(const ChangeKind *kind, const ChangeSpec *spec);

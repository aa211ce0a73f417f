/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/forge-private.h"
#include "forge/identity-private.h"

/* A copy for the writer's thread. */
typedef struct RowJob {
    char *id, *name, *email, *public_key, *agent_id, *squad_id;
    GBytes *sealed;
    GHashTable *rights;
    gint64 created_us, revoked_us;
    DbDone done;
    void *data;
} RowJob;

static void
row_job_free(gpointer data)
{
    RowJob *j = data;

    g_free(j->id);
    g_free(j->name);
    g_free(j->email);
    g_free(j->public_key);
    g_free(j->agent_id);
    g_free(j->squad_id);
    g_bytes_unref(j->sealed);
    g_hash_table_unref(j->rights);
    g_free(j);
}

static RowJob *
row_job_new(const IdentityFull *full, DbDone done, void *data)
{
    RowJob *j = g_new0(RowJob, 1);

    /* The table of rights is never changed once it is filled. */
    *j = (RowJob){.id = g_strdup(full->shown.id),
                  .name = g_strdup(full->shown.name),
                  .email = g_strdup(full->shown.email),
                  .public_key = g_strdup(full->shown.public_key),
                  .agent_id = g_strdup(full->shown.agent_id),
                  .squad_id = g_strdup(full->shown.squad_id),
                  .sealed = g_bytes_ref(full->sealed),
                  .rights = g_hash_table_ref(full->rights),
                  .created_us = full->shown.created_us,
                  .revoked_us = full->shown.revoked_us,
                  .done = done,
                  .data = data};
    return j;
}

static void
on_written(void *data, const GError *error)
{
    RowJob *j = data;

    j->done(j->data, error);
}

static bool
add_rights(DbTx *tx, const RowJob *j, GError **error)
{
    GHashTableIter iter;
    gpointer repository;
    gpointer access;

    g_hash_table_iter_init(&iter, j->rights);
    while (g_hash_table_iter_next(&iter, &repository, &access)) {
        const char *name = identity_access_name((IdentityAccess)GPOINTER_TO_INT(access));

        if (!db_exec(tx, "INSERT INTO identity_rights (identity_id, repository_id, access) VALUES (?, ?, ?)",
                     DB_ARGS(db_text(j->id), db_text(repository), db_text(name)), error))
            return false;
    }
    return true;
}

static bool
add_row(DbTx *tx, void *data, GError **error)
{
    const RowJob *j = data;
    gsize n;
    const void *sealed = g_bytes_get_data(j->sealed, &n);

    return db_exec(tx,
                   "INSERT INTO identities (id, name, email, public_key, secret_key, agent_id, squad_id, "
                   "created_us, revoked_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
                   DB_ARGS(db_text(j->id), db_text(j->name), db_text(j->email), db_text(j->public_key),
                           db_blob(sealed, n), db_text(j->agent_id), db_text(j->squad_id),
                           db_int(j->created_us)),
                   error) &&
           add_rights(tx, j, error);
}

static bool
revoke_row(DbTx *tx, void *data, GError **error)
{
    const RowJob *j = data;

    return db_exec(tx, "UPDATE identities SET revoked_us = ? WHERE id = ? AND revoked_us = 0",
                   DB_ARGS(db_int(j->revoked_us), db_text(j->id)), error);
}

void
identity_row_add(Forge *forge, const IdentityFull *full, DbDone done, void *data)
{
    db_write(forge->spec.db, add_row, on_written, row_job_new(full, done, data), row_job_free);
}

void
identity_row_revoke(Forge *forge, const IdentityFull *full, DbDone done, void *data)
{
    db_write(forge->spec.db, revoke_row, on_written, row_job_new(full, done, data), row_job_free);
}

/* ---- loading ---- */

typedef struct Load {
    Forge *forge;
    GHashTable *found; /* id -> IdentityFull */
    DbDone done;
    void *data;
} Load;

static IdentityFull *
read_row(DbRows *rows)
{
    IdentityFull *full = identity_full_new();
    size_t n;
    const void *sealed = db_rows_blob(rows, 4, &n);

    full->shown = (Identity){.id = g_strdup(db_rows_text(rows, 0)),
                             .name = g_strdup(db_rows_text(rows, 1)),
                             .email = g_strdup(db_rows_text(rows, 2)),
                             .public_key = g_strdup(db_rows_text(rows, 3)),
                             .agent_id = g_strdup(db_rows_text(rows, 5)),
                             .squad_id = g_strdup(db_rows_text(rows, 6)),
                             .created_us = db_rows_int(rows, 7),
                             .revoked_us = db_rows_int(rows, 8)};
    full->sealed = g_bytes_new(sealed, n);
    return full;
}

static bool
load_identities(DbTx *tx, Load *load, GError **error)
{
    bool row = true;
    g_autoptr(DbRows) rows = db_query(tx,
                                      "SELECT id, name, email, public_key, secret_key, agent_id, squad_id, "
                                      "created_us, revoked_us FROM identities",
                                      DB_NO_ARGS, error);

    while (rows != NULL && row) {
        if (!db_rows_next(rows, &row, error))
            return false;
        IdentityFull *full = row ? read_row(rows) : NULL;

        if (full != NULL)
            g_hash_table_insert(load->found, full->shown.id, full);
    }
    return rows != NULL;
}

static bool
load_rights(DbTx *tx, Load *load, GError **error)
{
    bool row = true;
    g_autoptr(DbRows) rows = db_query(tx, "SELECT identity_id, repository_id, access FROM identity_rights",
                                      DB_NO_ARGS, error);

    while (rows != NULL && row) {
        IdentityAccess access = IDENTITY_NONE;

        if (!db_rows_next(rows, &row, error))
            return false;
        IdentityFull *full = row ? g_hash_table_lookup(load->found, db_rows_text(rows, 0)) : NULL;

        if (full != NULL && identity_access_parse(db_rows_text(rows, 2), &access))
            g_hash_table_insert(full->rights, g_strdup(db_rows_text(rows, 1)), GINT_TO_POINTER(access));
    }
    return rows != NULL;
}

static bool
load_all(DbTx *tx, void *data, GError **error)
{
    return load_identities(tx, data, error) && load_rights(tx, data, error);
}

static void
on_loaded(void *data, const GError *error)
{
    Load *load = data;
    GHashTableIter iter;
    gpointer full;

    g_hash_table_iter_init(&iter, load->found);
    while (error == NULL && g_hash_table_iter_next(&iter, NULL, &full)) {
        identities_add(load->forge->identities, full);
        g_hash_table_iter_steal(&iter);
    }
    load->done(load->data, error);
}

static void
load_free(gpointer data)
{
    Load *load = data;

    g_hash_table_unref(load->found);
    g_free(load);
}

void
identity_rows_load(Forge *forge, DbDone done, void *data)
{
    Load *load = g_new0(Load, 1);

    *load = (Load){
        .forge = forge,
        .found = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)identity_full_free),
        .done = done,
        .data = data};
    db_read(forge->spec.db, load_all, on_loaded, load, load_free);
}

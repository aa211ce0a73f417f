/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/path.h"
#include "base/tree.h"
#include "forge/forge-private.h"
#include "forge/generation-private.h"

/* ---- writing ---- */

typedef struct RowJob {
    Forge *forge;
    char *id, *repository_id, *tips;
    gint64 created_us, bytes;
    DbDone done;
    void *data;
} RowJob;

static void
row_job_free(gpointer data)
{
    RowJob *j = data;

    forge_unref(j->forge);
    g_free(j->id);
    g_free(j->repository_id);
    g_free(j->tips);
    g_free(j);
}

static void
on_written(void *data, const GError *error)
{
    RowJob *j = data;

    j->done(j->data, error);
}

static char *
encode_tips(GHashTable *tips)
{
    g_autoptr(Json) object = json_object();
    GHashTableIter iter;
    gpointer name;
    gpointer oid;

    g_hash_table_iter_init(&iter, tips);
    while (g_hash_table_iter_next(&iter, &name, &oid))
        json_object_set_new(object, name, json_string(oid));
    return json_encode(object);
}

static RowJob *
row_job_new(Forge *forge, const Generation *g, DbDone done, void *data)
{
    RowJob *j = g_new0(RowJob, 1);

    *j = (RowJob){.forge = forge_ref(forge),
                  .id = g_strdup(g->id),
                  .repository_id = g_strdup(g->repository_id),
                  .tips = encode_tips(g->tips),
                  .created_us = g->created_us,
                  .bytes = (gint64)g->bytes,
                  .done = done,
                  .data = data};
    return j;
}

static bool
add_row(DbTx *tx, void *data, GError **error)
{
    const RowJob *j = data;

    return db_exec(tx,
                   "INSERT INTO generations (id, repository_id, state, tips, bytes, created_us) "
                   "VALUES (?, ?, 'making', '{}', 0, ?)",
                   DB_ARGS(db_text(j->id), db_text(j->repository_id), db_int(j->created_us)), error);
}

void
generation_row_add(Forge *forge, const Generation *generation, DbDone done, void *data)
{
    db_write(forge->spec.db, add_row, on_written, row_job_new(forge, generation, done, data), row_job_free);
}

static bool
make_ready(DbTx *tx, void *data, GError **error)
{
    const RowJob *j = data;

    return db_exec(tx, "UPDATE generations SET state = 'ready', tips = ?, bytes = ? WHERE id = ?",
                   DB_ARGS(db_text(j->tips), db_int(j->bytes), db_text(j->id)), error) &&
           (db_changes(tx) == 1 || err_set(error, ERR_NOT_FOUND, "the repository was removed"));
}

void
generation_row_ready(Forge *forge, const Generation *generation, DbDone done, void *data)
{
    db_write(forge->spec.db, make_ready, on_written, row_job_new(forge, generation, done, data),
             row_job_free);
}

/* ---- removal ---- */

typedef struct Removal {
    Forge *forge;
    char *id, *folder;
} Removal;

static void
removal_free(Removal *r)
{
    forge_unref(r->forge);
    g_free(r->id);
    g_free(r->folder);
    g_free(r);
}

static void
remove_folder(void *data)
{
    Removal *r = data;
    g_autofree char *draft = g_strconcat(r->id, ".new", NULL);
    autofd fd = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    /* What stays is found at the next start. */
    if (fd >= 0) {
        (void)tree_remove(fd, r->id, NULL);
        (void)tree_remove(fd, draft, NULL);
    }
}

static void
on_folder_removed(void *data)
{
    removal_free(data);
}

static bool
delete_row(DbTx *tx, void *data, GError **error)
{
    const Removal *r = data;

    return db_exec(tx, "DELETE FROM generations WHERE id = ?", DB_ARGS(db_text(r->id)), error);
}

static void
on_row_deleted(void *data, const GError *error)
{
    Removal *r = data;

    FAILPOINT("generation-forgotten");
    if (error != NULL) {
        log_warn("forge", "a generation stays until the next start", log_gerror(error));
        removal_free(r);
        return;
    }
    loop_offload(r->forge->spec.loop, remove_folder, on_folder_removed, r);
}

void
generation_row_remove(Forge *forge, const char *id)
{
    Removal *r = g_new0(Removal, 1);

    *r = (Removal){forge_ref(forge), g_strdup(id), generation_dup_folder(forge->spec.home)};
    db_write(forge->spec.db, delete_row, on_row_deleted, r, NULL);
}

/* ---- loading ---- */

typedef struct Load {
    Forge *forge;
    char *folder;
    GPtrArray *found; /* Generation* */
    GenerationLoadFunc done;
    void *data;
} Load;

static bool
decode_tips(const char *text, GHashTable *tips)
{
    g_autoptr(Json) object = json_decode(text, strlen(text), NULL);
    const char *name;
    Json *oid;

    json_object_foreach(object, name, oid)
        g_hash_table_insert(tips, g_strdup(name), g_strdup(json_string_value(oid)));
    return object != NULL;
}

static bool
is_whole(const Load *load, const char *id)
{
    g_autofree char *path = g_build_filename(load->folder, id, "objects", "pack", NULL);

    return g_file_test(path, G_FILE_TEST_IS_DIR);
}

/* One that was being made, or whose folder did not survive, is no more. */
static bool
load_rows(DbTx *tx, void *data, GError **error)
{
    Load *load = data;
    bool row;
    g_autoptr(DbRows) rows = db_query(tx,
                                      "SELECT id, repository_id, tips, bytes, created_us, state "
                                      "FROM generations ORDER BY created_us, id",
                                      DB_NO_ARGS, error);

    if (rows == NULL)
        return false;
    for (;;) {
        if (!db_rows_next(rows, &row, error))
            return false;
        if (!row)
            return true;
        g_autoptr(Generation) g = g_new0(Generation, 1);

        *g = (Generation){.id = g_strdup(db_rows_text(rows, 0)),
                          .repository_id = g_strdup(db_rows_text(rows, 1)),
                          .tips = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                          .bytes = (guint64)db_rows_int(rows, 3),
                          .created_us = db_rows_int(rows, 4)};
        if (strcmp(db_rows_text(rows, 5), "ready") == 0 && is_whole(load, g->id) &&
            decode_tips(db_rows_text(rows, 2), g->tips))
            g_ptr_array_add(load->found, g_steal_pointer(&g));
    }
}

static bool
drop_others(DbTx *tx, const Load *load, GError **error)
{
    g_autoptr(GString) sql = g_string_new("DELETE FROM generations WHERE id NOT IN (''");

    for (guint i = 0; i < load->found->len; i++) {
        const Generation *g = g_ptr_array_index(load->found, i);

        g_string_append_printf(sql, ",'%s'", g->id); /* hex digits, or our own folder has no such name */
    }
    g_string_append_c(sql, ')');
    return db_exec(tx, sql->str, DB_NO_ARGS, error);
}

static bool
load_all(DbTx *tx, void *data, GError **error)
{
    return load_rows(tx, data, error) && drop_others(tx, data, error);
}

static bool
is_found(const Load *load, const char *name)
{
    for (guint i = 0; i < load->found->len; i++) {
        const Generation *g = g_ptr_array_index(load->found, i);

        if (strcmp(g->id, name) == 0)
            return true;
    }
    return false;
}

static void
sweep(void *data)
{
    Load *load = data;
    DIR *dir = opendir(load->folder);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;

        if (name[0] != '.' && strspn(name, "0123456789abcdef") >= GENERATION_ID_LEN && !is_found(load, name))
            (void)tree_remove(dirfd(dir), name, NULL); /* else by the next start */
    }
    if (dir != NULL)
        closedir(dir);
}

static void
load_free(Load *load)
{
    g_ptr_array_unref(load->found);
    forge_unref(load->forge);
    g_free(load->folder);
    g_free(load);
}

static void
on_swept(void *data)
{
    Load *load = data;

    load->done(load->found, NULL, load->data);
    load_free(load);
}

static void
on_loaded(void *data, const GError *error)
{
    Load *load = data;

    if (error == NULL) {
        loop_offload(load->forge->spec.loop, sweep, on_swept, load);
        return;
    }
    load->done(NULL, error, load->data);
    load_free(load);
}

void
generation_rows_load(Forge *forge, GenerationLoadFunc done, void *data)
{
    Load *load = g_new0(Load, 1);

    *load = (Load){.forge = forge_ref(forge),
                   .folder = generation_dup_folder(forge->spec.home),
                   .found = g_ptr_array_new_with_free_func((GDestroyNotify)generation_free),
                   .done = done,
                   .data = data};
    db_write(forge->spec.db, load_all, on_loaded, load, NULL);
}

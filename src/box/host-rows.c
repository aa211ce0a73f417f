/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of boxes that may have ended. */
#include <string.h>

#include "box/host-private.h"
#include "box/rows-json.h"

typedef struct RowsCall {
    char *id, *owner; /* NULL: any */
    guint limit;
    guint32 run; /* 0: any */
    bool commands;
    Json *list;
    BoxRowsFunc func;
    void *data;
} RowsCall;

static bool
rows_work(DbTx *tx, void *data, GError **error)
{
    RowsCall *call = data;

    if (call->run != 0)
        return rows_command_json(tx, call->id, call->run, call->list, error);
    return call->commands ? rows_commands_json(tx, call->id, call->limit, call->list, error)
                          : rows_boxes_json(tx, call->id, call->owner, call->limit, call->list, error);
}

static void
rows_done(void *data, const GError *error)
{
    RowsCall *call = data;

    call->func(error == NULL ? call->list : NULL, error, call->data);
}

static void
rows_free(gpointer data)
{
    RowsCall *call = data;

    g_free(call->id);
    g_free(call->owner);
    json_decref(call->list);
    g_free(call);
}

static RowsCall *
rows_call_new(const char *id, const char *owner, BoxRowsFunc func, void *data)
{
    RowsCall *call = g_new0(RowsCall, 1);

    *call = (RowsCall){.id = g_strdup(id), .owner = g_strdup(owner), .limit = 1, .func = func, .data = data};
    call->list = json_array();
    return call;
}

void
box_host_ended(BoxHost *host, const char *owner, guint limit, BoxRowsFunc func, void *data)
{
    RowsCall *call = rows_call_new(NULL, owner, func, data);

    call->limit = limit;
    db_read(host->spec.db, rows_work, rows_done, call, rows_free);
}

void
box_host_row(BoxHost *host, const char *id, const char *owner, BoxRowsFunc func, void *data)
{
    db_read(host->spec.db, rows_work, rows_done, rows_call_new(id, owner, func, data), rows_free);
}

void
box_host_commands(BoxHost *host, const char *box_id, guint limit, BoxRowsFunc func, void *data)
{
    RowsCall *call = rows_call_new(box_id, NULL, func, data);

    call->commands = true;
    call->limit = limit;
    db_read(host->spec.db, rows_work, rows_done, call, rows_free);
}

void
box_host_command(BoxHost *host, const char *box_id, guint32 run, BoxRowsFunc func, void *data)
{
    RowsCall *call = rows_call_new(box_id, NULL, func, data);

    call->run = run;
    db_read(host->spec.db, rows_work, rows_done, call, rows_free);
}

char *
host_dup_log_folder(BoxHost *host, const char *id)
{
    return g_build_filename(host->spec.home, "logs", id, NULL);
}

char *
box_host_dup_log_folder(BoxHost *host, const char *box_id)
{
    if (g_str_has_prefix(box_id, "sb-"))
        box_id += strlen("sb-");
    return id_is_box(box_id) ? host_dup_log_folder(host, box_id) : NULL;
}

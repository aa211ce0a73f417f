/* SPDX-License-Identifier: Apache-2.0 */
/* A backup leaves in three steps, none of them on the loop: a copy of the database, an
 * archive of the copy, the sending.  A restore comes in by the same ones: the upload, the
 * unpacking, and db_restore(), which checks the content and exchanges it at once.
 *
 * The archive has no name while it is here, and the copy one in tmp/, which is emptied at
 * every start: whenever we die, nothing stays behind. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/routes.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/path.h"
#include "http/file.h"
#include "store/archive.h"

/* One on its way; freed with the last step. */
typedef struct Transfer {
    ApiCall *call; /* with a reference to its request */
    char *db_path; /* the copy, or what was unpacked */
    int fd;        /* the archive */
    gint cancelled;
    ArchiveInfo info;
    guint64 bytes; /* of the archive */
} Transfer;

static Transfer *
transfer_new(ApiCall *call)
{
    Transfer *t = g_new0(Transfer, 1);
    char name[2 * 8 + 1];

    id_random_hex(name, 8);
    http_request_ref(call->request);
    t->call = call;
    t->fd = -1;
    t->db_path = g_strdup_printf("%s/tmp/%s.db", call->api->home, name);
    return t;
}

static void
transfer_free(Transfer *t)
{
    http_request_on_gone(t->call->request, NULL, NULL);
    (void)unlink(t->db_path); /* mostly gone already */
    if (t->fd >= 0)
        close(t->fd);
    http_request_unref(t->call->request);
    g_free(t->db_path);
    g_free(t);
}

static bool
open_nameless(Transfer *t, GError **error)
{
    g_autofree char *folder = g_build_filename(t->call->api->home, "tmp", NULL);

    t->fd = path_open_nameless(folder, error);
    return t->fd >= 0;
}

static bool
append_event(DbTx *tx, const Transfer *t, const char *kind, GError **error)
{
    g_autoptr(Json) object = json_pack("{s:I, s:I, s:s, s:s}", "bytes", (json_int_t)t->bytes, "schema",
                                       (json_int_t)t->info.schema, "version", t->info.version, "created_at",
                                       t->info.created_at);
    g_autofree char *text = json_encode(object);
    EventSpec event = {.kind = kind, .actor = t->call->caller.actor, .data = text};

    return event_append(tx, &event, NULL, error);
}

/* ---- out ---- */

static void
end_backup(Transfer *t, const GError *error)
{
    t->call->api->backing_up = false;
    if (error != NULL)
        call_respond_error(t->call, error);
    transfer_free(t);
}

static bool
write_made(DbTx *tx, void *data, GError **error)
{
    return append_event(tx, data, "backup.made", error);
}

static void
on_made(void *data, const GError *error)
{
    Transfer *t = data;

    if (error == NULL) {
        g_autofree char *digits = g_strdup(t->info.created_at);
        g_strdelimit(digits, "-:.", '-');
        g_autofree char *name = g_strdup_printf("attachment; filename=\"coop-%.19s.tar.gz\"", digits);
        HttpFileSpec spec = {.type = "application/gzip", .disposition = name, .whole = true};

        http_response_header(t->call->request, "Cache-Control", "no-store");
        http_response_header(t->call->request, "X-Content-Type-Options", "nosniff");
        http_respond_file(t->call->request, g_steal_fd(&t->fd), &spec);
    }
    end_backup(t, error);
}

static bool
pack(void *data, GError **error)
{
    Transfer *t = data;
    ArchiveSpec spec = {.db_path = t->db_path, .schema = t->info.schema, .cancelled = &t->cancelled};

    FAILPOINT("backup.pack");
    if (!open_nameless(t, error) || !archive_pack(&spec, t->fd, &t->info, error))
        return false;
    t->bytes = (guint64)lseek(t->fd, 0, SEEK_CUR);
    (void)unlink(t->db_path); /* tried again at the end */
    return true;
}

static void
on_packed(void *data, const GError *error)
{
    Transfer *t = data;

    if (error != NULL)
        end_backup(t, error);
    else
        db_write(t->call->api->db, write_made, on_made, t, NULL);
}

static void
on_copied(void *data, const GError *error)
{
    Transfer *t = data;

    if (error != NULL)
        end_backup(t, error);
    else
        db_chore(t->call->api->db, pack, on_packed, t, NULL);
}

static void
on_gone(HttpRequest *request, void *data)
{
    Transfer *t = data;

    g_atomic_int_set(&t->cancelled, 1);
}

static void
get_backup(ApiCall *call)
{
    DbStats stats;

    if (call->api->backing_up) {
        respond_error(call->request, 409, "another backup is being made; try again when it is done");
        return;
    }
    call->api->backing_up = true;
    Transfer *t = transfer_new(call);
    db_stats(call->api->db, &stats);
    t->info.schema = stats.schema;
    http_request_on_gone(call->request, on_gone, t);
    db_backup(call->api->db, t->db_path, on_copied, t);
}

/* ---- in ---- */

static void
end_restore(Transfer *t, const GError *error)
{
    t->call->api->restoring = false;
    if (error != NULL)
        call_respond_error(t->call, error);
    transfer_free(t);
}

/* Of what was sent, so the answers are those of a body. */
static void
end_upload(Transfer *t, const GError *error)
{
    t->call->api->restoring = false;
    call_respond_body_error(t->call, error);
    transfer_free(t);
}

static bool
write_restored(DbTx *tx, void *data, GError **error)
{
    return append_event(tx, data, "backup.restored", error);
}

static void
on_recorded(void *data, const GError *error)
{
    Transfer *t = data;
    Api *api = t->call->api;

    /* It is restored all the same. */
    if (error != NULL)
        log_error("api", "a restore could not be recorded", log_gerror(error));
    /* Once we are being closed there is nobody to tell, and no event log to ask. */
    if (!http_request_is_gone(t->call->request))
        call_respond_json(t->call, 200,
                          json_pack("{s:s, s:I, s:s, s:I, s:b, s:I}", "version", t->info.version, "schema",
                                    (json_int_t)t->info.schema, "created_at", t->info.created_at, "bytes",
                                    (json_int_t)t->info.bytes, "key_file_valid",
                                    (int)api_key_file_is_valid(api), "seq",
                                    (json_int_t)event_log_last_seq(api->events)));
    end_restore(t, NULL);
}

static void
on_github_loaded(void *data, const GError *error)
{
    Transfer *t = data;

    if (error != NULL)
        end_restore(t, error);
    else
        db_write(t->call->api->db, write_restored, on_recorded, t, NULL);
}

static void
on_team_loaded(void *data, const GError *error)
{
    Transfer *t = data;
    Api *api = t->call->api;

    if (error != NULL) {
        end_restore(t, error);
        return;
    }
    if (api->team != NULL)
        team_start(api->team);
    if (api->github != NULL)
        github_load(api->github, on_github_loaded, t);
    else
        on_github_loaded(t, NULL);
}

static void
on_forge_loaded(void *data, const GError *error)
{
    Transfer *t = data;
    Api *api = t->call->api;

    if (error != NULL) {
        end_restore(t, error);
        return;
    }
    if (api->checks != NULL)
        checks_start(api->checks);
    if (api->landings != NULL)
        landings_start(api->landings);
    if (api->hooks != NULL)
        hooks_start(api->hooks);
    if (api->team != NULL)
        team_load(api->team, on_team_loaded, t);
    else
        on_team_loaded(t, NULL);
}

static void
on_reloaded(void *data, const GError *error)
{
    Transfer *t = data;
    Api *api = t->call->api;

    if (error != NULL) {
        end_restore(t, error);
        return;
    }
    if (api->door != NULL)
        door_service_reload(api->door);
    if (api->forge != NULL)
        forge_load(api->forge, on_forge_loaded, t);
    else
        on_forge_loaded(t, NULL);
}

static void
on_restored(void *data, const GError *error)
{
    Transfer *t = data;

    if (error != NULL)
        end_restore(t, error);
    else
        api_reload(t->call->api, on_reloaded, t);
}

static bool
unpack(void *data, GError **error)
{
    Transfer *t = data;

    if (lseek(t->fd, 0, SEEK_SET) < 0)
        return err_errno(error, "read the backup");
    bool ok = archive_unpack(t->fd, t->db_path, t->call->api->backup_max, &t->info, error);
    FAILPOINT("restore.unpacked");
    return ok;
}

static void
on_unpacked(void *data, const GError *error)
{
    Transfer *t = data;

    if (error == NULL)
        db_restore(t->call->api->db, t->db_path, on_restored, t);
    else if (err_kind(error) == ERR_LIMIT)
        end_upload(t, error);
    else
        end_restore(t, error);
}

static void
on_uploaded(HttpRequest *request, guint64 bytes, const GError *error, void *data)
{
    Transfer *t = data;

    if (error != NULL) {
        end_upload(t, error);
        return;
    }
    t->bytes = bytes;
    FAILPOINT("restore.before");
    db_chore(t->call->api->db, unpack, on_unpacked, t, NULL);
}

/* A form of a foreign page can only send the simple types, and this is none of them. */
static bool
check_type(ApiCall *call)
{
    const char *type = http_request_header(call->request, "Content-Type");
    const char *coding = http_request_header(call->request, "Content-Encoding");

    if (type != NULL && g_ascii_strcasecmp(type, "application/octet-stream") == 0 &&
        (coding == NULL || g_ascii_strcasecmp(coding, "identity") == 0))
        return true;
    respond_error(call->request, 415, "the backup must be sent as application/octet-stream");
    return false;
}

static void
post_restore(ApiCall *call)
{
    g_autoptr(GError) error = NULL;

    if (!check_type(call))
        return;
    if (call->api->restoring) {
        respond_error(call->request, 409, "another restore is under way");
        return;
    }
    call->api->restoring = true;
    Transfer *t = transfer_new(call);
    if (open_nameless(t, &error))
        http_request_read_to_file(call->request, t->fd, call->api->backup_max, on_uploaded, t);
    else
        end_restore(t, error);
}

const ApiRoute backup_routes[] = {
    {"GET", "/api/v1/backup", SCOPE_ADMIN, 0, get_backup},
    {"POST", "/api/v1/restore", SCOPE_ADMIN, 0, post_restore},
    {NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/offline.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "api/keyring.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/id.h"
#include "daemon/home.h"
#include "daemon/visit.h"
#include "store/db.h"
#include "store/events.h"
#include "json/json.h"

typedef struct Work {
    const Config *config;
    int fd; /* the archive */
    gint *cancelled;
    Visit visit;
    char *copy; /* of the database, in tmp/ */
    Db *db;
    ArchiveInfo info;
    const char *event;
    GMainLoop *loop;
    GError *error; /* of the job that was waited for */
} Work;

static void
work_init(Work *w, const Config *config, int fd)
{
    char name[2 * 8 + 1];

    id_random_hex(name, 8);
    *w = (Work){.config = config, .fd = fd, .visit = VISIT_INIT};
    w->copy = g_strdup_printf("%s/tmp/%s.db", config->home, name);
    w->loop = g_main_loop_new(NULL, FALSE);
}

static void
work_clear(Work *w)
{
    g_clear_pointer(&w->db, db_close);
    (void)unlink(w->copy); /* it may be gone already */
    visit_end(&w->visit);
    g_main_loop_unref(w->loop);
    g_free(w->copy);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Work, work_clear)

static void
on_done(void *data, const GError *error)
{
    Work *w = data;

    if (error != NULL)
        w->error = g_error_copy(error);
    g_main_loop_quit(w->loop);
}

/* After a job was submitted with on_done(). */
static bool
wait_for_job(Work *w, GError **error)
{
    g_main_loop_run(w->loop);
    if (w->error == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&w->error));
    return false;
}

static bool
open_db(Work *w, GError **error)
{
    DbSpec spec = {.path = w->config->database_file};

    w->db = db_open(&spec, error);
    return w->db != NULL;
}

static bool
append_event(DbTx *tx, void *data, GError **error)
{
    const Work *w = data;
    g_autoptr(Json) object = json_pack("{s:I, s:s, s:s}", "schema", (json_int_t)w->info.schema, "version",
                                       w->info.version, "created_at", w->info.created_at);
    g_autofree char *text = json_encode(object);
    EventSpec event = {.kind = w->event, .actor = "local", .data = text};

    return event_append(tx, &event, NULL, error);
}

static bool
record(Work *w, const char *kind, GError **error)
{
    w->event = kind;
    db_write(w->db, append_event, on_done, w, NULL);
    return wait_for_job(w, error);
}

/* ---- backup ---- */

static bool
pack(void *data, GError **error)
{
    Work *w = data;
    DbStats stats;

    db_stats(w->db, &stats);
    ArchiveSpec spec = {.db_path = w->copy, .schema = stats.schema, .cancelled = w->cancelled};
    FAILPOINT("backup.pack");
    return archive_pack(&spec, w->fd, &w->info, error);
}

bool
offline_backup(const Config *config, int fd, gint *cancelled, ArchiveInfo *ret_info, GError **error)
{
    g_auto(Work) w;

    work_init(&w, config, fd);
    w.cancelled = cancelled;
    /* Before a folder is made that nobody wanted. */
    if (access(config->database_file, F_OK) < 0)
        return err_errno(error, "there is no database to back up: '%s'", config->database_file);
    if (!visit_begin(config->home, &w.visit, error) || !open_db(&w, error))
        return false;
    db_backup(w.db, w.copy, on_done, &w);
    if (!wait_for_job(&w, error))
        return false;
    db_chore(w.db, pack, on_done, &w, NULL);
    if (!wait_for_job(&w, error) || !record(&w, "backup.made", error))
        return false;
    *ret_info = w.info;
    return true;
}

/* ---- a database that cannot be opened ---- */

static const char *const db_endings[] = {"", "-wal", "-shm"};

static bool
rename_db(const char *from, const char *to, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(db_endings); i++) {
        g_autofree char *old = g_strconcat(from, db_endings[i], NULL);
        g_autofree char *new = g_strconcat(to, db_endings[i], NULL);

        if (rename(old, new) < 0 && errno != ENOENT)
            return err_errno(error, "rename '%s' to '%s'", old, new);
    }
    return true;
}

/* A damaged database is a reason to restore one, not an obstacle; but nothing is thrown
 * away. */
static bool
open_or_set_aside(Work *w, char **ret_aside, GError **error)
{
    const char *path = w->config->database_file;
    g_autoptr(GError) why = NULL;
    char at[CLOCK_ISO_LEN + 1];

    if (open_db(w, &why))
        return true;
    if (err_kind(why) != ERR_INTERNAL && err_kind(why) != ERR_INVALID) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    clock_format_iso(clock_wall_us(), at);
    g_autofree char *aside = g_strdup_printf("%s.unusable-%s", path, at);
    if (!rename_db(path, aside, error))
        return false;
    *ret_aside = g_steal_pointer(&aside);
    return open_db(w, error);
}

static void
put_back(Work *w, char **aside)
{
    const char *path = w->config->database_file;

    if (*aside == NULL)
        return;
    g_clear_pointer(&w->db, db_close);
    for (size_t i = 0; i < G_N_ELEMENTS(db_endings); i++) {
        g_autofree char *made = g_strconcat(path, db_endings[i], NULL);

        (void)unlink(made); /* the renaming replaces it */
    }
    (void)rename_db(*aside, path, NULL); /* the error to report is the first one */
    g_clear_pointer(aside, g_free);
}

/* ---- restore ---- */

static bool
unpack(Work *w, GError **error)
{
    FAILPOINT("restore.before");
    bool ok = archive_unpack(w->fd, w->copy, G_MAXUINT64, &w->info, error);
    FAILPOINT("restore.unpacked");
    return ok;
}

/* Without any admin key the next start takes the one of the file, or makes both. */
static bool
check_key_file(Work *w, bool *ret_valid, GError **error)
{
    g_autoptr(KeyRing) ring = key_ring_new(w->db);
    g_autofree char *secret = home_read_key(w->config->home, NULL);
    const char *why;

    key_ring_load(ring, on_done, w);
    if (!wait_for_job(w, error))
        return false;
    const Key *key = secret != NULL ? key_ring_find(ring, secret, &why) : NULL;
    *ret_valid = !key_ring_has_admin(ring) || (key != NULL && (key->scopes & SCOPE_ADMIN) != 0);
    return true;
}

static bool
exchange(Work *w, OfflineResult *ret, GError **error)
{
    if (!open_or_set_aside(w, &ret->set_aside, error))
        return false;
    db_restore(w->db, w->copy, on_done, w);
    return wait_for_job(w, error);
}

void
offline_result_clear(OfflineResult *result)
{
    g_free(result->set_aside);
    *result = (OfflineResult){0};
}

bool
offline_restore(const Config *config, int fd, OfflineResult *ret_result, GError **error)
{
    g_auto(OfflineResult) result = {0};
    g_auto(Work) w;

    work_init(&w, config, fd);
    if (!visit_begin(config->home, &w.visit, error) || !unpack(&w, error))
        return false;
    if (!exchange(&w, &result, error)) {
        put_back(&w, &result.set_aside);
        return false;
    }
    if (!record(&w, "backup.restored", error) || !check_key_file(&w, &result.key_file_valid, error))
        return false;
    result.info = w.info;
    *ret_result = result;
    result.set_aside = NULL;
    return true;
}

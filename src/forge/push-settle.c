/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/push-private.h"
#include "forge/repo.h"

enum { REFS_BYTES_MAX = PUSH_SETTLE_MAX * 160 };

/* Rows are read before refs: what moves in between is newer than its row, never older. */
typedef struct Settle {
    Forge *forge;
    Repo *repo; /* a reference */
    char *repository_id, *actor;
    GHashTable *rows; /* ref -> oid, before */
    GHashTable *refs; /* the same, as git says */
    DbDone done;
    void *data;
} Settle;

static void
settle_free(gpointer data)
{
    Settle *s = data;

    g_hash_table_unref(s->rows);
    g_hash_table_unref(s->refs);
    repo_unref(s->repo);
    g_free(s->repository_id);
    g_free(s->actor);
    g_free(s);
}

static void
end(Settle *s, const GError *error)
{
    DbDone done = s->done;
    void *data = s->data;

    if (error != NULL && err_kind(error) != ERR_CANCELLED)
        log_warn("forge", "refs could not be compared with their rows",
                 log_str("repository", s->repository_id), log_gerror(error));
    settle_free(s);
    if (done != NULL)
        done(data, error);
}

/* ---- what differs ---- */

static void
add_move(GArray *moves, const Settle *s, const char *ref, const char *old, const char *new)
{
    const ForgePush push = {.actor = s->actor,
                            .ref = ref,
                            .old = old != NULL ? old : git_oid_zero,
                            .new = new != NULL ? new : git_oid_zero};

    if (g_strcmp0(old, new) != 0)
        g_array_append_val(moves, push);
}

static GArray *
find_moves(const Settle *s)
{
    GArray *moves = g_array_new(FALSE, FALSE, sizeof(ForgePush));
    GHashTableIter iter;
    gpointer ref, oid;

    g_hash_table_iter_init(&iter, s->refs);
    while (g_hash_table_iter_next(&iter, &ref, &oid))
        add_move(moves, s, ref, g_hash_table_lookup(s->rows, ref), oid);
    g_hash_table_iter_init(&iter, s->rows);
    while (g_hash_table_iter_next(&iter, &ref, &oid)) {
        if (!g_hash_table_contains(s->refs, ref))
            add_move(moves, s, ref, oid, NULL);
    }
    return moves;
}

/* ---- the first time ---- */

static bool
write_first(DbTx *tx, void *data, GError **error)
{
    const Settle *s = data;
    GHashTableIter iter;
    gpointer ref, oid;

    g_hash_table_iter_init(&iter, s->refs);
    while (g_hash_table_iter_next(&iter, &ref, &oid)) {
        if (!db_exec(tx,
                     "INSERT INTO repository_refs (repository_id, name, oid, moved_us) VALUES (?, ?, ?, 0) "
                     "ON CONFLICT (repository_id, name) DO NOTHING",
                     DB_ARGS(db_text(s->repository_id), db_text(ref), db_text(oid)), error))
            return false;
    }
    return true;
}

static void
on_first_written(void *data, const GError *error)
{
    end(data, error);
}

/* ---- the steps ---- */

static bool
read_rows(DbTx *tx, void *data, GError **error)
{
    Settle *s = data;
    g_autoptr(DbRows) rows = db_query(tx, "SELECT name, oid FROM repository_refs WHERE repository_id = ?",
                                      DB_ARGS(db_text(s->repository_id)), error);
    bool row = true;

    while (rows != NULL && row) {
        if (!db_rows_next(rows, &row, error))
            return false;
        if (row)
            g_hash_table_insert(s->rows, g_strdup(db_rows_text(rows, 0)), g_strdup(db_rows_text(rows, 1)));
    }
    return rows != NULL;
}

/* "OID REF" */
static bool
read_line(Settle *s, const char *line, GError **error)
{
    const char *ref = line + GIT_OID_LEN + 1;

    if (strlen(line) <= GIT_OID_LEN + 1 || line[GIT_OID_LEN] != ' ')
        return err_set(error, ERR_INTERNAL, "git lists a ref as '%.80s'", line);
    if (g_utf8_validate(ref, -1, NULL))
        g_hash_table_insert(s->refs, g_strdup(ref), g_strndup(line, GIT_OID_LEN));
    return true;
}

static bool
read_refs(GitRepo *git, void *data, GError **error)
{
    Settle *s = data;
    const GitCall call = {
        .access = GIT_READ,
        .args = GIT_ARGS("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags"),
        .output_max = REFS_BYTES_MAX,
    };
    g_autoptr(GByteArray) out = NULL;

    g_hash_table_remove_all(s->refs);
    if (!git_run(git, &call, &out, error))
        return false;
    g_auto(GStrv) lines = g_strsplit((const char *)out->data, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        if (lines[i][0] != '\0' && !read_line(s, lines[i], error))
            return false;
    }
    return true;
}

static void
on_refs(void *data, const GError *error)
{
    Settle *s = data;

    if (error != NULL) {
        end(s, error);
        return;
    }
    if (g_hash_table_size(s->rows) == 0) {
        db_write(s->forge->spec.db, write_first, on_first_written, s, NULL);
        return;
    }
    g_autoptr(GArray) moves = find_moves(s);

    if (moves->len > 0)
        forge_push_all(s->forge, s->repo, (const ForgePush *)(void *)moves->data, moves->len, s->done,
                       s->data);
    else if (s->done != NULL)
        s->done(s->data, NULL);
    settle_free(s);
}

static void
on_rows(void *data, const GError *error)
{
    Settle *s = data;

    if (error != NULL || !repo_is_ready(s->repo))
        end(s, error);
    else
        forge_read(s->forge, s->repo, "compare refs", read_refs, on_refs, s, NULL);
}

void
forge_settle_refs(Forge *forge, Repo *repo, const char *actor, DbDone done, void *data)
{
    Settle *s = g_new0(Settle, 1);
    RepoInfo info;

    repo_info(repo, &info);
    *s = (Settle){.forge = forge,
                  .repo = repo_ref(repo),
                  .repository_id = g_strdup(info.id),
                  .actor = g_strdup(actor),
                  .rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                  .refs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                  .done = done,
                  .data = data};
    db_read(forge->spec.db, read_rows, on_rows, s, NULL);
}

/* ---- all of them ---- */

typedef struct SettleAll {
    Forge *forge;
    GPtrArray *ids;
} SettleAll;

static void
add_id(Repo *repo, void *data)
{
    RepoInfo info;

    repo_info(repo, &info);
    g_ptr_array_add(data, g_strdup(info.id));
}

/* One after the other: they are not urgent, and the queue is not only theirs. */
static void
settle_next(void *data, const GError *error)
{
    SettleAll *all = data;

    while (all->ids->len > 0 && (error == NULL || err_kind(error) != ERR_CANCELLED)) {
        g_autofree char *id = g_ptr_array_steal_index(all->ids, all->ids->len - 1);
        Repo *repo = forge_find_id(all->forge, id);

        if (repo != NULL && repo_is_ready(repo)) {
            forge_settle_refs(all->forge, repo, "coop", settle_next, all);
            return;
        }
    }
    g_ptr_array_unref(all->ids);
    g_free(all);
}

void
forge_settle_all(Forge *forge)
{
    SettleAll *all = g_new0(SettleAll, 1);

    *all = (SettleAll){.forge = forge, .ids = g_ptr_array_new_with_free_func(g_free)};
    forge_each(forge, add_id, all->ids);
    settle_next(all, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/forge-rows.h"

#include <string.h>

#include "forge/forge-private.h"
#include "forge/pull-private.h"

const char row_world_id[] = "6f9e1f0a-0000-4000-8000-000000000001";

static RowWorld *
world_of(StoreBench *bench)
{
    RowWorld *w = g_new0(RowWorld, 1);

    w->bench = bench;
    w->loop = loop_new(NULL);
    w->forge = g_new0(Forge, 1);
    w->forge->spec = (ForgeSpec){.db = bench->db, .events = bench->log, .loop = w->loop};
    w->forge->by_id = g_hash_table_new(g_str_hash, g_str_equal);
    w->repo = g_new0(Repo, 1);
    w->repo->refs = 1;
    w->repo->forge = w->forge;
    w->repo->id = g_strdup(row_world_id);
    g_hash_table_insert(w->forge->by_id, w->repo->id, w->repo);
    return w;
}

RowWorld *
row_world_new(void)
{
    g_autofree char *sql = g_strdup_printf(
        "INSERT INTO repositories (id, number, owner, name, folded, description, default_branch, insecure, "
        "state, settings, next_number, bytes, actor, created_us, updated_us, pushed_us, fetched_us, "
        "packed_us) VALUES ('%s', 1, 'acme', 'widget', 'acme/widget', '', 'main', 0, 'ready', '{}', 1, 0, "
        "'local', 1, 1, 1, 0, 0)",
        row_world_id);
    RowWorld *w = world_of(store_bench_new_open());

    row_world_sql(w, sql);
    return w;
}

RowWorld *
row_world_open(const char *dir)
{
    StoreBench *bench = g_new0(StoreBench, 1);

    bench->dir = g_strdup(dir);
    bench->path = g_build_filename(dir, "coop.db", NULL);
    store_bench_open(bench, NULL);
    return world_of(bench);
}

void
row_world_free(RowWorld *w)
{
    if (w == NULL)
        return;
    store_bench_free(w->bench);
    g_assert_cmpuint(w->repo->refs, ==, 1);
    loop_free(w->loop);
    g_hash_table_unref(w->forge->by_id);
    g_free(w->repo->id);
    g_free(w->repo);
    g_free(w->forge);
    g_free(w);
}

const char *
row_oid(char digit)
{
    static char oids[16][GIT_OID_LEN + 1];
    char *oid = oids[g_ascii_xdigit_value(digit)];

    memset(oid, digit, GIT_OID_LEN);
    return oid;
}

void
row_world_branch(RowWorld *w, const char *branch, char digit)
{
    g_autofree char *sql = g_strdup_printf(
        "INSERT INTO repository_refs (repository_id, name, oid, moved_us) VALUES ('%s', 'refs/heads/%s', "
        "'%s', 1) ON CONFLICT (repository_id, name) DO UPDATE SET oid = excluded.oid",
        row_world_id, branch, row_oid(digit));

    row_world_sql(w, sql);
}

typedef struct Opening {
    PullSpec spec;
    Json *pull;
} Opening;

static bool
open_pull(DbTx *tx, void *data, GError **error)
{
    Opening *o = data;
    PullLook look = {.ahead = 1};
    g_auto(RowJob) job = {0};

    row_job_init(&job, tx, row_world_id);
    g_strlcpy(look.head_oid, row_oid('a'), sizeof look.head_oid);
    g_strlcpy(look.base_oid, row_oid('b'), sizeof look.base_oid);
    return pull_insert(&job, &o->spec, &look, &o->pull, error);
}

gint64
row_world_pull(RowWorld *w, const char *author, const char *head)
{
    Opening o = {.spec = {.actor = author, .head = head, .base = "main", .title = "Add a wheel"}};
    g_autoptr(GError) error = NULL;

    row_world_branch(w, head, 'a');
    row_world_branch(w, "main", 'b');
    store_write(w->bench->db, open_pull, &o, &error);
    g_assert_no_error(error);
    g_autoptr(Json) pull = o.pull;

    return row_int(pull, "number");
}

static bool
read_events(DbTx *tx, void *data, GError **error)
{
    GString *kinds = data;
    g_autoptr(DbRows) rows = db_query(tx,
                                      "SELECT kind FROM events WHERE seq > COALESCE((SELECT CAST(value AS "
                                      "BIGINT) FROM settings WHERE name = 'told'), 0) ORDER BY seq",
                                      DB_NO_ARGS, error);
    bool more = true;

    while (rows != NULL && db_rows_next(rows, &more, error) && more)
        g_string_append_printf(kinds, "%s%s", kinds->len > 0 ? " " : "", db_rows_text(rows, 0));
    return rows != NULL && !more;
}

void
row_world_expect(RowWorld *w, const char *expected)
{
    g_autoptr(GString) kinds = g_string_new(NULL);

    g_assert_true(store_read(w->bench->db, read_events, kinds, NULL));
    row_world_sql(w, "INSERT INTO settings (name, value) SELECT 'told', CAST(COALESCE(MAX(seq), 0) AS TEXT) "
                     "FROM events WHERE 1 = 1 ON CONFLICT (name) DO UPDATE SET value = excluded.value");
    g_assert_cmpstr(kinds->str, ==, expected);
}

void
row_world_sql(RowWorld *w, const char *sql)
{
    g_autoptr(GError) error = NULL;

    store_write_sql(w->bench->db, sql, &error);
    g_assert_no_error(error);
}

void
on_row_answer(Json *value, const GError *error, void *data)
{
    RowAnswer *answer = data;

    g_assert_false(answer->has_come);
    g_assert_true((value == NULL) == (error != NULL));
    answer->value = json_incref(value);
    answer->error = error != NULL ? g_error_copy(error) : NULL;
    answer->has_come = true;
}

Json *
row_answer_wait(RowAnswer *answer)
{
    while (!answer->has_come)
        g_main_context_iteration(NULL, TRUE);
    g_assert_no_error(answer->error);
    return answer->value;
}

void
row_answer_wait_error(RowAnswer *answer, ErrKind kind, const char *text)
{
    while (!answer->has_come)
        g_main_context_iteration(NULL, TRUE);
    g_assert_error(answer->error, ERR_DOMAIN, (int)kind);
    if (text != NULL && strstr(answer->error->message, text) == NULL)
        g_error("'%s' is not in '%s'", text, answer->error->message);
    g_clear_error(&answer->error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-checks.h"

#include "forge/row.h"

FakeChecks *
fake_checks_new(void)
{
    FakeChecks *f = g_new0(FakeChecks, 1);

    f->suites = g_ptr_array_new_with_free_func(g_free);
    f->heads = g_ptr_array_new_with_free_func(g_free);
    return f;
}

void
fake_checks_free(FakeChecks *f)
{
    g_clear_error(&f->refusal);
    g_ptr_array_unref(f->suites);
    g_ptr_array_unref(f->heads);
    g_free(f);
}

/* ---- adding ---- */

typedef struct Added {
    FakeChecks *fake;
    char *sql, *id;
    ForgeJsonFunc done;
    void *data;
} Added;

static bool
run_sql(DbTx *tx, void *data, GError **error)
{
    return db_exec(tx, ((Added *)data)->sql, DB_NO_ARGS, error);
}

static void
added_free(gpointer data)
{
    Added *a = data;

    g_free(a->sql);
    g_free(a->id);
    g_free(a);
}

static void
on_row(void *data, const GError *error)
{
    Added *a = data;
    g_autoptr(Json) value = json_pack("{s:s}", "id", a->id);
    FakeChecks *fake = a->fake;

    g_assert_no_error(error);
    g_ptr_array_add(fake->suites, g_strdup(a->id));
    a->done(value, NULL, a->data);
    if (fake->verdict != NULL)
        fake_checks_end(fake, a->id, fake->verdict);
}

static char *
insert_sql(const char *id, const char *repository_id, gint64 number, const char *base, const char *head,
           const char *state)
{
    return g_strdup_printf(
        "INSERT INTO check_suites (id, repository_id, number, base_oid, head_oid, tree_oid, state, tries, "
        "receipt, created_us, ended_us) VALUES ('%s', '%s', %" G_GINT64_FORMAT
        ", '%s', '%s', '', '%s', 1, 'receipt of %s', %" G_GINT64_FORMAT ", 0)",
        id, repository_id, number, base, head, state, id, g_get_real_time());
}

static gboolean
refuse(gpointer data)
{
    Added *a = data;
    g_autoptr(GError) error = g_steal_pointer(&a->fake->refusal);

    a->done(NULL, error, a->data);
    added_free(a);
    return G_SOURCE_REMOVE;
}

static void
add(void *ctx, Repo *repo, const char *base_oid, const char *head_oid, gint64 number, const char *actor,
    ForgeJsonFunc done, void *data)
{
    FakeChecks *fake = ctx;
    Added *a = g_new0(Added, 1);
    RepoInfo info;

    repo_info(repo, &info);
    if (fake->adding != NULL)
        fake->adding(fake, base_oid, head_oid);
    *a = (Added){.fake = fake, .id = g_strdup_printf("suite-%u", ++fake->next), .done = done, .data = data};
    a->sql = insert_sql(a->id, info.id, number, base_oid, head_oid, "queued");
    g_ptr_array_add(fake->heads, g_strdup(head_oid));
    if (fake->refusal != NULL)
        g_idle_add(refuse, a);
    else
        db_write(fake->world->bench->db, run_sql, on_row, a, added_free);
}

static void
cancel(void *ctx, Repo *repo, const char *suite_id)
{
    ((FakeChecks *)ctx)->cancelled++;
}

LandingCheck
fake_checks_table(FakeChecks *fake)
{
    return (LandingCheck){.add = add, .cancel = cancel, .ctx = fake};
}

/* ---- ending ---- */

typedef struct Ended {
    FakeChecks *fake;
    char *sql, *id, *state;
} Ended;

static bool
write_end(DbTx *tx, void *data, GError **error)
{
    return db_exec(tx, ((Ended *)data)->sql, DB_NO_ARGS, error);
}

static void
on_ended(void *data, const GError *error)
{
    Ended *e = data;

    g_assert_no_error(error);
    if (e->fake->landings != NULL)
        landings_suite_ended(e->fake->landings, e->fake->world->repo, e->id, e->state);
    g_free(e->sql);
    g_free(e->id);
    g_free(e->state);
    g_free(e);
}

void
fake_checks_end(FakeChecks *fake, const char *suite_id, const char *state)
{
    Ended *e = g_new0(Ended, 1);

    *e = (Ended){.fake = fake, .id = g_strdup(suite_id), .state = g_strdup(state)};
    e->sql = g_strdup_printf("UPDATE check_suites SET state = '%s' WHERE id = '%s'", state, suite_id);
    db_write(fake->world->bench->db, write_end, on_ended, e, NULL);
}

const char *
fake_checks_wait(FakeChecks *fake, guint n)
{
    while (fake->suites->len < n)
        g_main_context_iteration(NULL, TRUE);
    return fake->suites->pdata[n - 1];
}

void
fake_checks_pass_pull(ForgeWorld *w, gint64 number)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *sql = g_strdup_printf(
        "INSERT INTO check_suites (id, repository_id, number, base_oid, head_oid, tree_oid, state, tries, "
        "created_us, ended_us) SELECT 'own-' || t.number || '-' || t.head_oid, t.repository_id, t.number, "
        "t.base_oid, t.head_oid, '', 'passed', 1, %" G_GINT64_FORMAT
        ", 1 FROM threads t WHERE t.number = %" G_GINT64_FORMAT,
        g_get_real_time(), number);

    store_write_sql(w->bench->db, sql, &error);
    g_assert_no_error(error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What ends, refills or is told again after a while. */
#include <string.h>

#include "api/grant.h"
#include "api/keyring.h"
#include "api/refusal.h"
#include "api/session.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/rate.h"
#include "support/fake-clock.h"
#include "support/store.h"

/* ---- jobs that are waited for ---- */

typedef struct Result {
    bool done;
    GError *error;
    char *text;
    char id[ID_UUID_LEN + 1];
} Result;

static void
result_clear(Result *r)
{
    g_clear_error(&r->error);
    g_free(r->text);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Result, result_clear)

static void
wait_for(const Result *r)
{
    while (!r->done)
        g_main_context_iteration(NULL, TRUE);
}

static void
on_done(void *data, const GError *error)
{
    Result *r = data;

    r->done = true;
    r->error = error != NULL ? g_error_copy(error) : NULL;
}

static void
on_opened(const char *cookie, const GError *error, void *data)
{
    Result *r = data;

    r->text = g_strdup(cookie);
    on_done(r, error);
}

static void
on_made(const char *secret, const Key *key, const GError *error, void *data)
{
    Result *r = data;

    r->text = g_strdup(secret);
    if (key != NULL)
        g_strlcpy(r->id, key->id, sizeof r->id);
    on_done(r, error);
}

static void
make_key(KeyRing *ring, gint64 life_s, Result *r)
{
    KeySpec spec = {.name = "test", .scopes = SCOPE_ADMIN, .actor = "test"};

    spec.expires_us = life_s > 0 ? clock_wall_us() + life_s * G_USEC_PER_SEC : 0;
    key_ring_create(ring, &spec, on_made, r);
    wait_for(r);
    g_assert_no_error(r->error);
}

/* ---- keys ---- */

static void
test_key_expires(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(KeyRing) ring = key_ring_new(b->db);
    g_auto(Result) made = {0};
    const char *why;

    make_key(ring, 100, &made);
    fake_clock_forward(99);
    g_assert_nonnull(key_ring_find(ring, made.text, &why));
    g_assert_true(key_ring_has_admin(ring));
    fake_clock_forward(1);
    g_assert_null(key_ring_find(ring, made.text, &why));
    g_assert_cmpstr(why, ==, "expired");
    g_assert_false(key_ring_has_admin(ring));
    g_assert_false(key_is_live(key_ring_by_id(ring, made.id)));
}

/* ---- tickets and sessions ---- */

static const struct {
    gint64 wait_s;
    bool works;
} ticket_rows[] = {{0, true}, {TICKET_LIFE_S - 1, true}, {TICKET_LIFE_S, false}, {TICKET_LIFE_S * 10, false}};

static void
test_ticket_life(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ticket_rows); i++) {
        g_autoptr(StoreBench) b = store_bench_new_open();
        g_autoptr(KeyRing) ring = key_ring_new(b->db);
        g_autoptr(SessionBook) book = session_book_new(b->db);
        g_auto(Result) made = {0};
        g_auto(Result) opened = {0};
        char ticket[TICKET_LEN + 1];

        make_key(ring, 0, &made);
        session_ticket_new(book, made.id, ticket);
        fake_clock_forward(ticket_rows[i].wait_s);
        session_open(book, ticket, on_opened, &opened);
        wait_for(&opened);
        g_assert_true((opened.error == NULL) == ticket_rows[i].works);
        if (!ticket_rows[i].works)
            g_assert_cmpint(err_kind(opened.error), ==, ERR_DENIED);
    }
}

static void
test_session_life(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(KeyRing) ring = key_ring_new(b->db);
    g_autoptr(SessionBook) book = session_book_new(b->db);
    g_auto(Result) made = {0};
    g_auto(Result) opened = {0};
    g_auto(Result) loaded = {0};
    char ticket[TICKET_LEN + 1];

    make_key(ring, 0, &made);
    session_ticket_new(book, made.id, ticket);
    session_open(book, ticket, on_opened, &opened);
    wait_for(&opened);
    fake_clock_forward(SESSION_LIFE_S - 1);
    g_assert_cmpstr(session_find(book, opened.text), ==, made.id);
    fake_clock_forward(1);
    g_assert_null(session_find(book, opened.text));
    g_assert_cmpint(store_read_int(b->db, "SELECT COUNT(*) FROM sessions"), ==, 1);
    session_book_load(book, on_done, &loaded);
    wait_for(&loaded);
    g_assert_cmpint(store_read_int(b->db, "SELECT COUNT(*) FROM sessions"), ==, 0);
}

/* ---- rates ---- */

static void
test_rate(void)
{
    static const struct {
        gint64 after_ms;
        bool passes;
        guint wait_ms;
    } rows[] = {
        {0, true},     {0, true},       {0, true},    {0, false, 501}, {499, false, 2},
        {2, true},     {0, false, 500}, {1000, true}, {0, true},       {0, false, 500},
        {60000, true}, {0, true},       {0, true},    {0, false, 501},
    };
    const RateLimit limit = {.per_second = 2, .burst = 3};
    RateBucket bucket = {0};
    gint64 now = 1000000;

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        guint wait_ms = 0;

        now += rows[i].after_ms * 1000;
        g_assert_true(rate_take(&bucket, &limit, now, &wait_ms) == rows[i].passes);
        g_assert_cmpuint(wait_ms, ==, rows[i].wait_ms);
    }
}

/* ---- refusals ---- */

static void
refuse(RefusalLog *log, const char *address, guint times)
{
    Refusal r = {
        .kind = "key.refused", .address = address, .method = "GET", .path = "/\xff\xfe\n", .why = "unknown"};

    for (guint i = 0; i < times; i++)
        refusal_note(log, &r);
}

static gint64
count(Db *db, const char *what)
{
    g_autofree char *sql = g_strdup_printf("SELECT %s FROM events", what);

    return store_read_int(db, sql);
}

static const char sum[] = "COALESCE(SUM(json_extract(data, '$.count')), 0)";

static void
until_sum(Db *db, gint64 wanted)
{
    while (count(db, sum) < wanted) /* each runs the loop */
        continue;
    g_assert_cmpint(count(db, sum), ==, wanted);
}

static void
test_refusals_are_held_back(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(RefusalLog) log = refusal_log_new(b->db);

    refuse(log, "10.0.0.1", 100);
    refuse(log, "10.0.0.2", 1);
    until_sum(b->db, 2);
    fake_clock_forward(REFUSAL_QUIET_S);
    until_sum(b->db, 101);
    g_assert_cmpint(count(b->db, "COUNT(*)"), ==, 3);
    /* The second was quiet and is forgotten, so it is told of at once again. */
    refuse(log, "10.0.0.1", 5);
    refuse(log, "10.0.0.2", 5);
    until_sum(b->db, 102);
    refusal_flush(log);
    until_sum(b->db, 111);
    g_assert_cmpint(count(b->db, "COUNT(*)"), ==, 6);
}

static void
test_refusals_are_bounded(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(RefusalLog) log = refusal_log_new(b->db);

    for (int i = 0; i < 3 * REFUSAL_SOURCES_MAX; i++) {
        g_autofree char *address = g_strdup_printf("10.0.%d.%d", i / 256, i % 256);

        refuse(log, address, 2);
    }
    refusal_flush(log);
    until_sum(b->db, 2 * REFUSAL_SOURCES_MAX);
    g_assert_cmpint(count(b->db, "COUNT(*)"), ==, 2 * REFUSAL_SOURCES_MAX);
}

static void
test_grants_end(void)
{
    static const GrantFor what = {"abcdefghij0123456789", 3000};
    g_autoptr(GrantBook) book = grant_book_new();
    char token[GRANT_SECRET_LEN + 1], late[GRANT_SECRET_LEN + 1], brief[GRANT_SECRET_LEN + 1];
    char cookie[GRANT_SECRET_LEN + 1], none[GRANT_SECRET_LEN + 1];
    gint64 left;

    grant_new(book, &what, "key", GRANT_LIFE_S, token);
    grant_new(book, &what, "key", GRANT_LIFE_S, late);
    grant_new(book, &what, "key", 10, brief);
    fake_clock_forward(10);
    g_assert_false(grant_redeem(book, &what, brief, none, &left));
    fake_clock_forward(GRANT_LINK_S - 11);
    g_assert_true(grant_redeem(book, &what, token, cookie, &left));
    g_assert_cmpint(left, ==, GRANT_LIFE_S - GRANT_LINK_S + 1);
    fake_clock_forward(1);
    g_assert_false(grant_redeem(book, &what, late, none, &left));
    fake_clock_forward(left - 2);
    g_assert_cmpstr(grant_find(book, &what, cookie), ==, "key");
    fake_clock_forward(1);
    g_assert_null(grant_find(book, &what, cookie));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    log_set_levels("error");
    g_test_add_func("/time/key", test_key_expires);
    g_test_add_func("/time/ticket", test_ticket_life);
    g_test_add_func("/time/session", test_session_life);
    g_test_add_func("/time/rate", test_rate);
    g_test_add_func("/time/refusals/held-back", test_refusals_are_held_back);
    g_test_add_func("/time/refusals/bounded", test_refusals_are_bounded);
    g_test_add_func("/time/grants", test_grants_end);
    return g_test_run();
}

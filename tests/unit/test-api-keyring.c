/* SPDX-License-Identifier: Apache-2.0 */
/* Many keys: how many there may be, and that making and revoking them does not use that up. */
#include "api/keyring.h"
#include "base/err.h"
#include "support/store.h"

enum { AT_ONCE = 2000 };

typedef struct Tally {
    guint done, failed;
    ErrKind kind; /* of the last that failed */
    GPtrArray *ids;
} Tally;

static void
note(Tally *t, const GError *error)
{
    t->done++;
    if (error != NULL) {
        t->failed++;
        t->kind = err_kind(error);
    }
}

static void
on_made(const char *secret, const Key *key, const GError *error, void *data)
{
    Tally *t = data;

    if (key != NULL)
        g_ptr_array_add(t->ids, g_strdup(key->id));
    note(t, error);
}

static void
on_revoked(void *data, const GError *error)
{
    note(data, error);
}

static void
wait_for(const Tally *t, guint wanted)
{
    while (t->done < wanted)
        g_main_context_iteration(NULL, TRUE);
}

static void
make_some(KeyRing *ring, guint n, Tally *t)
{
    const KeySpec spec = {.name = "many", .scopes = SCOPE_READ, .actor = "test"};
    guint before = t->done;

    for (guint i = 0; i < n; i++) {
        key_ring_create(ring, &spec, on_made, t);
        if ((i + 1) % AT_ONCE == 0 || i + 1 == n)
            wait_for(t, before + i + 1);
    }
}

static void
revoke_some(KeyRing *ring, guint first, guint n, Tally *t)
{
    guint before = t->done;

    for (guint i = 0; i < n; i++) {
        key_ring_revoke(ring, t->ids->pdata[first + i], "test", on_revoked, t);
        if ((i + 1) % AT_ONCE == 0 || i + 1 == n)
            wait_for(t, before + i + 1);
    }
}

static void
count_one(const Key *key, void *data)
{
    guint *counts = data;

    counts[key->revoked_us != 0]++;
}

static void
assert_held(KeyRing *ring, guint live, guint revoked)
{
    guint counts[2] = {0};

    key_ring_list(ring, count_one, counts);
    g_assert_cmpuint(counts[0], ==, live);
    g_assert_cmpuint(counts[1], ==, revoked);
}

static void
test_many(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(KeyRing) ring = key_ring_new(b->db);
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);
    Tally t = {.ids = ids};
    Tally loaded = {.ids = ids};

    make_some(ring, KEY_RING_MAX, &t);
    g_assert_cmpuint(t.failed, ==, 0);
    make_some(ring, 1, &t);
    g_assert_cmpuint(t.failed, ==, 1);
    g_assert_cmpint(t.kind, ==, ERR_LIMIT);
    revoke_some(ring, 0, KEY_REVOKED_SHOWN + 500, &t);
    make_some(ring, 10, &t);
    g_assert_cmpuint(t.failed, ==, 1);
    assert_held(ring, KEY_RING_MAX - KEY_REVOKED_SHOWN - 490, KEY_REVOKED_SHOWN);
    /* The oldest were left out, and are still in the database. */
    g_assert_null(key_ring_by_id(ring, ids->pdata[0]));
    g_assert_nonnull(key_ring_by_id(ring, ids->pdata[KEY_REVOKED_SHOWN + 499]));
    g_assert_cmpint(store_read_int(b->db, "SELECT COUNT(*) FROM keys"), ==, KEY_RING_MAX + 10);
    key_ring_load(ring, on_revoked, &loaded);
    wait_for(&loaded, 1);
    assert_held(ring, KEY_RING_MAX - KEY_REVOKED_SHOWN - 490, KEY_REVOKED_SHOWN);
    g_assert_null(key_ring_by_id(ring, ids->pdata[0]));
}

/* A secret that was revoked cannot be given again, even when nobody remembers the key. */
static void
test_revoked_for_ever(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(KeyRing) ring = key_ring_new(b->db);
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);
    const KeySpec spec = {.name = "old",
                          .scopes = SCOPE_ADMIN,
                          .actor = "test",
                          .secret = "e2b_0123456789012345678901234567890123456789"};
    Tally t = {.ids = ids};
    const char *why;

    key_ring_create(ring, &spec, on_made, &t);
    wait_for(&t, 1);
    revoke_some(ring, 0, 1, &t);
    make_some(ring, KEY_REVOKED_SHOWN, &t);
    revoke_some(ring, 1, KEY_REVOKED_SHOWN, &t);
    g_assert_null(key_ring_by_id(ring, ids->pdata[0]));
    guint before = t.done;
    key_ring_create(ring, &spec, on_made, &t);
    wait_for(&t, before + 1);
    g_assert_cmpuint(t.failed, ==, 1);
    g_assert_cmpint(t.kind, ==, ERR_CONFLICT);
    g_assert_null(key_ring_find(ring, spec.secret, &why));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/keyring/many", test_many);
    g_test_add_func("/keyring/revoked-for-ever", test_revoked_for_ever);
    return g_test_run();
}

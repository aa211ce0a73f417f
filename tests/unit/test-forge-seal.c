/* SPDX-License-Identifier: Apache-2.0 */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "forge/seal.h"

typedef struct Home {
    char *path, *key;
} Home;

static void
home_make(Home *home, gconstpointer unused)
{
    (void)unused;
    home->path = g_dir_make_tmp("coop-seal-XXXXXX", NULL);
    g_assert_nonnull(home->path);
    home->key = g_build_filename(home->path, "forge-key", NULL);
}

static void
home_remove(Home *home, gconstpointer unused)
{
    (void)unused;
    g_unlink(home->key);
    g_assert_cmpint(g_rmdir(home->path), ==, 0);
    g_free(home->path);
    g_free(home->key);
}

static Seal *
open_seal(const Home *home)
{
    g_autoptr(GError) error = NULL;
    Seal *seal = seal_open(home->path, &error);

    g_assert_no_error(error);
    return seal;
}

static char *
unseal(const Seal *seal, const char *purpose, GBytes *sealed, size_t cut, int flip, GError **error)
{
    gsize n;
    const guint8 *bytes = g_bytes_get_data(sealed, &n);
    g_autofree guint8 *copy = g_memdup2(bytes, n);

    if (flip >= 0)
        copy[flip] ^= 1;
    return seal_unseal(seal, purpose, copy, n - cut, NULL, error);
}

static void
test_opens_again(Home *home, gconstpointer unused)
{
    static const char secret[] = "it's a secret";
    struct stat st;
    g_autoptr(Seal) first = open_seal(home);
    g_autoptr(GBytes) sealed = seal_close_over(first, "hook:1", secret, strlen(secret));
    g_autoptr(GBytes) twice = seal_close_over(first, "hook:1", secret, strlen(secret));
    g_autoptr(Seal) later = open_seal(home);
    size_t n = 0;

    (void)unused;
    char *back = seal_unseal(later, "hook:1", g_bytes_get_data(sealed, NULL), g_bytes_get_size(sealed), &n,
                             NULL);
    g_assert_cmpstr(back, ==, secret);
    g_assert_cmpuint(n, ==, strlen(secret));
    seal_wipe(back, n);
    g_assert_false(g_bytes_equal(sealed, twice));
    g_assert_null(g_strstr_len(g_bytes_get_data(sealed, NULL), (gssize)g_bytes_get_size(sealed), "secret"));
    g_assert_cmpint(g_stat(home->key, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 0777, ==, 0600);
}

static void
test_refuses(Home *home, gconstpointer unused)
{
    static const struct {
        const char *purpose;
        size_t cut;
        int flip;
    } cases[] = {
        {"hook:2", 0, -1}, /* of another row */
        {"hook:1", 1, -1}, {"hook:1", 30, -1}, {"hook:1", 0, 0},
        {"hook:1", 0, 23}, {"hook:1", 0, 24},  {"hook:1", 0, 40},
    };
    g_autoptr(Seal) seal = open_seal(home);
    g_autoptr(GBytes) sealed = seal_close_over(seal, "hook:1", "a", 1);

    (void)unused;
    g_assert_cmpuint(g_bytes_get_size(sealed), ==, 24 + 1 + 16);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(unseal(seal, cases[i].purpose, sealed, cases[i].cut, cases[i].flip, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_DENIED);
    }
}

static void
test_key_file(Home *home, gconstpointer unused)
{
    g_autoptr(GError) wide = NULL, shorter = NULL;
    g_autoptr(Seal) seal = open_seal(home);

    (void)unused;
    g_assert_cmpint(g_chmod(home->key, 0640), ==, 0);
    g_assert_null(seal_open(home->path, &wide));
    g_assert_error(wide, ERR_DOMAIN, ERR_DENIED);
    g_assert_true(g_file_set_contents(home->key, "short", -1, NULL));
    g_assert_cmpint(g_chmod(home->key, 0600), ==, 0);
    g_assert_null(seal_open(home->path, &shorter));
    g_assert_error(shorter, ERR_DOMAIN, ERR_INTERNAL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/forge/seal/opens-again", Home, NULL, home_make, test_opens_again, home_remove);
    g_test_add("/forge/seal/refuses", Home, NULL, home_make, test_refuses, home_remove);
    g_test_add("/forge/seal/key-file", Home, NULL, home_make, test_key_file, home_remove);
    return g_test_run();
}

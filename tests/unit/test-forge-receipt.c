/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts: what is signed, and that nothing of it can be changed. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "forge/receipt.h"

typedef struct Place {
    char *home, *file;
} Place;

static void
place_clear(Place *p)
{
    g_unlink(p->file);
    g_rmdir(p->home);
    g_free(p->file);
    g_free(p->home);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Place, place_clear)

static Place
place_new(void)
{
    Place p = {.home = g_dir_make_tmp("coop-receipt-XXXXXX", NULL)};

    p.file = g_build_filename(p.home, "receipt-key", NULL);
    return p;
}

static ReceiptKey *
open_key(const Place *p)
{
    g_autoptr(GError) error = NULL;
    ReceiptKey *key = receipt_key_open(p->home, &error);

    g_assert_no_error(error);
    return key;
}

static char *
sign(const ReceiptKey *key)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json)
        receipt = json_pack("{s:i, s:s, s:s, s:[{s:i, s:s}]}", "version", RECEIPT_VERSION, "tree", "abc",
                            "a\xc3\xa4", "x", "commands", "exit_code", 0, "run", "make \"t\"\n");
    char *text = receipt_sign(key, receipt, &error);

    g_assert_no_error(error);
    return text;
}

static void
test_key(void)
{
    g_auto(Place) p = place_new();
    g_autoptr(ReceiptKey) key = open_key(&p);
    g_autoptr(ReceiptKey) same = open_key(&p);
    g_autoptr(GError) error = NULL;
    struct stat st;

    g_assert_cmpuint(strlen(receipt_key_hex(key)), ==, 2 * RECEIPT_KEY_LEN);
    g_assert_cmpstr(receipt_key_hex(key), ==, receipt_key_hex(same));
    g_assert_cmpint(stat(p.file, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 0777, ==, 0600);
    g_assert_cmpint(g_chmod(p.file, 0644), ==, 0);
    g_assert_null(receipt_key_open(p.home, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_DENIED);
}

static void
test_form(void)
{
    g_auto(Place) p = place_new();
    g_autoptr(ReceiptKey) key = open_key(&p);
    g_autofree char *text = sign(key);
    g_autofree char *start = g_strdup_printf(
        "{\"key\":\"%s\",\"receipt\":{\"a\xc3\xa4\":\"x\",\"commands\":[{\"exit_code\":0,\"run\":\"make "
        "\\\"t\\\"\\n\"}],\"tree\":\"abc\",\"version\":1},\"signature\":\"",
        receipt_key_hex(key));

    g_assert_true(g_str_has_prefix(text, start));
    g_assert_null(strchr(text, '\n'));
}

static void
test_holds(void)
{
    g_auto(Place) p = place_new();
    g_autoptr(ReceiptKey) key = open_key(&p);
    g_autofree char *text = sign(key);
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) any = receipt_verify(text, strlen(text), NULL, &error);
    g_autoptr(Json) ours = receipt_verify(text, strlen(text), receipt_key_hex(key), &error);

    g_assert_no_error(error);
    g_assert_cmpstr(json_string_value(json_object_get(ours, "tree")), ==, "abc");
    /* Spaces and the order of members are not what is signed. */
    g_autoptr(Json) whole = json_decode(text, strlen(text), NULL);
    g_autofree char *wide = json_dumps(whole, JSON_INDENT(2));
    g_autoptr(Json) again = receipt_verify(wide, strlen(wide), receipt_key_hex(key), &error);

    g_assert_no_error(error);
    g_assert_true(json_equal(again, ours));
}

static void
expect(const char *text, const char *key_hex, ErrKind kind, const char *words)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) receipt = receipt_verify(text, strlen(text), key_hex, &error);

    g_assert_null(receipt);
    g_assert_error(error, ERR_DOMAIN, (int)kind);
    g_assert_nonnull(strstr(error->message, words));
}

static void
test_changed(void)
{
    static const struct {
        const char *from, *to;
        ErrKind kind;
        const char *words;
    } cases[] = {
        {"\"tree\":\"abc\"", "\"tree\":\"abd\"", ERR_DENIED, "does not hold"},
        {"\"exit_code\":0", "\"exit_code\":1", ERR_DENIED, "does not hold"},
        {"\"tree\":\"abc\",", "", ERR_DENIED, "does not hold"},
        {"\"tree\"", "\"more\":true,\"tree\"", ERR_DENIED, "does not hold"},
        {"\"version\":1", "\"version\":2", ERR_DENIED, "does not hold"},
        {"\"exit_code\":0", "\"exit_code\":0.0", ERR_INVALID, "whole numbers"},
        {"\"signature\":\"", "\"signature\":\"0", ERR_INVALID, "hex digits"},
        {"\"key\":\"", "\"key\":\"zz", ERR_INVALID, "hex digits"},
        {"\"key\"", "\"more\":1,\"key\"", ERR_INVALID, "more"},
        {"\"receipt\":{", "\"receipt\":{\"receipt\":{", ERR_INVALID, ""},
        {"\"receipt\"", "\"recipe\"", ERR_INVALID, ""},
    };
    g_auto(Place) p = place_new();
    g_autoptr(ReceiptKey) key = open_key(&p);
    g_autofree char *text = sign(key);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) changed = g_string_new(text);

        g_assert_cmpuint(g_string_replace(changed, cases[i].from, cases[i].to, 1), ==, 1);
        g_test_message("%s", changed->str);
        expect(changed->str, NULL, cases[i].kind, cases[i].words);
    }
    expect("", NULL, ERR_INVALID, "");
    expect("[]", NULL, ERR_INVALID, "");
}

static void
test_other_key(void)
{
    g_auto(Place) p = place_new();
    g_auto(Place) q = place_new();
    g_autoptr(ReceiptKey) key = open_key(&p);
    g_autoptr(ReceiptKey) other = open_key(&q);
    g_autofree char *text = sign(key);
    g_autoptr(GString) forged = g_string_new(text);

    expect(text, receipt_key_hex(other), ERR_DENIED, "another key");
    expect(text, "abc", ERR_INVALID, "hex digits");
    /* Another's name on it. */
    g_string_replace(forged, receipt_key_hex(key), receipt_key_hex(other), 0);
    expect(forged->str, receipt_key_hex(other), ERR_DENIED, "does not hold");
}

static void
test_fractions(void)
{
    g_auto(Place) p = place_new();
    g_autoptr(ReceiptKey) key = open_key(&p);
    g_autoptr(Json) receipt = json_pack("{s:[{s:f}]}", "a", "b", 0.5);
    g_autoptr(GError) error = NULL;

    g_assert_null(receipt_sign(key, receipt, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/receipt/key", test_key);
    g_test_add_func("/forge/receipt/form", test_form);
    g_test_add_func("/forge/receipt/holds", test_holds);
    g_test_add_func("/forge/receipt/changed", test_changed);
    g_test_add_func("/forge/receipt/other-key", test_other_key);
    g_test_add_func("/forge/receipt/fractions", test_fractions);
    return g_test_run();
}

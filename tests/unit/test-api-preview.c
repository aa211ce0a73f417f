/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts are a box's port, who may look, and what goes through. */
#include <string.h>

#include "api/grant.h"
#include "api/origin.h"
#include "api/preview-headers.h"

#define ID "abcdefghij0123456789"

/* ---- hosts ---- */

static void
test_hosts(void)
{
    static const char *const extra[] = {"coop.example", "fixed.example:9000", "10.0.0.1", NULL};
    static const struct {
        const char *host;
        guint16 port; /* 0: not a preview */
    } cases[] = {
        {"3000-" ID ".localhost:8003", 3000},
        {"1-" ID ".localhost:8003", 1},
        {"65535-" ID ".LOCALHOST:8003", 65535},
        {"3000-ABCDEFGHIJ0123456789.localhost:8003", 3000},
        {"3000-" ID ".coop.example:8003", 3000},
        {"3000-" ID ".fixed.example:9000", 3000},
        {"3000-" ID ".fixed.example:8003", 0},
        {"3000-" ID ".localhost", 0},
        {"3000-" ID ".localhost:8004", 0},
        {"3000-" ID ".localhost:8003:1", 0},
        {"3000-" ID ".localhost.:8003", 0},
        {"3000-" ID ".localhost.evil.example:8003", 0},
        {"3000-" ID ".evil.example:8003", 0},
        {"3000-" ID ".x.localhost:8003", 0},
        {"x.3000-" ID ".localhost:8003", 0},
        {"3000-" ID ".127.0.0.1:8003", 0},
        {"3000-" ID ".10.0.0.1:8003", 0},
        {"3000-" ID ".[::1]:8003", 0},
        {"3000-" ID "..localhost:8003", 0},
        {"0-" ID ".localhost:8003", 0},
        {"03000-" ID ".localhost:8003", 0},
        {"65536-" ID ".localhost:8003", 0},
        {"100000-" ID ".localhost:8003", 0},
        {"-" ID ".localhost:8003", 0},
        {"+80-" ID ".localhost:8003", 0},
        {"3000" ID ".localhost:8003", 0},
        {"3000-" ID "x.localhost:8003", 0},
        {"3000-abcdefghij012345678.localhost:8003", 0},
        {"3000-abcdefghij-123456789.localhost:8003", 0},
        {"3000-sb-" ID ".localhost:8003", 0},
        {"localhost:8003", 0},
        {"evil.localhost:8003", 0},
        {".localhost:8003", 0},
        {"", 0},
    };
    g_autoptr(OriginRules) rules = origin_rules_new(extra, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char id[ID_BOX_LEN + 1] = "";
        guint16 port = 0;

        g_test_message("%s", cases[i].host);
        bool is = origin_is_preview(rules, cases[i].host, 8003, &port, id);
        g_assert_true(is == (cases[i].port != 0));
        g_assert_cmpuint(port, ==, cases[i].port);
        g_assert_cmpstr(id, ==, is ? ID : "");
        /* What is a preview is never ours. */
        g_assert_false(is && origin_host_allowed(rules, cases[i].host, 8003));
    }
}

/* ---- grants ---- */

static void
test_grants(void)
{
    static const GrantFor what = {ID, 3000}, port = {ID, 3001}, box = {"bbbbbbbbbb0123456789", 3000};
    g_autoptr(GrantBook) book = grant_book_new();
    char token[GRANT_SECRET_LEN + 1], cookie[GRANT_SECRET_LEN + 1], again[GRANT_SECRET_LEN + 1];
    gint64 left;

    grant_new(book, &what, "key", 100, token);
    g_assert_cmpuint(strlen(token), ==, GRANT_SECRET_LEN);
    g_assert_null(grant_find(book, &what, token)); /* a token is no cookie */
    g_assert_false(grant_redeem(book, &port, token, cookie, &left));
    g_assert_false(grant_redeem(book, &box, token, cookie, &left));
    g_assert_false(grant_redeem(book, &what, "", cookie, &left));
    g_assert_true(grant_redeem(book, &what, token, cookie, &left));
    g_assert_cmpint(left, >=, 98);
    g_assert_cmpint(left, <=, 100);
    g_assert_cmpstr(cookie, !=, token);
    g_assert_false(grant_redeem(book, &what, token, again, &left));
    g_assert_false(grant_redeem(book, &what, cookie, again, &left)); /* a cookie is no token */
    g_assert_cmpstr(grant_find(book, &what, cookie), ==, "key");
    g_assert_null(grant_find(book, &port, cookie));
    g_assert_null(grant_find(book, &box, cookie));
    g_assert_null(grant_find(book, &what, token));
}

static void
test_many_grants(void)
{
    static const GrantFor what = {ID, 3000};
    g_autoptr(GrantBook) book = grant_book_new();
    char others[GRANT_SECRET_LEN + 1], token[GRANT_SECRET_LEN + 1], first[GRANT_SECRET_LEN + 1], cookie[64];
    gint64 left;

    grant_new(book, &what, "other", 100, others);
    grant_new(book, &what, "key", 100, first);
    for (guint i = 0; i < GRANTS_PER_KEY; i++)
        grant_new(book, &what, "key", 100, token);
    g_assert_false(grant_redeem(book, &what, first, cookie, &left));
    g_assert_true(grant_redeem(book, &what, token, cookie, &left));
    g_assert_true(grant_redeem(book, &what, others, cookie, &left));

    /* Of all, the oldest, whoever's it is. */
    for (guint i = 0; i < GRANTS_MAX; i++) {
        g_autofree char *name = g_strdup_printf("k%u", i);

        grant_new(book, &what, name, 100, token);
    }
    g_assert_null(grant_find(book, &what, cookie));
}

/* ---- heads ---- */

static void
test_cookies(void)
{
    static const char *const cases[][2] = {
        {"a=1", "a=1"},
        {"coop_session=x", NULL},
        {"coop_preview=x", NULL},
        {"a=1; coop_session=x; b=2", "a=1; b=2"},
        {"coop_preview=x;a=1", "a=1"},
        {"a=1; coop_preview=x", "a=1"},
        {" coop_session =x;  b=2 ", "b=2 "},
        {"coop_sessions=x; Coop_session=y; xcoop_session=z",
         "coop_sessions=x; Coop_session=y; xcoop_session=z"},
        {"a=coop_session=1", "a=coop_session=1"},
        {"coop_session", NULL},
        {"", NULL},
        {";;", NULL},
        {"a=\"1; coop_session=x\"", "a=\"1"}, /* a ';' ends a cookie even between quotes */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *kept = preview_cookies(cases[i][0]);

        g_test_message("%s", cases[i][0]);
        g_assert_cmpstr(kept, ==, cases[i][1]);
    }
}

static void
test_answers(void)
{
    static const struct {
        const char *name, *value, *judged;
    } cases[] = {
        {"Content-Type", "text/html; domain=x", "text/html; domain=x"},
        {"Set-Cookie", "a=1", "a=1"},
        {"set-cookie", "a=1; Domain=localhost; Path=/", "a=1; Path=/"},
        {"Set-Cookie", "a=1;DOMAIN=.localhost", "a=1"},
        {"Set-Cookie", "a=1; domain = x; HttpOnly;domain", "a=1; HttpOnly"},
        {"Set-Cookie", "a=1; Path=/domain=x", "a=1; Path=/domain=x"},
        {"Set-Cookie", "domain=x; Path=/", "domain=x; Path=/"},
        {"Set-Cookie", "coop_session=x; Path=/", NULL},
        {"Set-Cookie", "coop_preview=", NULL},
        {"Set-Cookie", " coop_session=x", NULL},
        {"Set-Cookie2", "a=1", NULL},
        {"Service-Worker-Allowed", "/", NULL},
        {"service-worker-allowed", "/", NULL},
        {"Clear-Site-Data", "\"*\"", NULL},
        {"Alt-Svc", "h2=\":1\"", NULL},
        {"Strict-Transport-Security", "max-age=1; includeSubDomains", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *judged = preview_judge_answer(cases[i].name, cases[i].value);

        g_test_message("%s: %s", cases[i].name, cases[i].value);
        g_assert_cmpstr(judged, ==, cases[i].judged);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/preview/hosts", test_hosts);
    g_test_add_func("/preview/grants", test_grants);
    g_test_add_func("/preview/grants/many", test_many_grants);
    g_test_add_func("/preview/cookies", test_cookies);
    g_test_add_func("/preview/answers", test_answers);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/smart-private.h"

static void
test_queries(void)
{
    static const struct {
        const char *query;
        int service; /* -1: none */
    } cases[] = {
        {"service=git-upload-pack", SMART_ADVERTISE_FETCH},
        {"service=git-receive-pack", SMART_ADVERTISE_PUSH},
        {NULL, -1},
        {"", -1},
        {"service=", -1},
        {"service=git-upload-archive", -1},
        {"service=git-upload-pack&service=git-receive-pack", -1},
        {"service=git-upload-pack&", -1},
        {"service=git%2Dupload-pack", -1},
        {"Service=git-upload-pack", -1},
        {" service=git-upload-pack", -1},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        SmartService service;
        bool known = smart_service_parse(cases[i].query, &service);

        g_test_message("%s", cases[i].query);
        g_assert_true(known == (cases[i].service >= 0));
        if (known)
            g_assert_cmpint(service, ==, cases[i].service);
    }
}

/* ---- the head of an answer ---- */

static void
test_head_length(void)
{
    static const char text[] = "Expires: x\r\n\r\nbody\r\n\r\n";

    for (size_t n = 0; n < strlen(text); n++)
        g_assert_cmpuint(smart_head_length((const guint8 *)text, n), ==, n < 14 ? 0 : 14);
}

static void
test_heads(void)
{
    static const struct {
        const char *text;
        int status; /* 0: refused */
        const char *type;
        guint headers;
    } cases[] = {
        {"\r\n", 200, NULL, 0},
        {"Content-Type: a/b\r\n\r\n", 200, "a/b", 0},
        {"Status: 404 Not Found\r\nCache-Control: no-cache\r\n\r\n", 404, NULL, 1},
        {"status: 403\r\ncontent-TYPE:  c/d \r\n\r\n", 403, "c/d", 0},
        {"Set-Cookie: a=b\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n", 200, NULL, 0},
        {"Status: 0200\r\nPragma: x\r\nExpires: y\r\n\r\n", 200, NULL, 2},
        {"Status: 100\r\n\r\n", 0, NULL, 0},
        {"Status: 600\r\n\r\n", 0, NULL, 0},
        {"Status: x\r\n\r\n", 0, NULL, 0},
        {"Status:\r\n\r\n", 0, NULL, 0},
        {"Status: 200OK\r\n\r\n", 0, NULL, 0},
        {"no colon\r\n\r\n", 0, NULL, 0},
        {"Cache-Control: a\nb\r\n\r\n", 0, NULL, 0},
        {"Cache-Control: a\x01\r\n\r\n", 0, NULL, 0},
        {"Cache-Control: \xc3\xa4\r\n\r\n", 0, NULL, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(SmartHead) head = {0};
        bool ok = smart_head_parse((const guint8 *)cases[i].text, strlen(cases[i].text), &head, NULL);

        g_test_message("%s", cases[i].text);
        g_assert_true(ok == (cases[i].status != 0));
        if (!ok)
            continue;
        g_assert_cmpint(head.status, ==, cases[i].status);
        g_assert_cmpstr(head.type, ==, cases[i].type);
        g_assert_cmpuint(head.headers->len, ==, 2 * cases[i].headers);
    }
}

/* ---- what the child is told ---- */

static bool
has(char **list, const char *line)
{
    return g_strv_contains((const char *const *)list, line);
}

static void
test_box(void)
{
    const RepoSettings settings = {.conventional_commits = true};
    const SmartAsk ask = {.service = SMART_PUSH,
                          .actor = "box:1",
                          .box_id = "1",
                          .branch = "task-1",
                          .default_branch = "main",
                          .settings = &settings,
                          .root = "/x"};
    g_auto(GStrv) env = smart_env(&ask);
    g_auto(GStrv) set = smart_settings(&ask);

    g_assert_true(has(env, "COOP_PUSH_PROTECTED=refs/heads/main\n"));
    g_assert_true(has(env, "COOP_PUSH_REF=refs/heads/task-1") && has(env, "COOP_PUSH_MESSAGES=refuse"));
    g_assert_false(has(env, "GIT_HTTP_EXPORT_ALL=1"));
    g_assert_false(has(env, "COOP_PUSH_FORCE=1") || has(env, "COOP_PUSH_DELETE=1") ||
                   has(env, "COOP_PUSH_ADVANCE=1"));
    g_assert_true(has(set, "receive.hideRefs=refs") && has(set, "receive.hideRefs=!refs/heads/task-1"));
    g_assert_true(has(set, "receive.denyDeletes=true") && has(set, "receive.denyNonFastForwards=true"));
    g_assert_true(has(set, "http.uploadpack=false") && has(set, "http.getanyfile=false"));
    g_assert_false(has(set, "receive.hideRefs=!refs/heads"));
}

static void
test_person(void)
{
    static const char *const protected[] = {"main", "release/*", NULL};
    const RepoSettings settings = {.protected_branches = (char **)(guintptr) protected};
    const SmartAsk ask = {.service = SMART_PUSH,
                          .actor = "key:1",
                          .default_branch = "main",
                          .settings = &settings,
                          .root = "/x"};
    g_auto(GStrv) env = smart_env(&ask);

    g_assert_true(has(env, "COOP_PUSH_PROTECTED=refs/heads/main\nrefs/heads/release/*\n"));
    g_assert_true(has(env, "COOP_PUSH_MESSAGES=") && has(env, "COOP_PUSH_DELETE=1"));
    g_assert_false(has(env, "COOP_PUSH_ADVANCE=1"));
}

/* A fetch has nothing that a hook could be told. */
static void
test_fetch(void)
{
    const RepoSettings settings = {.conventional_commits = true};
    const SmartAsk ask = {.service = SMART_FETCH,
                          .actor = "key:1",
                          .default_branch = "main",
                          .settings = &settings,
                          .protocol = "version=2",
                          .encoding = "gzip",
                          .root = "/x"};
    g_auto(GStrv) env = smart_env(&ask);
    g_auto(GStrv) set = smart_settings(&ask);

    for (char **line = env; *line != NULL; line++)
        g_assert_false(g_str_has_prefix(*line, "COOP_"));
    g_assert_true(has(env, "HTTP_GIT_PROTOCOL=version=2") && has(env, "HTTP_CONTENT_ENCODING=gzip"));
    g_assert_true(has(env, "PATH_INFO=/git-upload-pack") && has(env, "GIT_PROJECT_ROOT=/x"));
    g_assert_true(has(set, "http.receivepack=false") && has(set, "uploadpack.hideRefs=refs"));
}

/* Fetches are CGI and say it themselves. */
static void
test_begins(void)
{
    static const struct {
        SmartService service;
        const char *begins, *type, *command;
    } cases[] = {
        {SMART_ADVERTISE_FETCH, NULL, NULL, "http-backend"},
        {SMART_FETCH, NULL, NULL, "http-backend"},
        {SMART_ADVERTISE_PUSH, "001f# service=git-receive-pack\n0000",
         "application/x-git-receive-pack-advertisement", "receive-pack"},
        {SMART_PUSH, "", "application/x-git-receive-pack-result", "receive-pack"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(SmartHead) head = {0};

        g_assert_cmpstr(smart_begins(cases[i].service, &head), ==, cases[i].begins);
        g_assert_cmpstr(head.type, ==, cases[i].type);
        g_assert_cmpstr(smart_args(cases[i].service)[0], ==, cases[i].command);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/smart/queries", test_queries);
    g_test_add_func("/smart/head-length", test_head_length);
    g_test_add_func("/smart/heads", test_heads);
    g_test_add_func("/smart/box", test_box);
    g_test_add_func("/smart/person", test_person);
    g_test_add_func("/smart/fetch", test_fetch);
    g_test_add_func("/smart/begins", test_begins);
    return g_test_run();
}

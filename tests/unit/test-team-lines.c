/* SPDX-License-Identifier: Apache-2.0 */
/* Which findings become comments on lines, which words of a review, and how many of them. */
#include <string.h>

#include "forge/diff.h"
#include "forge/review.h"
#include "team/flow-private.h"

enum { MANY = 300, LONG = 4000, SCANNED_MAX = 40, REST_MAX = 32 * 1024 };

typedef struct World {
    GString *patch, *rest;
    DiffFile file;
    GPtrArray *files;
} World;

static void
world_init(World *w)
{
    w->patch = g_string_new("@@ -1,2 +1,3 @@\n a\n+b\n c\n@@ -90 +91,500 @@ f\n+d\n");
    w->rest = g_string_new(NULL);
    w->file = (DiffFile){.path = (char *)(guintptr) "a.sh", .patch = w->patch};
    w->files = g_ptr_array_new();
    g_ptr_array_add(w->files, &w->file);
}

static void
world_clear(World *w)
{
    g_string_free(w->patch, TRUE);
    g_string_free(w->rest, TRUE);
    g_ptr_array_unref(w->files);
}

static Json *
finding(const char *path, gint64 line, const char *severity, const char *body)
{
    return json_pack("{s:s?, s:I, s:s, s:s, s:s}", "path", path, "line", (json_int_t)line, "severity",
                     severity, "body", body, "rule", "R");
}

static void
test_shown(void)
{
    static const struct {
        const char *path;
        gint64 line;
        bool shown;
    } cases[] = {
        {"a.sh", 1, true},  {"a.sh", 3, true},   {"a.sh", 4, false},   {"a.sh", 90, false},
        {"a.sh", 91, true}, {"a.sh", 590, true}, {"a.sh", 591, false}, {"a.sh", 0, false},
        {"b.sh", 1, false}, {NULL, 1, false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        World w;
        g_autoptr(Json) findings = json_pack("[o]", finding(cases[i].path, cases[i].line, "error", "bad"));

        world_init(&w);
        g_autoptr(Json) lines = flow_lines(findings, w.files, w.rest);

        g_assert_cmpuint(json_array_size(lines), ==, cases[i].shown);
        g_assert_cmpint(strstr(w.rest->str, "bad") != NULL, ==, !cases[i].shown);
        world_clear(&w);
    }
}

/* Whatever is found, a review can be written. */
static void
test_bounded(void)
{
    g_autofree char *body = g_strnfill(LONG, 'x');
    g_autoptr(Json) findings = json_array();
    World w;

    world_init(&w);
    for (gint64 i = 0; i < MANY; i++) {
        json_array_append_new(findings, finding("a.sh", 100 + i, "error", body));
        json_array_append_new(findings, finding(NULL, 1, "error", body));
    }
    g_autoptr(Json) lines = flow_lines(findings, w.files, w.rest);

    g_assert_cmpuint(json_array_size(lines), ==, REVIEW_LINES_MAX);
    g_assert_cmpuint(w.rest->len, <=, REST_MAX);
    g_assert_cmpuint(w.rest->len, >, LONG);
    world_clear(&w);
}

static Json *
agent_of(const char *id, gint64 review_id, Json *findings)
{
    return json_pack("{s:s, s:s, s:I, s:{s:[{s:s}, {s:s, s:o}]}}", "id", id, "kind", "review", "review_id",
                     (json_int_t)review_id, "result", "checks", "name", "tests", "name", "scan: x",
                     "findings", findings);
}

static void
test_scanned(void)
{
    World w;
    g_autoptr(Json) agents = json_pack(
        "[o, o, o]",
        agent_of("a", 7,
                 json_pack("[o, o]", finding("a.sh", 1, "error", "old"), finding("a.sh", 1, "note", "odd"))),
        agent_of("b", 0, json_pack("[o]", finding("a.sh", 1, "error", "lost"))),
        agent_of("c", 0,
                 json_pack("[o, o, o, o]", finding("a.sh", 2, "error", "old"),
                           finding("a.sh", 2, "error", "lost"), finding("a.sh", 3, "note", "odd"),
                           finding("a.sh", 60, "warning", "far"))));
    g_autoptr(Json) lines = json_array();

    world_init(&w);
    flow_lines_scanned(lines, agents, json_array_get(agents, 2), w.files, w.rest);
    g_autofree char *text = json_encode(lines);

    g_assert_cmpstr(text, ==,
                    "[{\"path\":\"a.sh\",\"line\":2,\"body\":\"**error:** lost (a scan by Coop)\"}]");
    g_assert_cmpstr(w.rest->str, ==,
                    "\n- `a.sh`, line 60: **warning:** far (a scan by Coop)\n\nStill there of what scanners "
                    "said before: 1.");
    world_clear(&w);
}

static void
test_scanned_bounded(void)
{
    g_autoptr(Json) findings = json_array(), agents = NULL, lines = json_array();
    World w;

    for (gint64 i = 0; i < MANY; i++) {
        g_autofree char *body = g_strdup_printf("bad %d", (int)i);

        json_array_append_new(findings, finding("a.sh", 100 + i, "error", body));
    }
    agents = json_pack("[o]", agent_of("a", 0, json_incref(findings)));
    world_init(&w);
    flow_lines_scanned(lines, agents, json_array_get(agents, 0), w.files, w.rest);
    g_assert_cmpuint(json_array_size(lines), ==, SCANNED_MAX);
    g_assert_nonnull(strstr(w.rest->str, "found 260 more"));
    world_clear(&w);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/lines/shown", test_shown);
    g_test_add_func("/team/lines/bounded", test_bounded);
    g_test_add_func("/team/lines/scanned", test_scanned);
    g_test_add_func("/team/lines/scanned-bounded", test_scanned_bounded);
    return g_test_run();
}

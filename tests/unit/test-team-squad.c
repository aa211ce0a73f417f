/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of squads, members, roles and tasks that need no server. */
#include <string.h>

#include "base/err.h"
#include "team/member-private.h"
#include "team/repo-file.h"
#include "team/role-private.h"
#include "team/task-private.h"

/* ---- what a squad decides ---- */

static void
test_config(void)
{
    static const struct {
        const char *text;
        const char *wrong; /* NULL: it is fine */
    } cases[] = {
        {"{}", NULL},
        {"{\"planner\": \"council\", \"approve\": true, \"until\": \"tested\", \"merge\": \"squash\"}", NULL},
        {"{\"branch\": \"feature/{id}-{slug}\", \"base\": \"main\", \"keep\": \"box\"}", NULL},
        {"{\"budget\": {\"tokens\": 1, \"usd\": 0.5, \"calls\": 9}, \"chairman\": {\"model\": \"m\"}}", NULL},
        {"{\"council\": {\"seats\": [{\"model\": \"a\"}, {\"provider\": \"p\", \"model\": \"b\"}], "
         "\"quorum\": 2}}",
         NULL},
        {"{\"tries\": 10, \"rounds\": 10, \"turns\": 10000, \"agent_s\": 86400, \"agents_per_task\": 50}",
         NULL},
        {"{\"tries\": 11}", "tries"},
        {"{\"rounds\": 0}", "rounds"},
        {"{\"turns\": \"many\"}", "turns"},
        {"{\"agent_s\": 4}", "agent_s"},
        {"{\"agents_per_task\": 51}", "agents_per_task"},
        {"{\"planner\": \"dice\"}", "planner"},
        {"{\"pull_request\": \"never\"}", "pull_request"},
        {"{\"branch\": \"fixed\"}", "{id}"},
        {"{\"branch\": \"{id}-{role}\"}", "{role}"},
        {"{\"branch\": \"{id}..\"}", "branch"},
        {"{\"base\": \"-x\"}", "branch"},
        {"{\"council\": {\"seats\": [7]}}", "seats"},
        {"{\"council\": {\"quorum\": 3, \"seats\": [{\"model\": \"a\"}]}}", "quorum"},
        {"{\"budget\": {\"tokens\": 0}}", "budget"},
        {"{\"chairman\": {\"provider\": \"p\"}}", "chairman"},
        {"{\"unknown\": 1}", "unknown"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) config = json_decode(cases[i].text, strlen(cases[i].text), NULL);
        g_autoptr(GError) error = NULL;

        g_test_message("%s", cases[i].text);
        g_assert_nonnull(config);
        bool ok = squad_config_check(config, &error);

        g_assert_true(ok == (cases[i].wrong == NULL));
        if (!ok) {
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
            g_assert_nonnull(strstr(error->message, cases[i].wrong));
        }
    }
}

static void
test_config_over(void)
{
    g_autoptr(Json) config = json_pack("{s:i, s:s}", "tries", 2, "keep", "box");
    g_autoptr(Json) over = json_pack("{s:n, s:i}", "keep", "rounds", 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) merged = squad_config_over(config, over, &error);

    g_assert_no_error(error);
    g_autofree char *text = json_encode(merged);

    g_assert_cmpstr(text, ==, "{\"tries\":2,\"rounds\":1}");
    g_assert_cmpuint(json_object_size(config), ==, 2);
    g_autoptr(Json) wrong = json_pack("{s:i}", "tries", 0);

    g_assert_null(squad_config_over(config, wrong, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
}

static void
test_repo_files(void)
{
    static const struct {
        const char *text, *result, *wrong;
    } cases[] = {
        {"checks: [make]\n", NULL, NULL},
        {"# nothing\n", NULL, NULL},
        {"team:\n  planner: council\n  approve: true\n  rounds: 2\n",
         "{\"config\":{\"planner\":\"council\",\"approve\":true,\"rounds\":2},\"roles\":[],\"members\":[]}",
         NULL},
        {"team:\n  roles:\n    - name: Great Poet\n      archetype: coder\n      specialization: songs\n"
         "      template: base\n      brain: groq/llama/3\n      tools: [read, done]\n      limits: {turns: "
         "3}\n"
         "    - {name: tester, prompt: Be strict.}\n",
         "{\"config\":{},\"roles\":[{\"name\":\"great_poet\",\"archetype\":\"coder\",\"prompt\":\"\","
         "\"turns\":3,"
         "\"seconds\":0,\"context_tokens\":0,\"specialization\":\"songs\",\"template\":\"base\",\"llm_"
         "provider\":"
         "\"groq\",\"llm_model\":\"llama/"
         "3\",\"tools\":[\"read\",\"done\"]},{\"name\":\"tester\",\"archetype\":"
         "\"tester\",\"prompt\":\"Be "
         "strict.\",\"turns\":0,\"seconds\":0,\"context_tokens\":0}],\"members\":[]}",
         NULL},
        {"team:\n  roles:\n    - {name: poet}\n", NULL, "line 3: a role needs"},
        {"team: {roles: [{name: coder, adapter: codex}]}\n", NULL, "no 'adapter'"},
        {"team: {roles: [{name: coder, aliases: {x: y}}]}\n", NULL, "no 'aliases'"},
        {"team: {roles: [{name: planner, archetype: planner}]}\n", NULL, "says nothing of who plans"},
        {"team: {roles: [{name: coder, brain: llama}]}\n", NULL, "PROVIDER/MODEL"},
        {"team: {roles: [{name: coder, key: sk-1}]}\n", NULL, "a role has no 'key'"},
        {"team: {roles: [{name: coder, env: {A: b}}]}\n", NULL, "a role has no 'env'"},
        {"team: {roles: [{name: coder, limits: {usd: 9}}]}\n", NULL, "limits has no 'usd'"},
        {"team: {roles: coder}\n", NULL, "roles must be a list"},
        {"team: {roles: [1, 2]}\n", NULL, "a role is a map"},
        {"team: {roles: [a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a]}\n", NULL,
         "at most 20"},
        {"team:\n  members:\n    - role: coder\n      llm_model: 7\n    - {role: tester}\n",
         "{\"config\":{},\"roles\":[],\"members\":[{\"line\":3,\"fields\":{\"role\":\"coder\",\"llm_model\":"
         "\"7\"}},{\"line\":5,\"fields\":{\"role\":\"tester\"}}]}",
         NULL},
        {"team: {members: coder}\n", NULL, "members must be a list"},
        {"team:\n  members:\n    - coder\n", NULL, "line 3: a member is a map"},
        {"team: {members: [{role: coder, config: {turns: 9}}]}\n", NULL, "no 'config'"},
        {"team: {members: [{role: coder, is_active: true}]}\n", NULL, "no 'is_active'"},
        {"team: {rounds: 99}\n", NULL, "rounds"},
        {"team: {budget: {usd: 9}}\n", NULL, "budget"},
        {"team: {keep: box}\n", NULL, "keep"},
        {"team: {what: 1}\n", NULL, "what"},
        {"checks: [make]\nteam: [coder]\n", NULL, "line 2"},
        {"team: {a: 1\n", NULL, "coop.yaml"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", cases[i].text);
        g_autoptr(Json) config = repo_file_parse(cases[i].text, strlen(cases[i].text), &error);
        g_autofree char *text = config != NULL ? json_encode(config) : NULL;

        g_assert_cmpstr(text, ==, cases[i].result);
        g_assert_true((error != NULL) == (cases[i].wrong != NULL));
        if (error != NULL)
            g_assert_nonnull(strstr(error->message, cases[i].wrong));
    }
}

/* ---- roles ---- */

static void
test_role_files(void)
{
    static const struct {
        const char *text;
        const char *wrong;
    } cases[] = {
        {"name: poet\narchetype: coder\n", NULL},
        {"name: poet\narchetype: coder\naliases: {bard: songs, Great-Bard: \"\"}\ntools: [read, done]\n"
         "limits: {turns: 3, seconds: 9, context_tokens: 1000}\nprompt: Rhyme.\ntemplate: base\nadapter: "
         "codex\n",
         NULL},
        {"archetype: coder\n", "needs a name"},
        {"name: poet\n", "an archetype"},
        {"name: poet\narchetype: king\n", "coder, reviewer, tester or planner"},
        {"name: poet\narchetype: coder\nlimits: {turns: 0}\n", "line 3"},
        {"name: poet\narchetype: coder\nlimits: {money: 1}\n", "money"},
        {"name: poet\narchetype: coder\ntools: read\n", "list"},
        {"name: poet\narchetype: coder\ncolour: red\n", "colour"},
        {"- poet\n", "line 1"},
        {"", "nothing in it"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", cases[i].text);
        g_autoptr(RoleFile) file = role_parse(cases[i].text, strlen(cases[i].text), "poet.yaml", &error);

        g_assert_true((file != NULL) == (cases[i].wrong == NULL));
        if (file == NULL)
            g_assert_nonnull(strstr(error->message, cases[i].wrong));
    }
}

static void
test_role_names(void)
{
    static const struct {
        const char *name, *role, *specialization;
    } cases[] = {
        {"coder", "coder", NULL},
        {"Backend Developer", "coder", "backend"},
        {"backend-developer", "coder", "backend"},
        {"FRONTEND", "coder", "frontend"},
        {"qa_tester", "tester", NULL},
        {"security_reviewer", "reviewer", "security"},
        {"chairman", "planner", NULL},
        {"wizard", NULL, NULL},
        {"", NULL, NULL},
    };
    Team team = {0};

    roles_load(&team);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *specialization = NULL;
        const Role *role = team_role(&team, cases[i].name, &specialization);

        g_test_message("%s", cases[i].name);
        g_assert_cmpstr(role != NULL ? role->name : NULL, ==, cases[i].role);
        g_assert_cmpstr(specialization, ==, cases[i].specialization);
    }
    g_hash_table_unref(team.roles);
    g_hash_table_unref(team.aliases);
}

/* ---- members ---- */

static void
test_members(void)
{
    static const struct {
        const char *text;
        MemberUse use;
        const char *result; /* NULL: refused */
    } cases[] = {
        {"{\"role\": \"tester\"}", MEMBER_NEW,
         "{\"role\":\"tester\",\"archetype\":\"tester\",\"adapter\":\"coop\",\"llm_provider\":\"p\","
         "\"llm_model\":\"m\"}"},
        {"{\"role\": \"api developer\", \"llm_model\": \"x\", \"adapter\": \"codex\"}", MEMBER_NEW,
         "{\"role\":\"api developer\",\"llm_model\":\"x\",\"adapter\":\"codex\",\"archetype\":\"coder\","
         "\"specialization\":\"backend\",\"llm_provider\":\"p\"}"},
        {"{\"llm_model\": \"x\"}", MEMBER_CHANGED, "{\"llm_model\":\"x\"}"},
        {"{\"template\": null}", MEMBER_CHANGED, "{\"template\":null}"},
        {"{\"llm_model\": null}", MEMBER_CHANGED, NULL},
        {"{}", MEMBER_NEW, NULL},
        {"{\"role\": \"coder\", \"identity_id\": \"x\"}", MEMBER_NEW, NULL},
        {"{\"role\": \"coder\", \"archetype\": \"planner\"}", MEMBER_NEW, NULL},
        {"{\"role\": \"coder\", \"name\": \"a b\"}", MEMBER_NEW, NULL},
        {"{\"role\": \"coder\", \"config\": {\"temperature\": 3}}", MEMBER_NEW, NULL},
        {"[]", MEMBER_NEW, NULL},
    };
    Team team = {.spec = {.default_provider = "p", .default_model = "m"}};

    roles_load(&team);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) given = json_decode(cases[i].text, strlen(cases[i].text), NULL);
        g_autoptr(GError) error = NULL;

        g_test_message("%s", cases[i].text);
        g_autoptr(Json) fields = member_prepare(&team, given, cases[i].use, &error);
        g_autofree char *text = fields != NULL ? json_encode(fields) : NULL;

        g_assert_cmpstr(text, ==, cases[i].result);
    }
    g_hash_table_unref(team.roles);
    g_hash_table_unref(team.aliases);
}

/* ---- tasks as people see them ---- */

static void
test_shapes(void)
{
    static const struct {
        const char *state, *from, *asked;
        gint64 ahead, wake_us;
        const char *column, *waits, *problem;
    } cases[] = {
        {"queued", NULL, NULL, 0, 0, "backlog", "a free place"},
        {"queued", NULL, NULL, 2, 0, "backlog", "a free place, with 2 before it"},
        {"planning", NULL, NULL, 0, 0, "backlog", "its plan"},
        {"approving", NULL, NULL, 0, 0, "backlog", "a person who approves the plan"},
        {"working", NULL, NULL, 0, 0, "in_progress", NULL},
        {"working", NULL, NULL, 0, 99, "in_progress", "the next try"},
        {"planning", NULL, NULL, 0, 99, "backlog", "the next try: no model", "no model"},
        {"working", NULL, "Which?", 0, 0, "in_progress", "an answer: Which?"},
        {"reviewing", NULL, NULL, 0, 0, "in_review", NULL},
        {"landing", NULL, NULL, 0, 0, "in_review", "Coop's checks and the merge queue"},
        {"blocked", "reviewing", NULL, 0, 0, "in_review", "a retry, or an answer"},
        {"failed", "working", "Which?", 0, 0, "in_progress", NULL},
        {"cancelled", NULL, NULL, 0, 0, "backlog", NULL},
        {"done", NULL, NULL, 0, 0, "done", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) row = json_pack(
            "{s:s, s:s?, s:s?, s:s?, s:I, s:I, s:s, s:s, s:i, s:i}", "state", cases[i].state, "problem",
            cases[i].problem, "blocked_from", cases[i].from, "asked", cases[i].asked, "ahead",
            (json_int_t)cases[i].ahead, "wake_us", (json_int_t)cases[i].wake_us, "squad_id", "s",
            "squad_name", "n", "steps_done", 1, "steps_total", 2);

        task_shape(row, 50);
        g_test_message("%s %zu", cases[i].state, i);
        g_assert_cmpstr(row_text(row, "column"), ==, cases[i].column);
        g_assert_cmpstr(row_text(row, "waiting_for"), ==, cases[i].waits);
        g_assert_cmpint(row_int(json_object_get(row, "progress"), "total"), ==, 2);
        g_assert_null(json_object_get(row, "asked"));
    }
}

/* What a squad demands holds for whoever asks it for something. */
static void
test_config_is_kept(void)
{
    static const struct {
        const char *config, *policy;
        bool kept;
    } cases[] = {
        {"{}", "{}", true},
        {"{\"approve\": true}", "{\"approve\": true}", true},
        {"{\"approve\": true}", "{\"approve\": false}", false},
        {"{\"approve\": true}", "{}", false},
        {"{\"approve\": false}", "{\"approve\": true}", true},
        {"{}", "{\"budget\": {\"calls\": 9}}", true},
        {"{\"budget\": {\"calls\": 9}}", "{\"budget\": {\"calls\": 9}}", true},
        {"{\"budget\": {\"calls\": 9}}", "{\"budget\": {\"calls\": 10}}", false},
        {"{\"budget\": {\"calls\": 9}}", "{}", false},
        {"{\"budget\": {\"calls\": 9}}", "{\"budget\": {\"tokens\": 5}}", false},
        {"{\"budget\": {\"usd\": 0.5}}", "{\"budget\": {\"usd\": 0.25, \"calls\": 3}}", true},
        {"{\"budget\": {\"usd\": 0.5}}", "{\"budget\": {\"usd\": 0.75}}", false},
        {"{\"budget\": {\"usd\": 0.5}}", "{\"budget\": {\"usd\": 0}}", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) config = json_loads(cases[i].config, 0, NULL);
        g_autoptr(Json) policy = json_loads(cases[i].policy, 0, NULL);
        g_autoptr(GError) error = NULL;

        g_test_message("%s, %s", cases[i].config, cases[i].policy);
        g_assert_true(squad_config_is_kept(config, policy, &error) == cases[i].kept);
        g_assert_true(cases[i].kept || g_error_matches(error, ERR_DOMAIN, ERR_DENIED));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/squad/config", test_config);
    g_test_add_func("/squad/config-over", test_config_over);
    g_test_add_func("/squad/config-is-kept", test_config_is_kept);
    g_test_add_func("/squad/repo-files", test_repo_files);
    g_test_add_func("/squad/role-files", test_role_files);
    g_test_add_func("/squad/role-names", test_role_names);
    g_test_add_func("/squad/members", test_members);
    g_test_add_func("/squad/task-shapes", test_shapes);
    return g_test_run();
}

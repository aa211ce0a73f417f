/* SPDX-License-Identifier: Apache-2.0 */
/* The members that a repository names, against a squad. */
#include <string.h>

#include "base/err.h"
#include "team/repo-file.h"
#include "team/role-private.h"

static const char squad_text[] =
    "[{\"id\":\"p\",\"name\":\"planner\",\"role\":\"planner\",\"archetype\":\"planner\",\"adapter\":\"coop\","
    "\"llm_provider\":\"a\",\"llm_model\":\"big\"},"
    "{\"id\":\"c1\",\"name\":\"coder-1\",\"role\":\"coder\",\"archetype\":\"coder\",\"specialization\":"
    "\"frontend\",\"adapter\":\"codex\",\"template\":\"guarded\",\"llm_provider\":\"a\",\"llm_model\":"
    "\"small\"},"
    "{\"id\":\"c2\",\"name\":\"coder-2\",\"role\":\"coder\",\"archetype\":\"coder\",\"specialization\":"
    "\"backend\",\"adapter\":\"coop\",\"llm_provider\":\"a\",\"llm_model\":\"small\"},"
    "{\"id\":\"r1\",\"name\":\"reviewer\",\"role\":\"reviewer\",\"archetype\":\"reviewer\",\"adapter\":"
    "\"coop\",\"llm_provider\":\"a\",\"llm_model\":\"big\"},"
    "{\"id\":\"r2\",\"name\":\"strict\",\"role\":\"reviewer\",\"archetype\":\"reviewer\",\"adapter\":"
    "\"coop\",\"llm_provider\":\"a\",\"llm_model\":\"big\"}]";

static bool
is_open(void *ctx, const char *template)
{
    return strcmp(template, "guarded") != 0;
}

/* The file as a task would keep it; NULL: refused. */
static Json *
take(const char *text, const Json *squad, GError **error)
{
    Team team = {.spec = {.default_provider = "a", .default_model = "usual", .is_open_template = is_open}};
    g_autoptr(Json) file = repo_file_parse(text, strlen(text), error);

    roles_load(&team);
    bool ok = file != NULL && repo_members_check(&team, file, error) && repo_members_seat(file, squad, error);

    g_hash_table_unref(team.roles);
    g_hash_table_unref(team.aliases);
    return ok ? g_steal_pointer(&file) : NULL;
}

/* "name=role/specialization/adapter/template/model" of each. */
static char *
show(const Json *members)
{
    GString *out = g_string_new(NULL);
    size_t i;
    const Json *m;

    json_array_foreach(members, i, m)
    {
        const char *matter = row_text(m, "specialization"), *template = row_text(m, "template");

        g_string_append_printf(out, "%s%s=%s/%s/%s/%s/%s", i > 0 ? " " : "", row_text(m, "name"),
                               row_text(m, "role"), matter != NULL ? matter : "", row_text(m, "adapter"),
                               template != NULL ? template : "", row_text(m, "llm_model"));
    }
    return g_string_free(out, FALSE);
}

#define PLANNER "planner=planner//coop//big"
#define REVIEWERS "reviewer=reviewer//coop//big strict=reviewer//coop//big"

static void
test_places(void)
{
    static const struct {
        const char *members, *result;
    } cases[] = {
        {"[]",
         PLANNER " coder-1=coder/frontend/codex/guarded/small coder-2=coder/backend/coop//small " REVIEWERS},
        /* What is not said is as the one has it whose place is taken; a template of his own stays. */
        {"[{role: coder}]", PLANNER " coder-1=coder//codex/guarded/small " REVIEWERS},
        {"[{role: coder, template: base}]", PLANNER " coder-1=coder//codex/guarded/small " REVIEWERS},
        {"[{role: api developer, llm_provider: a, llm_model: big, adapter: coop}]",
         PLANNER " coder-1=api developer/backend/coop/guarded/big " REVIEWERS},
        {"[{role: coder, specialization: x}, {role: coder, name: coder-1, specialization: y}]",
         PLANNER " coder-1=coder/y/codex/guarded/small coder-2=coder/x/coop//small " REVIEWERS},
        {"[{role: coder, name: coder-2, template: base}]",
         PLANNER " coder-2=coder//coop/base/small " REVIEWERS},
        {"[{role: poet, llm_model: small}]",
         PLANNER " coder-1=coder/frontend/codex/guarded/small coder-2=coder/backend/coop//small "
                 "reviewer=poet//coop//small"},
    };
    g_autoptr(Json) squad = json_loads(squad_text, 0, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "team:\n  roles: [{name: poet, archetype: reviewer}]\n  members: %s\n", cases[i].members);
        g_autoptr(GError) error = NULL;
        g_autoptr(Json) file = take(text, squad, &error);

        g_test_message("%s", cases[i].members);
        g_assert_no_error(error);
        g_autoptr(Json) members = repo_members_over(file, squad);
        g_autofree char *shown = show(members);

        g_assert_cmpstr(shown, ==, cases[i].result);
    }
}

static void
test_refused(void)
{
    static const struct {
        const char *member, *wrong;
    } cases[] = {
        {"{specialization: x}", "a member needs a 'role'"},
        {"{role: planner}", "says nothing of who plans"},
        {"{role: chairman}", "says nothing of who plans"},
        {"{role: coder, llm_model: huge}", "the brain 'a/huge', which nobody in the squad has"},
        {"{role: coder, llm_provider: b, llm_model: big}", "the brain 'b/big'"},
        {"{role: coder, llm_provider: a}", "the brain 'a/usual'"},
        {"{role: coder, adapter: claude-code}", "the adapter 'claude-code', which nobody in the squad has"},
        {"{role: coder, template: guarded}", "the template 'guarded', which has rules of its own"},
        {"{role: tester}", "no further tester"},
        {"{role: coder, name: reviewer}", "no coder 'reviewer' whose place is free"},
        {"{role: coder, name: a b}", "'name'"},
        {"{role: coder, identity_id: x}", "identity_id"},
        {"{role: coder, archetype: reviewer}", "archetype"},
        {"{role: coder, env: {A: b}}", "env"},
        {"{role: coder, budget: 9}", "budget"},
        {"{role: [coder]}", "role"},
    };
    g_autoptr(Json) squad = json_loads(squad_text, 0, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("team:\n  members:\n    - {role: coder}\n    - %s\n",
                                                cases[i].member);
        g_autoptr(GError) error = NULL;

        g_test_message("%s", cases[i].member);
        g_assert_null(take(text, squad, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        g_test_message("%s", error->message);
        g_assert_true(g_str_has_prefix(error->message, "coop.yaml, line 4: "));
        g_assert_nonnull(strstr(error->message, cases[i].wrong));
    }
}

/* Nobody reviews only where the squad has nobody who does. */
static void
test_who_left(void)
{
    g_autoptr(Json) squad = json_loads(squad_text, 0, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) file = take("team: {members: [{role: reviewer}]}\n", squad, &error);

    g_assert_no_error(error);
    json_array_remove(squad, 3);
    g_autoptr(Json) members = repo_members_over(file, squad);
    g_autofree char *shown = show(members);

    g_assert_nonnull(strstr(shown, "strict=reviewer"));
    g_autoptr(Json) changed = json_loads(squad_text, 0, NULL);

    json_object_set_new(json_array_get(changed, 3), "archetype", json_string("tester"));
    g_autoptr(Json) others = repo_members_over(file, changed);

    g_assert_cmpuint(json_array_size(others), ==, 5);
    g_assert_null(json_object_get(json_array_get(others, 3), "asked"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/repo-members/places", test_places);
    g_test_add_func("/repo-members/refused", test_refused);
    g_test_add_func("/repo-members/who-left", test_who_left);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as people and models write them: what is taken, what is refused, how one is found in words. */
#include <string.h>

#include "base/err.h"
#include "team/mind.h"
#include "team/plan.h"

static Json *
decode(const char *text)
{
    g_autoptr(GError) error = NULL;
    Json *value = json_decode(text, strlen(text), &error);

    g_assert_no_error(error);
    return value;
}

static void
test_whole(void)
{
    static const struct {
        const char *given, *whole;
    } cases[] = {
        /* one step, everything else by itself */
        {"{'project': 'P', 'steps': [{'name': 'a'}]}",
         "{'project':'P','summary':'','features':[{'name':'a','title':'a','acceptance':[]}],"
         "'steps':[{'name':'a','title':'a','feature':'a','role':'coder','specialization':null,'depends':[],"
         "'files':[],'details':''}],'risks':[],'minutes':10}"},
        /* features alone */
        {"{'project': 'P', 'features': [{'name': 'A b', 'acceptance': [{'run': 'make'}]}, {'name': 'c_d'}]}",
         "{'project':'P','summary':'','features':[{'name':'a-b','title':'a-b','acceptance':"
         "[{'name':'check-1','run':'make'}]},{'name':'c-d','title':'c-d','acceptance':[]}],"
         "'steps':[{'name':'a-b','title':'a-b','feature':'a-b','role':'coder','specialization':null,"
         "'depends':[],'files':[],'details':''},{'name':'c-d','title':'c-d','feature':'c-d','role':'coder',"
         "'specialization':null,'depends':[],'files':[],'details':''}],'risks':[],'minutes':10}"},
        /* names are written one way, nulls are absent, the only feature is meant */
        {"{'project': 'P\\u001b[31m', 'summary': 'a\\nb\\u0007', 'minutes': null, 'risks': ['x\\ny'], "
         "'features': [{'name': 'f', 'title': ' \\u200e '}], 'steps': [{'name': 'One_Two', 'role': 'Backend "
         "Developer', "
         "'specialization': 'back-end', 'feature': null, 'files': ['./src/', 'a/b.c', 'a/b.c']}, "
         "{'name': 'two', 'feature': 'f', 'depends': ['one two', 'One-Two'], 'details': 'do\\tit\\n'}]}",
         "{'project':'P [31m','summary':'a\\nb','features':[{'name':'f','title':'f','acceptance':[]}],"
         "'steps':[{'name':'one-two','title':'one-two','feature':'f','role':'backend_developer',"
         "'specialization':'back_end','depends':[],'files':['src','a/b.c'],'details':''},"
         "{'name':'two','title':'two','feature':'f','role':'coder','specialization':null,"
         "'depends':['one-two'],'files':[],'details':'do\\tit'}],'risks':['x y'],'minutes':15}"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *given = g_strdelimit(g_strdup(cases[i].given), "'", '"');
        g_autofree char *whole = g_strdelimit(g_strdup(cases[i].whole), "'", '"');
        g_autoptr(Json) plan = decode(given);
        g_autoptr(Json) got = plan_check(plan, &error);

        g_assert_no_error(error);
        g_autofree char *text = json_encode(got);
        g_autoptr(Json) again = plan_check(got, &error);

        g_assert_cmpstr(text, ==, whole);
        g_assert_no_error(error);
        g_assert_true(json_equal(got, again));
    }
}

static void
test_refused(void)
{
    static const struct {
        const char *given, *problem;
    } cases[] = {
        {"[]", "a plan is an object"},
        {"{}", "project"},
        {"{'project': '', 'steps': [{'name': 'a'}]}", "project"},
        {"{'project': '\\u0007', 'steps': [{'name': 'a'}]}", "project: is empty"},
        {"{'project': 'P', 'features': [{'name': 'a', 'acceptance': [{'run': ' '}]}]}", "run: is empty"},
        {"{'project': 'P'}", "steps: there must be one"},
        {"{'project': 'P', 'steps': []}", "steps: there must be one"},
        {"{'project': 'P', 'features': [{'name': 'a'}], 'steps': []}", "steps: there must be one"},
        {"{'project': 'P', 'steps': {}}", "steps"},
        {"{'project': 'P', 'steps': ['a']}", "steps[0]: must be an object"},
        {"{'project': 'P', 'steps': [null]}", "steps[0]: must be an object"},
        {"{'project': 'P', 'steps': [{'name': 'a'}], 'secret': 1}", "secret"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'shell': 'x'}]}", "shell"},
        {"{'project': 'P', 'steps': [{'name': 'a'}, {'name': 'A'}]}", "steps[1]: name: 'a' is there twice"},
        {"{'project': 'P', 'steps': [{'name': '-rf'}]}", "steps[0]: name: must begin"},
        {"{'project': 'P', 'steps': [{'name': ' '}]}", "steps[0]: name: must begin"},
        {"{'project': 'P', 'steps': [{'name': 'a/b'}]}", "steps[0]: name: letters"},
        {"{'project': 'P', 'steps': [{'name': 'ä'}]}", "steps[0]: name: letters"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'depends': ['a']}]}", "waits for itself"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'depends': ['b']}, {'name': 'b', 'depends': ['c']}, "
         "{'name': 'c', 'depends': ['a']}]}",
         "'a' waits for itself"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'depends': ['z']}]}", "'a' depends on 'z'"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'depends': [1]}]}", "depends[0]"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'feature': 'z'}]}", "feature: there is no 'z'"},
        {"{'project': 'P', 'features': [{'name': 'a'}, {'name': 'b'}], 'steps': [{'name': 'a'}]}",
         "no step works on 'b'"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'files': ['/etc/passwd']}]}", "files[0]"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'files': ['../x']}]}", "files[0]"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'files': ['.']}]}", "files[0]"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'files': ['']}]}", "files[0]"},
        {"{'project': 'P', 'features': [{'name': 'a', 'acceptance': ['make']}]}",
         "features[0]: acceptance[0]: must be an object"},
        {"{'project': 'P', 'features': [{'name': 'a', 'acceptance': [{'run': 'a\\nb'}]}]}", "run: one line"},
        {"{'project': 'P', 'features': [{'name': 'a', 'acceptance': [{'name': 'x'}]}]}", "run"},
        {"{'project': 'P', 'features': [{'name': 'a', 'acceptance': [{'name': 't', 'run': 'x'}, "
         "{'name': 'T', 'run': 'y'}]}]}",
         "acceptance[1]: name: 't' is there twice"},
        {"{'project': 'P', 'steps': [{'name': 'a'}], 'minutes': 0}", "minutes"},
        {"{'project': 'P', 'steps': [{'name': 'a'}], 'minutes': '5'}", "minutes"},
        {"{'project': 'P', 'steps': [{'name': 'a'}], 'risks': [{}]}", "risks[0]"},
        {"{'project': 'P', 'steps': [{'name': 'a', 'role': 'a;b'}]}", "role"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *given = g_strdelimit(g_strdup(cases[i].given), "'", '"');
        g_autoptr(Json) plan = decode(given);

        g_assert_null(plan_check(plan, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        if (strstr(error->message, cases[i].problem) == NULL)
            g_error("%s: \"%s\", not \"%s\"", given, error->message, cases[i].problem);
    }
}

/* A list of `n` steps, each after the one before. */
static Json *
chain(guint n, const char *details)
{
    Json *steps = json_array();

    for (guint i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("s%u", i), *before = g_strdup_printf("s%u", i - 1);
        Json *step = json_pack("{s:s, s:s}", "name", name, "details", details);

        if (i > 0)
            json_object_set_new(step, "depends", json_pack("[s]", before));
        json_array_insert_new(steps, 0, step);
    }
    return json_pack("{s:s, s:o}", "project", "P", "steps", steps);
}

static void
test_bounds(void)
{
    g_autofree char *details = g_strnfill(PLAN_DETAILS_MAX, 'x'), *more = g_strconcat(details, "x", NULL);
    const struct {
        guint steps;
        const char *details;
        const char *problem; /* NULL: taken */
    } cases[] = {
        {PLAN_STEPS_MAX, "", NULL}, {PLAN_STEPS_MAX + 1, "", "steps"},   {1, details, NULL},
        {1, more, "details"},       {8, details, "at most 65536 bytes"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Json) given = chain(cases[i].steps, cases[i].details);
        g_autoptr(Json) plan = plan_check(given, &error);

        if (cases[i].problem == NULL) {
            g_assert_no_error(error);
            g_assert_cmpint(json_integer_value(json_object_get(plan, "minutes")), ==,
                            cases[i].steps * PLAN_STEP_MINUTES + PLAN_END_MINUTES);
        } else {
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
            g_assert_nonnull(strstr(error->message, cases[i].problem));
        }
    }
}

static void
test_find(void)
{
    static const struct {
        const char *said, *found; /* NULL: nothing */
    } cases[] = {
        {"{\"a\": 1}", "{\"a\":1}"},
        {"  \n{\"a\": 1}\n", "{\"a\":1}"},
        {"Here it is:\n```json\n{\"a\": {\"b\": [1]}}\n```\nGood luck!", "{\"a\":{\"b\":[1]}}"},
        {"```\n{\"a\": \"} ``` {\"}\n```", "{\"a\":\"} ``` {\"}"},
        {"Not {this} but {\"a\": 1}.", "{\"a\":1}"},
        {"A small one {\"x\":1} and then {\"a\": [1, 2, 3]}, {}", "{\"a\":[1,2,3]}"},
        {"an odd \" and {\"a\": 1}", "{\"a\":1}"},
        {"{ {\"a\": 1}", "{\"a\":1}"},
        {"{\"a\": \"\\\"}\"}", "{\"a\":\"\\\"}\"}"},
        {"", NULL},
        {"I would rather not.", NULL},
        {"[1, 2]", NULL},
        {"{\"a\": 1", NULL},
        {"{\"a\": 1,}", NULL},
        {"{\"a\": 1, \"a\": 2}", NULL},
        {"{\"a\": \"\\", NULL},
        {"}}}{{{", NULL},
        {"{\"a\": \"\xff\"}", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Json) found = plan_find(cases[i].said, &error);
        g_autofree char *text = found != NULL ? json_encode(found) : NULL;

        g_assert_cmpstr(text, ==, cases[i].found);
        g_assert_true((error == NULL) == (found != NULL));
        if (error != NULL)
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
}

/* Braces without end cost a bounded number of looks, depth no stack. */
static void
test_find_hostile(void)
{
    static const char *const pieces[] = {"{", "{\"a\":", "}{", "\"{", "{}", "\\", "{[", "```json\n{"};

    for (size_t i = 0; i < G_N_ELEMENTS(pieces); i++) {
        g_autoptr(GString) text = g_string_new(NULL);

        while (text->len + strlen(pieces[i]) <= MIND_ANSWER_MAX)
            g_string_append(text, pieces[i]);
        g_autoptr(Json) found = plan_find(text->str, NULL);

        g_assert_true(found == NULL || json_object_size(found) == 0);
        g_string_append(text, "{\"a\": 1}");
        g_string_append(text, text->str);
        g_assert_null(plan_find(text->str, NULL));
    }
}

static void
test_format(void)
{
    g_autoptr(Json)
        given = decode("{\"project\": \"Sums\", \"summary\": \"Small.\", \"features\": [{\"name\": \"f\", "
                       "\"title\": \"F\", \"acceptance\": [{\"name\": \"t\", \"run\": \"echo `id`\"}]}], "
                       "\"steps\": [{\"name\": \"a\", \"feature\": \"f\", \"title\": \"A\", \"files\": "
                       "[\"x.c\"], \"details\": \"one\\n\\n# two\"}, {\"name\": \"b\", \"feature\": \"f\", "
                       "\"role\": \"coder\", \"specialization\": \"frontend\", \"depends\": [\"a\"]}], "
                       "\"risks\": [\"none\"]}");
    g_autoptr(Json) plan = plan_check(given, NULL);
    g_autofree char *text = plan_format(plan, "add\n# sums");

    g_assert_cmpstr(text, ==,
                    "# Plan: Sums\n\n> add\n> # sums\n\nSmall.\n\nEstimated time: 15 min\n"
                    "\n## Features\n\n- **f**: F\n  - t: `` echo `id` ``\n"
                    "\n## Steps\n\n1. **a** (coder): A\n   - files `x.c`\n\n   > one\n   >\n   > # two\n"
                    "2. **b** (coder, frontend): b\n   - after `a`\n"
                    "\n## Risks\n\n- none\n");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/plan/whole", test_whole);
    g_test_add_func("/team/plan/refused", test_refused);
    g_test_add_func("/team/plan/bounds", test_bounds);
    g_test_add_func("/team/plan/find", test_find);
    g_test_add_func("/team/plan/find-hostile", test_find_hostile);
    g_test_add_func("/team/plan/format", test_format);
    return g_test_run();
}

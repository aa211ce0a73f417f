/* SPDX-License-Identifier: Apache-2.0 */
/* Which commands are a repository's checks: its coop.yaml, or what is recognised. */
#include <string.h>

#include "base/err.h"
#include "forge/check-plan.h"

/* "[template] name=run@workdir*timeout(env) …", with "!" before what is setup. */
static char *
show(const CheckPlan *plan)
{
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "[%s]", plan->template != NULL ? plan->template : "");
    for (guint i = 0; i < plan->commands->len; i++) {
        const PlanCommand *c = plan->commands->pdata[i];
        g_autofree char *env = g_strjoinv(",", c->env);

        g_string_append_printf(text, " %s%s=%s", c->is_setup ? "!" : "", c->name, c->run);
        if (c->workdir[0] != '\0')
            g_string_append_printf(text, "@%s", c->workdir);
        if (c->timeout_s != PLAN_TIMEOUT_S)
            g_string_append_printf(text, "*%u", c->timeout_s);
        if (env[0] != '\0')
            g_string_append_printf(text, "(%s)", env);
    }
    return g_string_free(text, FALSE);
}

static void
test_parse(void)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"checks:\n- make test\n", "[] make test=make test"},
        {"checks: [a, b]\n", "[] a=a b=b"},
        {"checks:\n- {name: t, run: pytest -q, timeout: 30, workdir: web/app, env: {A: 1, B: ''}}\n",
         "[] t=pytest -q@web/app*30(A=1,B=)"},
        {"checks:\n- {name: t, run: x, workdir: .}\n", "[] t=x"},
        {"template: nodejs-18\nsetup: [npm ci]\nchecks: [npm test]\n",
         "[nodejs-18] !npm ci=npm ci npm test=npm test"},
        /* where setup stands in the file does not matter */
        {"checks: [npm test]\nsetup: [npm ci]\n", "[] !npm ci=npm ci npm test=npm test"},
        {"checks:\n- run: |\n    one\n    two\n", "[] one=one\ntwo\n"},
        /* about the team alone: commands are those that are recognised */
        {"team: {until: tested}\n", "[]"},
        {"template: base\nteam: {until: tested}\n", "[base]"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(CheckPlan) plan = check_plan_parse(cases[i].text, strlen(cases[i].text), &error);

        g_assert_no_error(error);
        g_autofree char *shown = show(plan);

        g_assert_cmpstr(shown, ==, cases[i].shown);
        g_assert_cmpstr(plan->source, ==, "coop.yaml");
        g_assert_false(plan->template_is_guess);
    }
}

static void
test_parse_refuses(void)
{
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"", "has no checks"},
        {"# only words\n", "has no checks"},
        {"checks: []\n", "has no checks"},
        {"setup: [a]\n", "has no checks"},
        {"setup: [a]\nteam: {until: tested}\n", "has no checks"},
        {"checks: []\nteam: {until: tested}\n", "has no checks"},
        {"template: base\n", "has no checks"},
        {"check: [a]\n", "line 1: there is no 'check' here"},
        {"checks: [a]\nmatrix: {}\n", "line 2: there is no 'matrix' here"},
        {"checks: make\n", "checks must be a list"},
        {"- make\n", ""},
        {"checks:\n- {run: a, if: never}\n", "line 2: a command has no 'if'"},
        {"checks:\n- {name: a}\n", "no 'run'"},
        {"checks:\n- {run: ''}\n", "run must be a text"},
        {"checks:\n- [a]\n", "a command is a text, or a map"},
        {"checks:\n- {run: a, timeout: 0}\n", "timeout"},
        {"checks:\n- {run: a, timeout: 3601}\n", "from 1 to 3600"},
        {"checks:\n- {run: a, timeout: 5m}\n", "timeout"},
        {"timeout: 14401\nchecks: [a]\n", "from 1 to 14400"},
        {"checks:\n- {run: a, workdir: ../x}\n", "workdir"},
        {"checks:\n- {run: a, workdir: /etc}\n", "workdir"},
        {"checks:\n- {run: a, env: [A]}\n", "env must be"},
        {"checks:\n- {run: a, env: {'A B': 1}}\n", "'A B' cannot be a name"},
        {"checks:\n- {run: a, env: {A: [1]}}\n", "A in env must have a plain value"},
        {"checks:\n- {run: a, name: \"x\\ny\"}\n", "one line"},
        {"checks: [a, a]\n", "two commands have the name 'a'"},
        {"checks: [a]\nchecks: [b]\n", ""},
        {"checks: &x [a]\nsetup: *x\n", ""},
        {"checks: [a\n", ""},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(CheckPlan) plan = check_plan_parse(cases[i].text, strlen(cases[i].text), &error);

        g_assert_null(plan);
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, "coop.yaml"));
        g_assert_nonnull(strstr(error->message, cases[i].problem));
    }
}

static void
test_parse_bounds(void)
{
    g_autoptr(GString) text = g_string_new("checks:\n");
    g_autoptr(GError) error = NULL;

    for (int i = 0; i < PLAN_COMMANDS_MAX; i++)
        g_string_append_printf(text, "- run-%d\n", i);
    g_autoptr(CheckPlan) plan = check_plan_parse(text->str, text->len, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(plan->commands->len, ==, PLAN_COMMANDS_MAX);
    g_string_append(text, "- more\n");
    g_assert_null(check_plan_parse(text->str, text->len, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_clear_error(&error);

    /* A long command has a name that is cut, at a whole character. */
    g_autofree char *long_run = g_strnfill(PLAN_NAME_MAX - 1, 'x');
    g_autofree char *yaml = g_strdup_printf("checks:\n- \"%sä and more\"\n", long_run);
    g_autoptr(CheckPlan) cut = check_plan_parse(yaml, strlen(yaml), &error);

    g_assert_no_error(error);
    g_assert_cmpstr(((PlanCommand *)cut->commands->pdata[0])->name, ==, long_run);
}

/* ---- where there is none ---- */

typedef struct DetectCase {
    const char *files; /* "path" or "path=content", with "|" between */
    const char *shown; /* NULL: nothing */
    const char *source;
} DetectCase;

static void
unref_bytes(void *bytes)
{
    if (bytes != NULL)
        g_bytes_unref(bytes);
}

static CheckPlan *
detect(const char *files)
{
    g_autoptr(GHashTable) table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, unref_bytes);
    g_auto(GStrv) parts = g_strsplit(files, "|", -1);

    for (char **part = parts; *part != NULL; part++) {
        g_auto(GStrv) pair = g_strsplit(*part, "=", 2);
        bool looked = pair[0] != NULL && check_plan_looks_into(pair[0]);

        if (pair[0] != NULL)
            g_hash_table_insert(table, g_strdup(pair[0]),
                                looked && pair[1] != NULL ? g_bytes_new(pair[1], strlen(pair[1])) : NULL);
    }
    return check_plan_detect(table);
}

#define NPM(scripts) "package.json={\"scripts\": {" scripts "}}"
#define PIP "python3 -m pip install --break-system-packages "
#define BOTH(run) run "=" run

static void
test_detect(void)
{
    static const DetectCase cases[] = {
        {"", NULL, NULL},
        {"README.md|src/main.c", NULL, NULL},
        {NPM("\"test\": \"jest\""), "[nodejs-18] " BOTH("npm run test"), "detected: package.json"},
        {NPM("\"test\": \"jest\", \"lint\": \"eslint\", \"build\": \"tsc\", \"start\": \"x\"") "|package-"
                                                                                               "lock.json",
         "[nodejs-18] !" BOTH("npm ci --no-audit --no-fund") " " BOTH("npm run lint") " " BOTH(
             "npm run build") " " BOTH("npm run test"),
         "detected: package.json"},
        {"package.json={\"scripts\": {\"test\": \"jest\"}, \"devDependencies\": {\"jest\": \"1\"}}",
         "[nodejs-18] !" BOTH("npm install --no-audit --no-fund") " " BOTH("npm run test"),
         "detected: package.json"},
        {NPM("\"test\": \"x\"") "|yarn.lock",
         "[nodejs-18] !" BOTH("yarn install --frozen-lockfile") " " BOTH("npm run test"),
         "detected: package.json"},
        {NPM("\"test\": \"echo \\\"Error: no test specified\\\" && exit 1\""), NULL, NULL},
        {NPM("\"start\": \"node .\""), NULL, NULL},
        {NPM("\"test\": 1"), NULL, NULL},
        {"package.json={broken", NULL, NULL},
        {"package.json", NULL, NULL},
        {"pytest.ini", "[python-3.11] pytest=python3 -m pytest", "detected: pytest"},
        {"pyproject.toml=[tool.pytest.ini_options]\n", "[python-3.11] pytest=python3 -m pytest",
         "detected: pytest"},
        {"pyproject.toml=[project]\nname = 'x'\n", NULL, NULL},
        {"setup.cfg=[metadata]\n[tool:pytest]\n", "[python-3.11] pytest=python3 -m pytest",
         "detected: pytest"},
        {"setup.cfg=#[tool:pytest]\n", NULL, NULL},
        {"tests/test_one.py", "[python-3.11] pytest=python3 -m pytest", "detected: pytest"},
        {"test_one.py", "[python-3.11] pytest=python3 -m pytest", "detected: pytest"},
        {"one_test.py", "[python-3.11] pytest=python3 -m pytest", "detected: pytest"},
        {"tests/helper.py", NULL, NULL},
        {"src/test_one.py", NULL, NULL},
        {"test_one.py|requirements.txt|pyproject.toml=[build-system]\n",
         "[python-3.11] !" BOTH(PIP "-r requirements.txt") " !" BOTH(PIP "-e .") " pytest=python3 -m pytest",
         "detected: pytest"},
        {"go.mod", "[go-1.21] go vet=go vet ./... go test=go test ./...", "detected: go.mod"},
        {"Cargo.toml", "[rust] cargo test=cargo test", "detected: Cargo.toml"},
        {"Cargo.toml|Cargo.lock", "[rust] cargo test=cargo test --locked", "detected: Cargo.toml"},
        {"meson.build=project('x', 'c')\n",
         "[c] !meson setup=meson setup ../coop-build meson test=meson test -C ../coop-build "
         "--print-errorlogs",
         "detected: meson.build"},
        {"meson.build=executable('x')\n", NULL, NULL},
        {"Makefile=all:\n\tcc x.c\ntest: all\n\t./x\n", "[] " BOTH("make test"), "detected: Makefile"},
        {"Makefile=check:\nlint :\n", "[] " BOTH("make lint") " " BOTH("make check"), "detected: Makefile"},
        {"Makefile=test := 1\nlint = 2\ncheck ?= 3\n", NULL, NULL},
        {"Makefile=tests:\n\tx\n testy: y\n", NULL, NULL},
        {"Makefile=test::\n", "[] " BOTH("make test"), "detected: Makefile"},
        /* A Makefile calls what was found already. */
        {"Makefile=test:\n|go.mod", "[go-1.21] go vet=go vet ./... go test=go test ./...",
         "detected: go.mod"},
        /* No template has both; setup of all comes first. */
        {"go.mod|test_one.py|requirements.txt",
         "[] !" BOTH(
             PIP "-r requirements.txt") " pytest=python3 -m pytest go vet=go vet ./... go test=go test ./...",
         "detected: pytest, go.mod"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CheckPlan) plan = detect(cases[i].files);

        g_test_message("%s", cases[i].files);
        if (cases[i].shown == NULL) {
            g_assert_null(plan);
            continue;
        }
        g_assert_nonnull(plan);
        g_autofree char *shown = show(plan);

        g_assert_cmpstr(shown, ==, cases[i].shown);
        g_assert_cmpstr(plan->source, ==, cases[i].source);
        g_assert_true(plan->template_is_guess);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/check-plan/parse", test_parse);
    g_test_add_func("/forge/check-plan/parse-refuses", test_parse_refuses);
    g_test_add_func("/forge/check-plan/parse-bounds", test_parse_bounds);
    g_test_add_func("/forge/check-plan/detect", test_detect);
    return g_test_run();
}

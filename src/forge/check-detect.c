/* SPDX-License-Identifier: Apache-2.0 */
/* What a repository without a coop.yaml has that is known to be tests.  Rather too little than a guess:
 * a command that is not the repository's own would fail for reasons that are not its. */
#include <string.h>

#include "forge/check-plan.h"
#include "json/json.h"

typedef struct Detect {
    PlanFiles *files;
    CheckPlan *plan;
    GString *found;
    const char *template; /* of the first kind */
    guint kinds;
} Detect;

static bool
has(const Detect *d, const char *path)
{
    return g_hash_table_contains(d->files, path);
}

/* "": not there, or not looked into. */
static const char *
content(const Detect *d, const char *path, gsize *ret_len)
{
    GBytes *bytes = g_hash_table_lookup(d->files, path);
    const char *text = bytes != NULL ? g_bytes_get_data(bytes, ret_len) : NULL;

    if (text == NULL)
        *ret_len = 0;
    return text != NULL ? text : "";
}

/* A line that begins with `start`. */
static bool
has_line(const Detect *d, const char *path, const char *start)
{
    gsize len;
    const char *text = content(d, path, &len);
    size_t n = strlen(start);

    for (const char *line = text, *end = text + len; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));

        if ((size_t)(end - line) >= n && memcmp(line, start, n) == 0)
            return true;
        line = next != NULL ? next + 1 : end;
    }
    return false;
}

static void
note(Detect *d, const char *what, const char *template)
{
    g_string_append_printf(d->found, "%s%s", d->kinds > 0 ? ", " : "detected: ", what);
    if (d->kinds == 0)
        d->template = template;
    else
        d->template = NULL; /* no template is made for both */
    d->kinds++;
}

/* ---- Node ---- */

static bool
is_script(const Json *scripts, const char *name)
{
    /* What `npm init` writes: it says that there are none. */
    static const char *const nothing = "no test specified";
    const char *text = json_string_value(json_object_get(scripts, name));

    return text != NULL && text[0] != '\0' && strstr(text, nothing) == NULL;
}

static const char *
node_install(const Detect *d, const Json *package)
{
    if (has(d, "package-lock.json") || has(d, "npm-shrinkwrap.json"))
        return "npm ci --no-audit --no-fund";
    if (has(d, "pnpm-lock.yaml"))
        return "pnpm install --frozen-lockfile";
    if (has(d, "yarn.lock"))
        return "yarn install --frozen-lockfile";
    if (json_object_size(json_object_get(package, "dependencies")) +
            json_object_size(json_object_get(package, "devDependencies")) >
        0)
        return "npm install --no-audit --no-fund";
    return NULL;
}

static void
detect_node(Detect *d)
{
    static const char *const names[] = {"lint", "build", "test"};
    gsize len;
    const char *text = content(d, "package.json", &len);
    g_autoptr(Json) package = json_decode(text, len, NULL);
    const Json *scripts = json_object_get(package, "scripts");
    const char *install = node_install(d, package);
    bool any = false;

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *run = g_strconcat("npm run ", names[i], NULL);

        if (!is_script(scripts, names[i]))
            continue;
        if (!any && install != NULL)
            check_plan_add(d->plan, true, NULL, install);
        any = true;
        check_plan_add(d->plan, false, NULL, run);
    }
    if (any)
        note(d, "package.json", "nodejs-18");
}

/* ---- Python ---- */

static bool
is_test_file(const char *path)
{
    const char *name = g_str_has_prefix(path, "tests/") ? path + strlen("tests/") : path;

    return g_str_has_suffix(name, ".py") && strchr(name, '/') == NULL &&
           (g_str_has_prefix(name, "test_") || g_str_has_suffix(name, "_test.py"));
}

static bool
has_test_file(const Detect *d)
{
    GHashTableIter iter;
    gpointer path;

    g_hash_table_iter_init(&iter, d->files);
    while (g_hash_table_iter_next(&iter, &path, NULL)) {
        if (is_test_file(path))
            return true;
    }
    return false;
}

static void
detect_python(Detect *d)
{
    static const char install[] = "python3 -m pip install --break-system-packages ";
    static const char *const lists[] = {"requirements.txt", "requirements-dev.txt", "requirements-test.txt"};
    bool set_up = has(d, "pytest.ini") || has_line(d, "pyproject.toml", "[tool.pytest") ||
                  has_line(d, "setup.cfg", "[tool:pytest]") || has_line(d, "tox.ini", "[pytest]");

    if (!set_up && !has_test_file(d))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_autofree char *run = g_strconcat(install, "-r ", lists[i], NULL);

        if (has(d, lists[i]))
            check_plan_add(d->plan, true, NULL, run);
    }
    if (has_line(d, "pyproject.toml", "[build-system]") || has(d, "setup.py")) {
        g_autofree char *run = g_strconcat(install, "-e .", NULL);

        check_plan_add(d->plan, true, NULL, run);
    }
    check_plan_add(d->plan, false, "pytest", "python3 -m pytest");
    note(d, "pytest", "python-3.11");
}

/* ---- the others ---- */

static void
detect_go(Detect *d)
{
    if (!has(d, "go.mod"))
        return;
    check_plan_add(d->plan, false, "go vet", "go vet ./...");
    check_plan_add(d->plan, false, "go test", "go test ./...");
    note(d, "go.mod", "go-1.21");
}

static void
detect_cargo(Detect *d)
{
    if (!has(d, "Cargo.toml"))
        return;
    check_plan_add(d->plan, false, "cargo test", has(d, "Cargo.lock") ? "cargo test --locked" : "cargo test");
    note(d, "Cargo.toml", "rust");
}

static void
detect_meson(Detect *d)
{
    if (!has_line(d, "meson.build", "project"))
        return;
    check_plan_add(d->plan, true, "meson setup", "meson setup ../coop-build");
    check_plan_add(d->plan, false, "meson test", "meson test -C ../coop-build --print-errorlogs");
    note(d, "meson.build", "c");
}

/* A rule for it: "test:" or "test: all", no variable "test := x". */
static bool
has_target(const Detect *d, const char *file, const char *target)
{
    gsize len;
    const char *text = content(d, file, &len);
    g_autofree char *copy = g_strndup(text, len);
    g_autofree char *pattern = g_strdup_printf("^%s[ \\t]*::?(?!=)", target);

    return g_regex_match_simple(pattern, copy, G_REGEX_MULTILINE | G_REGEX_RAW, 0);
}

/* Only alone: else it calls what was found already. */
static void
detect_make(Detect *d)
{
    static const char *const files[] = {"GNUmakefile", "makefile", "Makefile"};
    static const char *const targets[] = {"lint", "check", "test"};
    size_t at = 0;

    while (at < G_N_ELEMENTS(files) && !has(d, files[at]))
        at++;
    if (d->kinds > 0 || at == G_N_ELEMENTS(files))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(targets); i++) {
        g_autofree char *run = g_strconcat("make ", targets[i], NULL);

        if (has_target(d, files[at], targets[i]))
            check_plan_add(d->plan, false, NULL, run);
    }
    if (d->plan->commands->len > 0)
        note(d, files[at], NULL);
}

bool
check_plan_looks_into(const char *path)
{
    static const char *const paths[] = {"package.json", "pyproject.toml", "setup.cfg",
                                        "tox.ini",      "meson.build",    "GNUmakefile",
                                        "makefile",     "Makefile",       NULL};

    return g_strv_contains(paths, path);
}

static gint
setup_first(gconstpointer a, gconstpointer b)
{
    const PlanCommand *const *x = a, *const *y = b;

    return (*y)->is_setup - (*x)->is_setup;
}

CheckPlan *
check_plan_detect(PlanFiles *files)
{
    g_autoptr(CheckPlan) plan = check_plan_new("");
    g_autoptr(GString) found = g_string_new(NULL);
    Detect d = {.files = files, .plan = plan, .found = found};

    detect_node(&d);
    detect_python(&d);
    detect_go(&d);
    detect_cargo(&d);
    detect_meson(&d);
    detect_make(&d);
    if (d.kinds == 0)
        return NULL;
    g_ptr_array_sort(plan->commands, setup_first); /* keeps the order of equals */
    g_free(plan->source);
    plan->source = g_strdup(found->str);
    plan->template = g_strdup(d.template);
    plan->template_is_guess = true;
    return g_steal_pointer(&plan);
}

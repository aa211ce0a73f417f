/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/scan.h"

/* `go test -json`: one event a line.  Packages run side by side; a run is told when none of
 * them is left open. */

enum { PACKAGES_MAX = 1024 };

typedef struct Package {
    gint64 running, failed;
    bool crashed;
} Package;

typedef struct GoJson {
    GHashTable *packages; /* open ones: name -> Package */
    guint64 first, last;
    TestReport *run;
} GoJson;

static void
clear(void *state)
{
    GoJson *go = state;

    g_clear_pointer(&go->packages, g_hash_table_unref);
    g_clear_pointer(&go->run, report_free);
}

static Package *
open_package(GoJson *go, Scan *scan, const char *name)
{
    if (go->run == NULL) {
        go->run = report_new("go test");
        go->packages = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        go->first = scan_number(scan);
    }
    go->last = scan_number(scan);
    Package *package = g_hash_table_lookup(go->packages, name);

    if (package == NULL && g_hash_table_size(go->packages) < PACKAGES_MAX) {
        package = g_new0(Package, 1);
        g_hash_table_insert(go->packages, g_strdup(name), package);
    } else if (package == NULL) {
        go->run->partial = true;
    }
    return package;
}

static void
take_test(GoJson *go, Package *package, const char *action, const char *name, const char *test)
{
    TestReport *run = go->run;

    if (strcmp(action, "run") == 0) {
        package->running++;
        return;
    }
    gint64 *to = strcmp(action, "pass") == 0   ? &run->passed
                 : strcmp(action, "fail") == 0 ? &run->failed
                 : strcmp(action, "skip") == 0 ? &run->skipped
                                               : NULL;

    if (to == NULL || package->running == 0)
        return;
    package->running--;
    run->total++;
    (*to)++;
    if (to == &run->failed) {
        g_autofree char *full = g_strconcat(name, ".", test, NULL);

        package->failed++;
        report_add_failing(run, full);
    }
}

static void
end_package(GoJson *go, Scan *scan, const char *action, const char *name)
{
    const Package *package = g_hash_table_lookup(go->packages, name);
    bool failed = strcmp(action, "fail") == 0;

    go->run->total += package->running;
    go->run->partial |= package->running > 0 || (failed && package->crashed);
    if (failed && package->failed == 0) {
        go->run->errors++;
        report_add_failing(go->run, name);
    }
    g_hash_table_remove(go->packages, name);
    if (g_hash_table_size(go->packages) > 0)
        return;
    scan_add(scan, SCAN_STRONG, go->first, go->last, g_steal_pointer(&go->run));
    clear(go);
}

static void
take_event(GoJson *go, Scan *scan, const json_t *event)
{
    const char *action = json_string_value(json_object_get(event, "Action"));
    const char *name = json_string_value(json_object_get(event, "Package"));
    const char *test = json_string_value(json_object_get(event, "Test"));
    const char *output = json_string_value(json_object_get(event, "Output"));

    if (action == NULL || name == NULL)
        return;
    Package *package = open_package(go, scan, name);

    if (package == NULL)
        return;
    if (strcmp(action, "output") == 0)
        package->crashed |= output != NULL && (g_str_has_prefix(output, "panic: ") ||
                                               g_str_has_prefix(output, "fatal error: "));
    else if (test != NULL)
        take_test(go, package, action, name, test);
    else if (strcmp(action, "pass") == 0 || strcmp(action, "fail") == 0 || strcmp(action, "skip") == 0)
        end_package(go, scan, action, name);
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    if (line[0] != '{' || strstr(line, "\"Action\":\"") == NULL)
        return;
    g_autoptr(Json) event = json_decode(line, strlen(line), NULL);

    if (event != NULL)
        take_event(state, scan, event);
}

static void
end(void *state, Scan *scan)
{
    GoJson *go = state;
    GHashTableIter iter;
    gpointer package;

    if (go->run == NULL)
        return;
    g_hash_table_iter_init(&iter, go->packages);
    while (g_hash_table_iter_next(&iter, NULL, &package))
        go->run->total += ((Package *)package)->running;
    go->run->partial = true;
    scan_add(scan, SCAN_STRONG, go->first, go->last, g_steal_pointer(&go->run));
}

const Runner runner_go_json = {.size = sizeof(GoJson), .line = read_line, .end = end, .clear = clear};

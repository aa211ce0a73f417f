/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/demo.h"

#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"

enum {
    NAMES_MAX = 100,          /* repositories of earlier demonstrations */
    LOOK_MS = 200,            /* between looks at a task */
    TASK_MS = 15 * 60 * 1000, /* that one may take */
    US_PER_MS = 1000,
};

#define PROVIDER "demo"
#define MODEL "demo-1"

static const struct {
    const char *name, *request;
} tasks[] = {
    {"multiply", "Add a function multiply(a, b) in a module of its own, with two tests."},
    {"factorial", "Add a function factorial(n) that refuses negative numbers, with tests of its edge cases."},
    {"conversion", "Add converters between celsius and fahrenheit, exported by index.js, with tests."},
};

static const struct {
    const char *path, *text;
} files[] = {
    {"README.md", "# Calculator\n\nWhat the demonstration works on.\n"},
    {"index.js", "module.exports = {\n};\n"},
    {"coop.yaml", "checks:\n  - name: tests\n    run: node --test\n"},
};

typedef struct Demo {
    Cli *cli;
    Out *out;
    Remote *remote;
    bool scripted;
    char *repository; /* without its owner */
    Json *results;
} Demo;

/* ---- what it needs ---- */

/* A first start builds one for a minute or two, and nobody's box is there before. */
static ExitCode
tell_of_builds(Demo *d)
{
    g_autoptr(Json) found = NULL;
    ExitCode code = remote_call(d->remote, "GET", "/api/v1/templates", NULL, &found);
    size_t i;
    const Json *template;

    json_array_foreach(json_object_get(found, "templates"), i, template)
    {
        const Json *progress = json_object_get(template, "progress");

        if (json_is_object(progress))
            out_text(d->out, OUT_PLAIN,
                     "The template '%s' is being built, this once (%d %%): the first boxes wait for it.\n",
                     json_string_value(json_object_get(template, "name")),
                     (int)json_integer_value(json_object_get(progress, "percent")));
    }
    return code;
}

static bool
is_real(const Json *provider)
{
    const char *kind = json_string_value(json_object_get(provider, "kind"));

    return kind != NULL && strcmp(kind, "script") != 0;
}

static ExitCode
find_brain(Demo *d)
{
    g_autoptr(Json) found = NULL;
    g_autoptr(Json)
        body = json_pack("{s:s, s:s, s:[s]}", "kind", "script", "script", demo_brain, "models", "demo-*");
    ExitCode code = remote_call(d->remote, "GET", "/api/v1/providers", NULL, &found);
    size_t i;
    const Json *provider;

    if (code != EXIT_CODE_OK)
        return code;
    d->scripted = true;
    json_array_foreach(json_object_get(found, "providers"), i, provider)
    {
        if (is_real(provider))
            d->scripted = false;
    }
    if (cli_option(d->cli, "scripted") != NULL)
        d->scripted = true;
    if (!d->scripted) {
        out_text(d->out, OUT_PLAIN, "The brain is the model that this server has a key for.\n");
        return EXIT_CODE_OK;
    }
    out_text(d->out, OUT_PLAIN,
             "The brain is a script: it says what it was written to say. Boxes, tests, commits, reviews,\n"
             "re-runs and merges are real.\n");
    return remote_call(d->remote, "PUT", "/api/v1/providers/" PROVIDER, body, NULL);
}

static ExitCode
put_file(Demo *d, size_t i)
{
    g_autofree char *path = g_strdup_printf("/api/v3/repos/coop/%s/contents/%s", d->repository,
                                            files[i].path);
    g_autofree char *content = g_base64_encode((const guchar *)files[i].text, strlen(files[i].text));
    g_autofree char *message = g_strdup_printf("chore: add %s", files[i].path);
    g_autoptr(Json) body = json_pack("{s:s, s:s}", "message", message, "content", content);

    return remote_call(d->remote, "PUT", path, body, NULL);
}

/* The first name that is free. */
static ExitCode
make_repository(Demo *d)
{
    ExitCode code = EXIT_CODE_CONFLICT;

    for (guint n = 1; n <= NAMES_MAX && code == EXIT_CODE_CONFLICT; n++) {
        g_auto(RemoteReply) reply = {0};
        g_autoptr(Json) body = NULL;
        RemoteCall call = REMOTE_CALL_INIT;

        g_free(d->repository);
        d->repository = n == 1 ? g_strdup("demo") : g_strdup_printf("demo-%u", n);
        body = json_pack("{s:s}", "name", d->repository);
        call.method = "POST";
        call.path = "/api/v1/repos";
        call.body = body;
        remote_try(d->remote, &call, &reply);
        code = reply.code;
        if (code != EXIT_CODE_OK && code != EXIT_CODE_CONFLICT)
            return cli_fail(d->cli, code, "%s", reply.message);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(files) && code == EXIT_CODE_OK; i++)
        code = put_file(d, i);
    if (code == EXIT_CODE_OK)
        out_text(d->out, OUT_PLAIN, "Repository: coop/%s\n", d->repository);
    return code;
}

/* One that an earlier demonstration made will do. */
static ExitCode
make_squad(Demo *d)
{
    static const char *const roles[][3] = {{"planner", "planner", NULL},
                                           {"coder-1", "coder", "frontend"},
                                           {"coder-2", "coder", "backend"},
                                           {"reviewer", "reviewer", NULL},
                                           {"tester", "tester", NULL}};
    g_autoptr(Json) members = json_array();
    g_auto(RemoteReply) reply = {0};
    RemoteCall call = REMOTE_CALL_INIT;

    if (!d->scripted)
        return EXIT_CODE_OK;
    for (size_t i = 0; i < G_N_ELEMENTS(roles); i++)
        json_array_append_new(members, json_pack("{s:s, s:s, s:s*, s:s, s:s}", "name", roles[i][0], "role",
                                                 roles[i][1], "specialization", roles[i][2], "llm_provider",
                                                 PROVIDER, "llm_model", MODEL));
    g_autoptr(Json) body = json_pack("{s:s, s:s, s:{s:s}, s:O}", "name", "demo", "description",
                                     "of coop demo, with a scripted brain", "config", "planner", "council",
                                     "members", members);
    call.method = "POST";
    call.path = "/api/v1/squads";
    call.body = body;
    remote_try(d->remote, &call, &reply);
    if (reply.code == EXIT_CODE_OK || reply.code == EXIT_CODE_CONFLICT)
        return EXIT_CODE_OK;
    return cli_fail(d->cli, reply.code, "%s", reply.message);
}

/* ---- one task ---- */

static ExitCode
show_news(Demo *d, const char *id, gint64 *after)
{
    g_autofree char *path = g_strdup_printf("/api/v1/events?task=%s&after=%" G_GINT64_FORMAT "&limit=500", id,
                                            *after);
    g_autoptr(Json) page = NULL;
    ExitCode code = remote_call(d->remote, "GET", path, NULL, &page);
    size_t i;
    const Json *event;

    json_array_foreach(json_object_get(page, "events"), i, event)
    {
        g_autofree char *line = demo_tell(event);

        *after = json_integer_value(json_object_get(event, "seq"));
        if (line != NULL)
            out_text(d->out, OUT_PLAIN, "    %s\n", line);
    }
    return code;
}

static bool
has_ended(const Json *task)
{
    static const char *const ends[] = {"done", "failed", "cancelled", "blocked", NULL};
    const char *state = json_string_value(json_object_get(task, "state"));

    return state == NULL || g_strv_contains(ends, state);
}

static ExitCode
follow(Demo *d, const char *id, Json **ret_task)
{
    g_autofree char *path = g_strdup_printf("/api/v1/tasks/%s", id);
    gint64 until_us = clock_mono_us() + (gint64)TASK_MS * US_PER_MS, after = 0;

    for (;;) {
        g_autoptr(Json) task = NULL;
        ExitCode code = remote_call(d->remote, "GET", path, NULL, &task);
        bool over = code != EXIT_CODE_OK || has_ended(task);

        if (code == EXIT_CODE_OK)
            code = show_news(d, id, &after);
        if (code != EXIT_CODE_OK)
            return code;
        if (over) {
            *ret_task = g_steal_pointer(&task);
            return EXIT_CODE_OK;
        }
        if (clock_mono_us() > until_us)
            return cli_fail(d->cli, EXIT_CODE_FAILED,
                            "it takes too long; 'coop task show' tells where it is");
        if (!remote_wait(d->remote, LOOK_MS))
            return EXIT_CODE_FAILED;
    }
}

static void
show_end(Demo *d, size_t i, const Json *task, gint64 took_us)
{
    const char *state = json_string_value(json_object_get(task, "state"));
    const char *problem = json_string_value(json_object_get(task, "problem"));
    bool good = g_strcmp0(state, "done") == 0;

    out_text(d->out, good ? OUT_GOOD : OUT_BAD, "  %s after %.1f s%s%s\n", good ? "merged" : state,
             (double)took_us / G_USEC_PER_SEC, problem != NULL && !good ? ": " : "",
             problem != NULL && !good ? problem : "");
    json_array_append_new(d->results,
                          json_pack("{s:s, s:O, s:O, s:O?, s:f}", "name", tasks[i].name, "task",
                                    json_object_get(task, "number"), "state", json_object_get(task, "state"),
                                    "pull_request", json_object_get(task, "pull_number"), "seconds",
                                    (double)took_us / G_USEC_PER_SEC));
}

static ExitCode
run_task(Demo *d, size_t i)
{
    g_autofree char *repository = g_strconcat("coop/", d->repository, NULL);
    g_autoptr(Json) body = json_pack("{s:s, s:s, s:s}", "request", tasks[i].request, "repository", repository,
                                     "source", "demo");
    g_autoptr(Json) made = NULL, ended = NULL;
    gint64 began_us = clock_mono_us();

    if (d->scripted)
        json_object_set_new(body, "squad", json_string("demo"));
    out_text(d->out, OUT_BOLD, "\n%s: %s\n", tasks[i].name, tasks[i].request);
    ExitCode code = remote_call(d->remote, "POST", "/api/v1/tasks", body, &made);
    const char *id = json_string_value(json_object_get(made, "id"));

    if (code == EXIT_CODE_OK && id == NULL)
        return cli_fail(d->cli, EXIT_CODE_FAILED, "the server gave no task");
    if (code == EXIT_CODE_OK)
        code = follow(d, id, &ended);
    if (code == EXIT_CODE_OK)
        show_end(d, i, ended, clock_mono_us() - began_us);
    return code;
}

/* ---- the command ---- */

static bool
all_merged(const Demo *d)
{
    size_t i;
    const Json *result;

    json_array_foreach(d->results, i, result)
    {
        if (g_strcmp0(json_string_value(json_object_get(result, "state")), "done") != 0)
            return false;
    }
    return json_array_size(d->results) == G_N_ELEMENTS(tasks);
}

static ExitCode
run_demo(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) results = json_array();
    Demo d = {.cli = cli, .out = cli_out(cli), .results = results};
    ExitCode code = remote_open(cli, &remote);

    d.remote = remote;
    if (code == EXIT_CODE_OK)
        code = find_brain(&d);
    if (code == EXIT_CODE_OK)
        code = tell_of_builds(&d);
    if (code == EXIT_CODE_OK)
        code = make_repository(&d);
    if (code == EXIT_CODE_OK)
        code = make_squad(&d);
    for (size_t i = 0; i < G_N_ELEMENTS(tasks) && code == EXIT_CODE_OK; i++)
        code = run_task(&d, i);
    if (code == EXIT_CODE_OK)
        out_json(d.out, results);
    if (code == EXIT_CODE_OK && all_merged(&d))
        out_text(d.out, OUT_PLAIN, "\nLook at it: coop pr ls -R %s --state all, coop pr diff -R %s 1\n",
                 d.repository, d.repository);
    else if (code == EXIT_CODE_OK)
        code = EXIT_CODE_FAILED;
    g_free(d.repository);
    return code;
}

const Command command_demo = {
    .name = "demo",
    .summary = "Watch a team work: three small tasks, from one sentence to a merge",
    .details =
        "Makes a repository and gives a squad three tasks: a function with tests; one whose first try fails\n"
        "and is fixed; and one that two coders do at once, with a conflict. Without a key for a model the\n"
        "brain is a script, and said to be one; everything else is real.",
    .options = (const CliOption[]){{.name = "scripted", .help = "the script, though there is a model"}, {0}},
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_demo,
};

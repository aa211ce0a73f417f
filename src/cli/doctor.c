/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/remote.h"
#include "cli/settings.h"
#include "daemon/probe.h"

enum { DOOR_ANSWER_MS = 5000 };

typedef struct Doctor {
    GMainLoop *loop;
    Out *out;
    ProbeResult *door; /* of the running server; NULL: there is none */
    bool all_needed;
} Doctor;

static const OutStyle styles[PROBE_STATE_MAX] = {
    [PROBE_OK] = OUT_GOOD, [PROBE_DEGRADED] = OUT_WARN, [PROBE_MISSING] = OUT_BAD};

static void
show_text(Out *out, const GPtrArray *results)
{
    guint counts[PROBE_STATE_MAX] = {0};
    size_t width = 0;

    for (guint i = 0; i < results->len; i++)
        width = MAX(width, strlen(((const ProbeResult *)results->pdata[i])->name));
    for (guint i = 0; i < results->len; i++) {
        const ProbeResult *r = results->pdata[i];
        bool advice = r->need == PROBE_ADVICE && r->state != PROBE_OK;

        counts[r->state] += !advice;
        out_text(out, styles[r->state], "%-8s", advice ? "advice" : probe_state_name(r->state));
        out_text(out, OUT_PLAIN, "  %-*s  %s\n", (int)width, r->name, r->detail);
        if (r->fix != NULL)
            out_text(out, OUT_PLAIN, "%*sFIX: %s\n", 10, "", r->fix);
    }
    out_text(out, OUT_BOLD, "\n%u ok, %u degraded, %u missing\n", counts[PROBE_OK], counts[PROBE_DEGRADED],
             counts[PROBE_MISSING]);
}

static void
show_json(Out *out, const GPtrArray *results)
{
    g_autoptr(Json) list = json_array();

    for (guint i = 0; i < results->len; i++) {
        const ProbeResult *r = results->pdata[i];

        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s,s:s?}", "name", r->name, "need",
                                              probe_need_name(r->need), "state", probe_state_name(r->state),
                                              "detail", r->detail, "fix", r->fix));
    }
    g_autoptr(Json) value = json_pack("{s:b,s:O}", "ok", (int)probe_all_needed(results), "probes", list);
    out_json(out, value);
}

static void
on_done(const GPtrArray *results, void *data)
{
    Doctor *doctor = data;
    g_autoptr(GPtrArray) all = g_ptr_array_new();

    for (guint i = 0; i < results->len; i++)
        g_ptr_array_add(all, results->pdata[i]);
    if (doctor->door != NULL)
        g_ptr_array_add(all, doctor->door);
    if (out_format(doctor->out) == OUT_JSON)
        show_json(doctor->out, all);
    else
        show_text(doctor->out, all);
    doctor->all_needed = probe_all_needed(results);
    g_main_loop_quit(doctor->loop);
}

/* ---- the running door ---- */

static char *
describe_door(const Json *status)
{
    const Json *stats = json_object_get(status, "stats");

    return g_strdup_printf("the door is there: %lld boxes, %lld connections",
                           (long long)json_integer_value(json_object_get(status, "boxes")),
                           (long long)json_integer_value(json_object_get(stats, "connections")));
}

/* NULL: no server answers, or it gives boxes no way out. */
static ProbeResult *
ask_door(Cli *cli)
{
    RemoteCall call = REMOTE_CALL_INIT;
    g_auto(RemoteReply) reply = {0};
    g_autoptr(Remote) remote = NULL;

    call.path = "/api/v1/door/status";
    call.answer_ms = call.stall_ms = DOOR_ANSWER_MS;
    if (remote_open(cli, &remote) != EXIT_CODE_OK)
        return NULL;
    remote_try(remote, &call, &reply);
    if (reply.code != EXIT_CODE_OK || reply.body == NULL)
        return NULL;
    bool up = json_is_true(json_object_get(reply.body, "up"));
    ProbeResult *r = g_new(ProbeResult, 1);

    *r = (ProbeResult){
        .name = "door",
        .need = PROBE_WANTED,
        .state = up ? PROBE_OK : PROBE_DEGRADED,
        .detail = up ? describe_door(reply.body)
                     : g_strdup("the door of the running server is away: what boxes send out waits"),
        .fix = up ? NULL
                  : g_strdup("look for 'coop-door' in the log of 'coop start', which starts it again")};
    return r;
}

static void
door_clear(Doctor *doctor)
{
    if (doctor->door == NULL)
        return;
    g_free(doctor->door->detail);
    g_free(doctor->door->fix);
    g_free(doctor->door);
}

/* ---- the self-test ---- */

static void
show_attempts(Out *out, const Json *report)
{
    size_t i;
    Json *a;

    json_array_foreach(json_object_get(report, "attempts"), i, a)
    {
        const char *name = "", *what = "", *user = "", *error = "";
        int held = 0;

        (void)json_unpack(a, "{s:s, s:s, s:s, s:b, s:s}", "name", &name, "what", &what, "user", &user, "held",
                          &held, "error", &error);
        out_text(out, held ? OUT_GOOD : OUT_BAD, "%-6s", held ? "held" : "BROKE");
        out_text(out, OUT_PLAIN, "  %-4s  %-16s  %s%s%s%s\n", user, name, what, error[0] != '\0' ? " (" : "",
                 error, error[0] != '\0' ? ")" : "");
    }
}

static ExitCode
run_self_test(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) report = NULL;
    Out *out = cli_out(cli);
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "POST", "/api/v1/self-test", NULL, &report);
    if (code != EXIT_CODE_OK)
        return code;
    json_int_t held = json_integer_value(json_object_get(report, "held"));
    json_int_t broken = json_integer_value(json_object_get(report, "broken"));

    out_json(out, report);
    if (out_format(out) != OUT_JSON) {
        show_attempts(out, report);
        out_text(out, OUT_BOLD, "\n%lld held, %lld broke out\n", (long long)held, (long long)broken);
    }
    return broken == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}

static ExitCode
run(Cli *cli)
{
    if (cli_option(cli, "self-test") != NULL)
        return run_self_test(cli);
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autoptr(Config) config = NULL;
    ExitCode code = cli_config(cli, &config);

    if (code != EXIT_CODE_OK)
        return code;
    if (self == NULL)
        return cli_fail(cli, EXIT_CODE_FAILED, "cannot find this program: /proc is not mounted");
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    Doctor doctor = {.loop = loop, .out = cli_out(cli), .door = ask_door(cli)};
    ProbeRun *probe = probe_run_new(&(ProbeSpec){.program = self, .home = config->home}, on_done, &doctor);
    g_main_loop_run(loop);
    probe_run_free(probe);
    door_clear(&doctor);
    return doctor.all_needed ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}

static const CliOption options[] = {
    {.name = "self-test", .help = "let a program in a box try to get out, and print what came of it"},
    {NULL},
};

const Command command_doctor = {
    .name = "doctor",
    .summary = "Look at what this machine offers, and how to get what is missing",
    .details =
        "Each problem has a line FIX with what to do. The exit code is 0 when nothing is missing that\n"
        "boxes need; what is only degraded works, but less well. The self-test and the\n"
        "line about the door ask the running server.",
    .options = options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* POST /sandbox/{id}/execute: files are written, then commands run one after the other.
 *
 * Everything is read and checked before the box sees any of it.  One time limit covers the
 * call: each command gets what is left of it, and init kills its tree at the end.  A box that
 * was paused meanwhile keeps no time, so a timer of our own stands behind init's.
 *
 * When the caller goes away the command under way runs to its end, and no further one begins. */
#include <signal.h>
#include <string.h>

#include "api/call-box.h"
#include "api/form.h"
#include "api/routes.h"
#include "api/run-collect.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "box/files.h"

enum {
    EXECUTE_S = 300, /* of a call that names no time */
    EXECUTE_S_MAX = 24 * 3600,
    FILES_MAX = 4096,
    COMMANDS_MAX = 256,
    LINE_MAX_BYTES = 64 * 1024, /* of a command */
    TEXT_MAX = 1024 * 1024,     /* of one command's output in the answer */
    TEXT_MIN = 4 * 1024,        /* of a command after the others have used the call's share */
    TEXT_BUDGET = 4 * TEXT_MAX, /* of the call */
    LATE_MS = 5000,             /* what init may take to tell of a kill */
    NAME_SHOWN_MAX = 200,
};

typedef struct Execution {
    ApiCall *call; /* with a reference to its request */
    Box *box;      /* a reference */
    Json *body;    /* a reference; the next three are borrowed from it */
    Json *files, *commands;
    const char *cwd;
    char **env;
    bool stop_on_error;
    void *next_file; /* iterator of jansson */
    size_t next_command;
    size_t text_left;
    gint64 begun_us, deadline_us; /* monotonic */
    guint late_source;
    RunCollect *collect; /* of the command that runs; NULL: none */
    Json *results;
    TestReport *report; /* of all commands together; NULL: none yet */
    bool file_waits;    /* a write is under way: its callback will come */
    bool answered;
} Execution;

static void
execution_free(Execution *x)
{
    if (x->late_source != 0)
        g_source_remove(x->late_source);
    run_collect_free(x->collect);
    json_decref(x->results);
    report_free(x->report);
    g_strfreev(x->env);
    json_decref(x->body);
    box_unref(x->box);
    http_request_unref(x->call->request);
    g_free(x);
}

/* ---- the answer ---- */

static void
append_text(GString *all, Json *result, const char *name)
{
    g_string_append_len(all, json_string_value(json_object_get(result, name)),
                        (gssize)json_string_length(json_object_get(result, name)));
}

static bool
is_success(const Execution *x)
{
    size_t i;
    Json *result;

    json_array_foreach(x->results, i, result)
    {
        if (json_integer_value(json_object_get(result, "exit_code")) != 0)
            return false;
    }
    return x->next_command == json_array_size(x->commands);
}

static Json *
describe_execution(const Execution *x)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GString) err = g_string_new(NULL);
    size_t n = json_array_size(x->results), i;
    BoxInfo info;
    Json *result;

    box_info(x->box, &info);
    json_array_foreach(x->results, i, result)
    {
        append_text(out, result, "stdout");
        append_text(err, result, "stderr");
    }
    g_autofree char *id = g_strconcat("sb-", info.id, NULL);
    int code = n > 0
                   ? (int)json_integer_value(json_object_get(json_array_get(x->results, n - 1), "exit_code"))
                   : 0;
    return json_pack("{s:s, s:b, s:O, s:s%, s:s%, s:i, s:I, s:o}", "sandbox_id", id, "success",
                     (int)is_success(x), "results", x->results, "stdout", out->str, out->len, "stderr",
                     err->str, err->len, "exit_code", code, "duration_ms",
                     (json_int_t)((clock_mono_us() - x->begun_us) / 1000), "test_results",
                     x->report != NULL ? report_to_json(x->report) : json_null());
}

static void
answer(Execution *x, const GError *error)
{
    if (x->answered)
        return;
    x->answered = true;
    http_request_on_gone(x->call->request, NULL, NULL);
    if (error != NULL)
        call_respond_error(x->call, error);
    else if (!caller_is_still_known(x->call))
        respond_error(x->call->request, 401, "the key of this call is not valid any more");
    else
        call_respond_json(x->call, 200, describe_execution(x));
}

/* ---- commands ---- */

static void run_next(Execution *x);

static gint64
left_ms(const Execution *x)
{
    return (x->deadline_us - clock_mono_us()) / 1000;
}

static Json *
describe_result(const Execution *x, const RunEnd *end)
{
    Json *o = json_object();

    json_object_set(o, "command", json_array_get(x->commands, x->next_command));
    run_collect_set_text(x->collect, o);
    json_object_set_new(o, "exit_code", json_integer(run_end_exit_code(end)));
    json_object_set_new(o, "duration_ms", json_integer((json_int_t)(end->duration_us / 1000)));
    json_object_set_new(o, "reason", json_string(run_reason_name(end->reason)));
    g_autofree char *message = run_end_dup_message(end);
    if (message != NULL)
        json_object_set_new(o, "message", json_string(message));
    return o;
}

static void
end_command(Execution *x, const RunEnd *end)
{
    const TestReport *report = run_test_report(run_collect_run(x->collect));

    json_array_append_new(x->results, describe_result(x, end));
    if (report != NULL && x->report == NULL)
        x->report = report_new(report->runner);
    if (report != NULL)
        report_merge(x->report, report);
    x->text_left -= MIN(x->text_left, run_collect_size(x->collect));
    g_clear_pointer(&x->collect, run_collect_free);
    x->next_command++;
}

static void
finish(Execution *x, const GError *error)
{
    answer(x, error);
    if (!x->file_waits)
        execution_free(x);
}

static void
on_command_ended(RunCollect *collect, void *data)
{
    Execution *x = data;
    const RunEnd *end = run_end(run_collect_run(collect));
    bool failed = run_end_exit_code(end) != 0;
    /* Time is for the whole call, and a box that is gone runs nothing. */
    bool last = end->reason == RUN_TIMEOUT || end->reason == RUN_STOPPED || end->reason == RUN_LOST;

    end_command(x, end);
    if (last || (failed && x->stop_on_error))
        finish(x, NULL);
    else
        run_next(x);
}

static void
run_next(Execution *x)
{
    const char *line = json_string_value(json_array_get(x->commands, x->next_command));
    BoxInfo info;
    g_autoptr(GError) error = NULL;

    if (line == NULL) {
        finish(x, NULL);
        return;
    }
    box_info(x->box, &info);
    const char *argv[] = {info.shell, "-c", line, NULL};
    RunSpec spec = {
        .argv = argv,
        .env = (const char *const *)x->env,
        .user = "",
        .cwd = x->cwd,
        .timeout_ms = (guint)MAX(left_ms(x), 1),
    };
    g_autoptr(Run) run = box_start(x->box, &spec, x->call->caller.actor, &error);
    if (run == NULL) {
        finish(x, error);
        return;
    }
    x->collect = run_collect_new(run, CLAMP(x->text_left, TEXT_MIN, TEXT_MAX), on_command_ended, x);
}

/* ---- files ---- */

static void write_next(Execution *x);

static void
on_file_written(const GError *error, void *data)
{
    Execution *x = data;

    x->file_waits = false;
    if (x->answered) {
        execution_free(x);
        return;
    }
    if (error != NULL) {
        g_autoptr(GError) named = g_error_copy(error);

        g_prefix_error(&named, "file '%.*s': ", NAME_SHOWN_MAX, json_object_iter_key(x->next_file));
        finish(x, named);
        return;
    }
    x->next_file = json_object_iter_next(x->files, x->next_file);
    write_next(x);
}

static void
write_next(Execution *x)
{
    if (x->next_file == NULL) {
        run_next(x);
        return;
    }
    const Json *content = json_object_iter_value(x->next_file);
    BoxFileSpec spec = {.box = x->box, .actor = x->call->caller.actor};
    x->file_waits = true;
    box_file_put(&spec, json_object_iter_key(x->next_file), json_string_value(content),
                 json_string_length(content), on_file_written, x);
}

/* ---- the beginning ---- */

static void
on_gone(HttpRequest *request, void *data)
{
    Execution *x = data;

    x->answered = true; /* there is nobody to answer */
    if (!x->file_waits)
        execution_free(x);
}

static gboolean
on_late(gpointer data)
{
    Execution *x = data;
    RunEnd end = {.reason = RUN_TIMEOUT};

    x->late_source = 0;
    if (x->collect != NULL) {
        run_signal(run_collect_run(x->collect), SIGKILL);
        end.duration_us = (guint64)(clock_mono_us() - x->begun_us);
        end_command(x, &end);
        finish(x, NULL);
        return G_SOURCE_REMOVE;
    }
    g_autoptr(GError) error = NULL;
    err_set(&error, ERR_TIMEOUT, "the files were not written within the call's time");
    finish(x, error);
    return G_SOURCE_REMOVE;
}

static bool
check_strings(const Execution *x, GError **error)
{
    const char *name;
    Json *value;
    size_t i;

    json_object_foreach(x->files, name, value)
    {
        if (name[0] == '\0' || strlen(name) >= FRAME_PATH_MAX || !json_is_string(value))
            return err_set(error, ERR_INVALID, "'files' must map names of files to their contents");
    }
    json_array_foreach(x->commands, i, value)
    {
        if (!json_is_string(value) || json_string_length(value) == 0 ||
            json_string_length(value) > LINE_MAX_BYTES)
            return err_set(error, ERR_INVALID, "'commands' must be a list of lines of 1 to %d bytes",
                           LINE_MAX_BYTES);
    }
    return true;
}

static bool
read_execution(Execution *x, GError **error)
{
    Json *env = NULL;
    gint64 timeout_s = EXECUTE_S;
    const JsonField fields[] = {
        {"files", JSON_KIND_OBJECT, &x->files},
        {"commands", JSON_KIND_ARRAY, &x->commands, false, 0, COMMANDS_MAX},
        {"timeout", JSON_KIND_INT, &timeout_s, false, 1, EXECUTE_S_MAX},
        {"env", JSON_KIND_OBJECT, &env},
        {"cwd", JSON_KIND_STRING, &x->cwd, false, 1, FRAME_PATH_MAX - 1},
        {"stop_on_error", JSON_KIND_BOOL, &x->stop_on_error},
        {NULL},
    };

    if (!json_read(x->body, fields, error) || !form_read_env(env, &x->env, error) || !check_strings(x, error))
        return false;
    if (json_object_size(x->files) > FILES_MAX)
        return err_set(error, ERR_INVALID, "'files' has more than %d members", FILES_MAX);
    x->deadline_us = x->begun_us + timeout_s * G_USEC_PER_SEC;
    x->late_source = g_timeout_add((guint)(timeout_s * 1000 + LATE_MS), on_late, x);
    return true;
}

static void
execute(ApiCall *call, Json *body, void *data)
{
    Box *box = call_box(call);
    g_autoptr(GError) error = NULL;

    if (box == NULL)
        return;
    Execution *x = g_new0(Execution, 1);
    x->call = call;
    http_request_ref(call->request);
    x->box = box_ref(box);
    x->body = json_incref(body);
    x->cwd = "";
    x->stop_on_error = true;
    x->text_left = TEXT_BUDGET;
    x->results = json_array();
    x->begun_us = clock_mono_us();
    if (!read_execution(x, &error)) {
        finish(x, error);
        return;
    }
    x->next_file = json_object_iter(x->files);
    http_request_on_gone(call->request, on_gone, x);
    write_next(x);
}

static void
post_execute(ApiCall *call)
{
    call_read_json(call, execute, NULL);
}

const ApiRoute service_execute_routes[] = {
    {"POST", "/sandbox/{id}/execute", SCOPE_BOX, 0, post_execute},
    {NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/command-find.h"

#include "api/box-json.h"
#include "api/call-box.h"
#include "api/state.h"
#include "base/err.h"

enum { TRIES_MAX = 3 };

/* ---- how a command is shown ---- */

static Json *
describe_row_end(Json *row)
{
    static const struct {
        const char *to, *from;
        gint64 divide;
    } numbers[] = {
        {"duration_ms", "duration_us", 1000},  {"cpu_ms", "cpu_us", 1000},
        {"max_rss_bytes", "max_rss_bytes", 1}, {"stdout_bytes", "stdout_bytes", 1},
        {"stderr_bytes", "stderr_bytes", 1},
    };
    const char *reason = json_string_value(json_object_get(row, "reason"));
    Json *tests = json_object_get(row, "tests");

    if (reason == NULL)
        return json_null();
    Json *o = json_object();
    json_object_set(o, "reason", json_object_get(row, "reason"));
    json_object_set(o, "exit_code", json_object_get(row, "exit_code"));
    if (g_str_equal(reason, run_reason_name(RUN_SIGNAL)))
        json_object_set(o, "signal", json_object_get(row, "code"));
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        gint64 value = json_integer_value(json_object_get(row, numbers[i].from));

        json_object_set_new(o, numbers[i].to, json_integer(value / numbers[i].divide));
    }
    if (json_is_object(tests))
        json_object_set(o, "test_results", tests);
    return o;
}

Json *
command_describe(Json *row, const Run *run)
{
    static const char *const same[] = {"command", "user", "cwd", "tty"};
    Json *end_object = run != NULL && run_has_ended(run) ? run_end_describe(run) : describe_row_end(row);
    Json *o = json_object();

    json_object_set(o, "id", json_object_get(row, "run"));
    for (size_t i = 0; i < G_N_ELEMENTS(same); i++)
        json_object_set(o, same[i], json_object_get(row, same[i]));
    json_object_set_new(o, "state", json_string(json_is_null(end_object) ? "running" : "ended"));
    json_object_set(o, "started_at", json_object_get(row, "started_at"));
    json_object_set_new(o, "pid",
                        run != NULL && run_pid(run) != 0 ? json_integer(run_pid(run)) : json_null());
    json_object_set_new(o, "end", end_object);
    return o;
}

Json *
run_describe(Box *box, Run *run)
{
    g_autoptr(Json) row = box_command_row(box, run_id(run));

    return command_describe(row, run);
}

/* ---- finding ---- */

typedef struct Search {
    ApiCall *call; /* with a reference to its request */
    Box *box;      /* a reference; NULL: it has ended */
    char *box_id;
    guint32 id; /* 0: all, at most `limit` */
    guint limit;
    CommandFunc func;
    CommandListFunc list_func;
    Json *list;
    gint64 last; /* the newest of those that the store told of */
    bool stale;  /* one of them has ended since the store was read */
    guint tries;
} Search;

static void
search_free(Search *s)
{
    http_request_unref(s->call->request);
    box_unref(s->box);
    g_free(s->box_id);
    json_decref(s->list);
    g_free(s);
}

static void
add_row(Search *s, Json *row)
{
    gint64 id = json_integer_value(json_object_get(row, "run"));
    const Run *run = s->box != NULL ? box_find_run(s->box, (guint32)id) : NULL;

    s->stale |= s->box != NULL && run == NULL && json_is_null(json_object_get(row, "reason"));
    json_array_append_new(s->list, command_describe(row, run));
    s->last = MAX(s->last, id);
}

/* A command that was started a moment ago is in memory, and perhaps not in the store yet. */
static void
add_live(Json *row, void *data)
{
    Search *s = data;

    if (json_integer_value(json_object_get(row, "run")) > s->last)
        add_row(s, row);
}

static void
answer_list(Search *s)
{
    if (s->box != NULL)
        box_each_command(s->box, add_live, s);
    while (json_array_size(s->list) > s->limit)
        json_array_remove(s->list, 0);
    s->list_func(s->call, s->list);
}

static void
refuse_command(ApiCall *call)
{
    respond_error(call->request, 404, "this sandbox has had no such command");
}

static void ask_store(Search *s);

/* The end of a command is in the store before it is forgotten here: who reads again sees it. */
static bool
read_again(Search *s)
{
    if (!s->stale || ++s->tries > TRIES_MAX)
        return false;
    s->stale = false;
    json_array_clear(s->list);
    ask_store(s);
    return true;
}

static void
on_rows(Json *rows, const GError *error, void *data)
{
    Search *s = data;
    size_t i;
    Json *row;

    json_array_foreach(rows, i, row) add_row(s, row);
    if (error == NULL && read_again(s))
        return;
    if (error != NULL) {
        call_respond_error(s->call, error);
    } else if (s->id == 0) {
        answer_list(s);
    } else if (json_array_size(s->list) == 0) {
        refuse_command(s->call);
    } else {
        CommandPlace place = {
            .box = s->box, .box_id = s->box_id, .id = s->id, .object = json_array_get(s->list, 0)};

        s->func(s->call, &place);
    }
    search_free(s);
}

static void
ask_store(Search *s)
{
    BoxHost *host = s->call->api->boxes;

    if (s->id == 0)
        box_host_commands(host, s->box_id, s->limit, on_rows, s);
    else
        box_host_command(host, s->box_id, s->id, on_rows, s);
}

static bool
find_in_memory(Search *s)
{
    Run *run = s->id != 0 ? box_find_run(s->box, s->id) : NULL;
    g_autoptr(Json) row = run != NULL ? box_command_row(s->box, s->id) : NULL;

    if (row == NULL)
        return false;
    g_autoptr(Json) object = command_describe(row, run);
    CommandPlace place = {.box = s->box, .run = run, .box_id = s->box_id, .id = s->id, .object = object};
    s->func(s->call, &place);
    return true;
}

static void
on_box_row(ApiCall *call, Json *row, void *data)
{
    Search *s = data;

    if (row == NULL) {
        search_free(s);
        return;
    }
    s->box_id = g_strdup(json_string_value(json_object_get(row, "e2b_id")));
    ask_store(s);
}

static void
search(ApiCall *call, const Search *wanted)
{
    Search *s = g_memdup2(wanted, sizeof *wanted);
    Box *box = call_find_box(call);
    BoxInfo info;

    s->call = call;
    s->list = json_array();
    http_request_ref(call->request);
    if (box == NULL) {
        call_box_row(call, on_box_row, s);
        return;
    }
    box_info(box, &info);
    s->box = box_ref(box);
    s->box_id = g_strdup(info.id);
    if (find_in_memory(s))
        search_free(s);
    else
        ask_store(s);
}

static bool
read_number(ApiCall *call, guint32 *ret_id)
{
    guint64 id = 0;

    if (!g_ascii_string_to_unsigned(call_param(call, "command"), 10, 1, G_MAXUINT32, &id, NULL)) {
        refuse_command(call);
        return false;
    }
    *ret_id = (guint32)id;
    return true;
}

void
call_command(ApiCall *call, CommandFunc func)
{
    Search wanted = {.func = func};

    if (read_number(call, &wanted.id))
        search(call, &wanted);
}

void
call_commands(ApiCall *call, guint limit, CommandListFunc func)
{
    search(call, &(Search){.limit = limit, .list_func = func});
}

static void
refuse_ended(ApiCall *call, const CommandPlace *place)
{
    respond_error(call->request, 409, "the command has ended");
}

Run *
call_live_run(ApiCall *call, Box **ret_box)
{
    Box *box = call_box(call);
    guint32 id;

    if (box == NULL || !read_number(call, &id))
        return NULL;
    Run *run = box_find_run(box, id);
    /* Not every run is a command: some read and write files. */
    g_autoptr(Json) row = run != NULL ? box_command_row(box, id) : NULL;
    if (row == NULL || run_has_ended(run)) {
        call_command(call, refuse_ended); /* or there never was one */
        return NULL;
    }
    if (ret_box != NULL)
        *ret_box = box;
    return run;
}

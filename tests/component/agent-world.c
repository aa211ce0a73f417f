/* SPDX-License-Identifier: Apache-2.0 */
#include "agent-world.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/tree.h"

enum { BODY_MAX = 1 << 20 };

/* ---- the face ---- */

static void
answer(HttpRequest *request, int status, Json *value)
{
    g_autoptr(Json) taken = value;
    g_autofree char *text = json_encode(taken);

    http_respond_text(request, status, "application/json", text);
}

static void
take_report(AgentWorld *w, HttpRequest *request, Json *body)
{
    w->reports++;
    if (w->mute) {
        g_ptr_array_add(w->held, http_request_ref(request));
    } else if (w->deaf) {
        answer(request, 503, json_object());
    } else {
        g_assert_cmpuint(json_array_size(json_object_get(body, "events")), <=, 100);
        json_array_extend(w->events, json_object_get(body, "events"));
        answer(request, 200, json_object());
    }
}

static void
take_done(AgentWorld *w, HttpRequest *request, Json *body)
{
    w->dones++;
    if (w->done_away > 0) {
        w->done_away--;
        answer(request, 503, json_object());
        return;
    }
    json_decref(w->done);
    w->done = json_incref(body);
    answer(request, 200, json_object());
}

static void
on_body(HttpRequest *request, const guint8 *bytes, size_t n, const GError *error, void *data)
{
    AgentWorld *w = data;
    const char *path = http_request_path(request);
    g_autoptr(Json) body = error == NULL ? json_decode(bytes, n, NULL) : NULL;

    g_assert_nonnull(body);
    if (strcmp(path, "/agent/v1/report") == 0) {
        take_report(w, request, body);
    } else if (strcmp(path, "/agent/v1/done") == 0) {
        take_done(w, request, body);
    } else if (strcmp(path, "/agent/v1/ask") == 0) {
        json_array_append(w->questions, body);
        answer(request, 200, json_pack("{s:s}", "id", "q1"));
    } else if (strcmp(path, "/rooms/room-1/messages") == 0) {
        json_array_append(w->posts, body);
        answer(request, 201, json_object());
    } else {
        answer(request, 404, json_pack("{s:{s:s}}", "error", "message", "no such place"));
    }
}

static void
answer_get(AgentWorld *w, HttpRequest *request)
{
    const char *path = http_request_path(request);

    if (strcmp(path, "/agent/v1/brief") == 0) {
        w->briefs++;
        answer(request, w->brief_status != 0 ? w->brief_status : 200, json_incref(w->brief));
    } else if (strcmp(path, "/agent/v1/ask/q1") == 0) {
        bool open = w->looks++ < w->answer_after;

        answer(request, 200,
               open ? json_pack("{s:s}", "state", "open")
                    : json_pack("{s:s, s:s}", "state", "answered", "answer", "blue"));
    } else if (strcmp(path, "/agent/v1/plan") == 0) {
        http_respond_text(request, 200, "text/plain", "the plan");
    } else if (strcmp(path, "/rooms/room-1") == 0) {
        answer(request, 200,
               json_pack("{s:{s:s}, s:[{s:s, s:s, s:s}]}", "plan", "project", "p", "messages", "name",
                         "coder-2", "seen_by", "agent", "text", "hi"));
    } else {
        answer(request, 404, json_pack("{s:{s:s}}", "error", "message", "no such place"));
    }
}

static void
on_request(HttpRequest *request, void *data)
{
    AgentWorld *w = data;

    if (w->away > 0) {
        w->away--;
        http_response_close(request);
        answer(request, 503, json_object());
    } else if (strcmp(http_request_method(request), "GET") == 0) {
        answer_get(w, request);
    } else {
        http_request_read_all(request, BODY_MAX, on_body, w);
    }
}

/* ---- life ---- */

void
agent_world_init(AgentWorld *w)
{
    HttpLimits limits = HTTP_LIMITS_INIT;

    *w = (AgentWorld){.dialect = "openai"};
    fixture_init_handler(&w->f, &limits, on_request, w);
    w->folder = g_dir_make_tmp("coop-agent-XXXXXX", NULL);
    w->tree = g_build_filename(w->folder, "tree", NULL);
    g_assert_cmpint(g_mkdir(w->tree, 0700), ==, 0);
    w->events = json_array();
    w->posts = json_array();
    w->questions = json_array();
    w->held = g_ptr_array_new_with_free_func((GDestroyNotify)http_request_unref);
    w->brief = json_pack(
        "{s:s, s:s, s:s, s:s, s:{s:s}, s:n, s:s, s:s, s:{s:s, s:s}, s:{s:i, s:i}, s:s, s:s, s:[], s:{s:s}}",
        "execution_id", "e1", "agent", "coder-1-0000", "role", "coder", "kind", "work", "task", "id", "t1",
        "step", "system", "You are a coder.", "goal", "Do it.", "model", "dialect", "openai", "name",
        "demo/m", "limits", "turns", 10, "seconds", 60, "workdir", w->tree, "branch", "b", "checks", "room",
        "id", "room-1");
    g_assert_nonnull(w->brief);
}

void
agent_world_clear(AgentWorld *w)
{
    if (w->child != NULL && w->ended == 0) {
        (void)child_signal(w->child, SIGKILL, NULL); /* it may have ended just now */
        agent_world_wait(w);
    }
    g_clear_pointer(&w->child, child_free);
    g_ptr_array_unref(w->held);
    g_clear_pointer(&w->model, script_free);
    fixture_clear(&w->f);
    g_assert_true(tree_remove(AT_FDCWD, w->folder, NULL));
    g_free(w->folder);
    g_free(w->tree);
    json_decref(w->brief);
    json_decref(w->events);
    json_decref(w->posts);
    json_decref(w->questions);
    json_decref(w->done);
}

void
agent_world_model(AgentWorld *w, const ScriptStep *const *answers, guint n)
{
    g_clear_pointer(&w->model, script_free);
    w->model = script_serve(answers, n, NULL);
}

static void
on_ended(Child *child, ChildExit how, void *data)
{
    AgentWorld *w = data;

    w->how = how;
    w->ended++;
}

void
agent_world_start(AgentWorld *w, const char *const *argv)
{
    g_autoptr(GStrvBuilder) words = g_strv_builder_new();
    g_auto(GStrv) env = g_environ_setenv(g_get_environ(), "COOP_LOG", "error", TRUE);
    g_autofree char *face = g_strdup_printf("http://127.0.0.1:%u", w->f.port);
    g_autofree char *model = w->model != NULL ? script_url(w->model, "/base") : g_strdup(face);
    g_autoptr(GError) error = NULL;

    env = g_environ_setenv(env, "COOP_AGENT_URL", face, TRUE);
    env = g_environ_setenv(env, "OPENAI_BASE_URL", model, TRUE);
    env = g_environ_setenv(env, "ANTHROPIC_BASE_URL", model, TRUE);
    json_object_set_new(json_object_get(w->brief, "model"), "dialect", json_string(w->dialect));
    /* A test that fails takes it along. */
    g_strv_builder_add_many(words, "setpriv", "--pdeathsig", "KILL", g_getenv("COOP_AGENT"), NULL);
    for (guint i = 0; argv != NULL && argv[i] != NULL; i++)
        g_strv_builder_add(words, argv[i]);
    g_auto(GStrv) line = g_strv_builder_end(words);
    g_autofree char *out_path = g_build_filename(w->folder, "out", NULL);
    autofd out = open(out_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    SpawnSpec spec = SPAWN_SPEC_INIT;
    spec.argv = (const char *const *)line;
    spec.env = (const char *const *)env;
    spec.stdout_fd = out;
    g_clear_pointer(&w->child, child_free);
    w->ended = 0;
    w->child = child_spawn(&spec, on_ended, w, &error);
    g_assert_no_error(error);
}

void
agent_world_wait(AgentWorld *w)
{
    fixture_until(&w->ended, 1);
}

int
agent_world_run(AgentWorld *w)
{
    agent_world_start(w, NULL);
    agent_world_wait(w);
    g_assert_false(w->how.signalled);
    return w->how.value;
}

/* ---- what was heard ---- */

static const char *
text_or(Json *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "-";
}

char *
agent_world_end(const AgentWorld *w)
{
    return g_strdup_printf("%s/%s/%s", text_or(w->done, "outcome"), text_or(w->done, "reason"),
                           text_or(w->done, "summary"));
}

static bool
is_event(Json *event, const char *kind, const char *name)
{
    return strcmp(text_or(event, "kind"), kind) == 0 &&
           (name == NULL || strcmp(text_or(event, "name"), name) == 0);
}

guint
agent_world_events(const AgentWorld *w, const char *kind, const char *name)
{
    guint n = 0;
    size_t i;
    Json *event;

    json_array_foreach(w->events, i, event) n += is_event(event, kind, name);
    return n;
}

Json *
agent_world_tool(const AgentWorld *w, const char *name)
{
    size_t i;
    Json *event;

    json_array_foreach(w->events, i, event)
    {
        if (is_event(event, "tool", name))
            return event;
    }
    return NULL;
}

char *
agent_world_file(const AgentWorld *w, const char *name)
{
    g_autofree char *path = g_build_filename(w->tree, name, NULL);
    char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

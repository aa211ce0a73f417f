/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/repo-watch.h"

#include <string.h>

#include "cli/bar.h"
#include "http/sse.h"

enum {
    EVENT_MAX = 1024 * 1024,
    SILENCE_MS = 45000, /* three beats of the server */
    STREAMS_MAX = 20,   /* that may be lost */
    AGAIN_MS = 500,
};

typedef struct Watch {
    Bar bar;
    SseDecoder *decoder;
    const char *id; /* of the repository */
    json_int_t after;
    bool ended;
    char *failed; /* why; NULL: it did not */
} Watch;

static const char *
text_of(const Json *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

static void
on_event(const SseEvent *e, void *data)
{
    Watch *w = data;
    g_autoptr(Json) event = json_decode(e->data, e->data_len, NULL);
    const Json *about = json_object_get(event, "data");
    const Json *seq = json_object_get(event, "seq");

    if (json_is_integer(seq))
        w->after = json_integer_value(seq);
    if (w->ended || strcmp(text_of(about, "repository_id"), w->id) != 0)
        return;
    if (strcmp(e->event, "git.progressed") == 0) {
        bar_show(&w->bar, (guint)json_integer_value(json_object_get(about, "percent")),
                 text_of(about, "operation"), NULL);
        return;
    }
    w->ended = true;
    if (strcmp(e->event, "git.failed") == 0)
        w->failed = g_strdup(text_of(about, "error"));
}

static bool
on_bytes(const guint8 *bytes, size_t n, void *data)
{
    Watch *w = data;

    return sse_decoder_feed(w->decoder, bytes, n, NULL) && !w->ended;
}

/* One stream, to its end or to that of what is watched. */
static void
listen_once(Watch *w, Remote *remote)
{
    static const char *const headers[] = {"Accept: text/event-stream", NULL};
    g_autofree char *path = g_strdup_printf("/api/v1/events?kind=git.*&after=%" JSON_INTEGER_FORMAT,
                                            w->after);
    RemoteCall call = REMOTE_CALL_INIT;
    g_auto(RemoteReply) reply = {0};

    w->decoder = sse_decoder_new(EVENT_MAX, on_event, w);
    call.path = path;
    call.headers = headers;
    call.stall_ms = SILENCE_MS;
    call.data = on_bytes;
    call.ctx = w;
    remote_try(remote, &call, &reply);
    sse_decoder_free(w->decoder);
}

static bool
is_under_way(const Json *repo)
{
    return strcmp(text_of(repo, "state"), "importing") == 0 ||
           json_is_integer(json_object_get(repo, "progress"));
}

static ExitCode
follow(Cli *cli, Remote *remote, Watch *w, Json **repo)
{
    g_autofree char *path = repo_path(text_of(*repo, "owner"), text_of(*repo, "name"), "");
    ExitCode code = EXIT_CODE_OK;

    for (guint i = 0; code == EXIT_CODE_OK && is_under_way(*repo) && i < STREAMS_MAX; i++) {
        if (i > 0 && !remote_wait(remote, AGAIN_MS))
            return EXIT_CODE_OK;
        listen_once(w, remote);
        json_decref(*repo);
        *repo = NULL;
        code = remote_call(remote, "GET", path, NULL, repo);
    }
    bar_clear(&w->bar);
    if (code == EXIT_CODE_OK && w->failed != NULL)
        code = cli_fail(cli, EXIT_CODE_FAILED, "%s", w->failed);
    return code;
}

ExitCode
repo_watch(Cli *cli, Remote *remote, const char *path, const Json *body, Json **ret_repo)
{
    g_autoptr(Json) repo = NULL, events = NULL;
    ExitCode code = remote_call(remote, "GET", "/api/v1/events?limit=1", NULL, &events);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "POST", path, body, &repo);
    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *id = g_strdup(text_of(repo, "id"));
    Watch w = {.bar = bar_make(cli), .id = id, .after = json_integer_value(json_object_get(events, "seq"))};

    code = follow(cli, remote, &w, &repo);
    g_free(w.failed);
    *ret_repo = g_steal_pointer(&repo);
    return code;
}

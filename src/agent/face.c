/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/face.h"

#include <string.h>

#include "agent/retry.h"
#include "base/clock.h"
#include "base/err.h"
#include "http/plain/client.h"
#include "http/url.h"

enum { SAID_MAX = 300 }; /* bytes of a refusal that are shown */

struct Face {
    PlainClient *client;
    gint64 patience_ms;
};

typedef struct FaceCall {
    const char *method, *path;
    const char *accept; /* a whole header; NULL: none */
    char *body;         /* NULL: none */
    gint64 answer_ms;   /* 0: FACE_ANSWER_MS */
    bool once;
} FaceCall;

static const char *
find_url(void)
{
    static const char *const names[] = {"COOP_AGENT_URL", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *url = g_getenv(names[i]);

        if (url != NULL && *url != '\0')
            return url;
    }
    return NULL;
}

Face *
face_new(int cancel_fd, GError **error)
{
    const char *url = find_url();
    g_autoptr(Face) face = g_new0(Face, 1);

    if (url == NULL) {
        err_set(error, ERR_UNAVAILABLE,
                "this is no box of Coop: COOP_AGENT_URL and OPENAI_BASE_URL are not set");
        return NULL;
    }
    face->patience_ms = FACE_PATIENCE_MS;
    face->client = plain_client_new(url, error);
    if (face->client == NULL)
        return NULL;
    plain_client_set_cancel(face->client, cancel_fd);
    return g_steal_pointer(&face);
}

void
face_free(Face *face)
{
    if (face == NULL)
        return;
    plain_client_free(face->client);
    g_free(face);
}

void
face_set_patience(Face *face, gint64 ms)
{
    face->patience_ms = ms;
}

bool
face_pause(Face *face, gint64 ms, GError **error)
{
    return plain_client_pause(face->client, ms, error);
}

/* ---- one call ---- */

static ErrKind
kind_of_status(int status)
{
    switch (status) {
    case 401:
    case 403:
        return ERR_DENIED;
    case 404:
        return ERR_NOT_FOUND;
    case 409:
        return ERR_CONFLICT;
    case 429:
        return ERR_LIMIT;
    default:
        return status >= 500 ? ERR_UNAVAILABLE : ERR_INVALID;
    }
}

/* What a refusal says: {"error": {"message"}} or {"message"}, else its text. */
static bool
fail_status(const FaceCall *call, const PlainAnswer *answer, GError **error)
{
    g_autoptr(Json) body = json_decode(answer->body->str, answer->body->len, NULL);
    Json *inner = json_object_get(body, "error");
    const char *said = json_string_value(json_object_get(inner != NULL ? inner : body, "message"));

    if (said == NULL)
        said = json_is_string(inner) ? json_string_value(inner) : answer->body->str;
    g_autofree char *valid = g_utf8_make_valid(said, (gssize)MIN(strlen(said), (size_t)SAID_MAX));
    return err_set(error, kind_of_status(answer->status), "%s: %d: %s", call->path, answer->status,
                   g_strstrip(valid));
}

static bool
call_once(Face *face, const FaceCall *call, PlainAnswer *ret_answer, GError **error)
{
    const char *headers[] = {call->body != NULL ? "Content-Type: application/json" : call->accept,
                             call->body != NULL ? call->accept : NULL, NULL};
    gint64 ms = call->answer_ms > 0 ? call->answer_ms : FACE_ANSWER_MS;
    const PlainCall plain = {.method = call->method,
                             .path = call->path,
                             .headers = headers,
                             .body = call->body,
                             .body_len = call->body != NULL ? strlen(call->body) : 0,
                             .head_ms = ms,
                             .stall_ms = ms};

    return plain_call(face->client, &plain, ret_answer, error) &&
           (ret_answer->status / 100 == 2 || fail_status(call, ret_answer, error));
}

/* The text of the answer, NULL with an error. */
static char *
face_call(Face *face, const FaceCall *call, GError **error)
{
    g_autofree char *body = call->body;
    g_autoptr(GError) failed = NULL;
    Retry retry;

    retry_init(&retry, face->patience_ms);
    for (;;) {
        g_auto(PlainAnswer) answer = {0};

        if (call_once(face, call, &answer, &failed))
            return g_string_free(g_steal_pointer(&answer.body), FALSE);
        bool again = answer.status != 0 ? retry_is_status(answer.status) : retry_is_error(failed);
        const char *after = answer.status != 0 ? http_head_find(&answer.head, "Retry-After") : NULL;
        if (call->once || !again || !retry_wait(&retry, face->client, after, &failed))
            break;
    }
    g_propagate_error(error, g_steal_pointer(&failed));
    return NULL;
}

static Json *
call_json(Face *face, const FaceCall *call, GError **error)
{
    g_autofree char *text = face_call(face, call, error);

    return text != NULL ? json_decode(text, strlen(text), error) : NULL;
}

static bool
call_plainly(Face *face, const FaceCall *call, GError **error)
{
    g_autofree char *text = face_call(face, call, error);

    return text != NULL;
}

/* ---- what can be asked ---- */

Json *
face_brief(Face *face, GError **error)
{
    return call_json(face, &(FaceCall){.method = "GET", .path = "/agent/v1/brief"}, error);
}

bool
face_report(Face *face, Json *events, GError **error)
{
    g_autoptr(Json) body = json_pack("{s:O}", "events", events);
    FaceCall call = {.method = "POST",
                     .path = "/agent/v1/report",
                     .body = json_encode(body),
                     .answer_ms = FACE_REPORT_MS,
                     .once = true};

    return call_plainly(face, &call, error);
}

bool
face_done(Face *face, Json *report, GError **error)
{
    FaceCall call = {.method = "POST", .path = "/agent/v1/done", .body = json_encode(report)};

    return call_plainly(face, &call, error);
}

char *
face_plan(Face *face, const char *task, GError **error)
{
    g_autofree char *name = task != NULL ? url_encode_path(task) : NULL;
    g_autofree char *path = g_strconcat("/agent/v1/plan", name != NULL ? "?task=" : NULL, name, NULL);

    return face_call(face, &(FaceCall){.method = "GET", .path = path}, error);
}

char *
face_ask(Face *face, const char *question, Json *options, GError **error)
{
    g_autoptr(Json) body = json_pack("{s:s, s:O*}", "question", question, "options", options);
    g_autoptr(Json) answer = NULL;

    if (body == NULL) {
        err_set(error, ERR_INVALID, "the question is no text");
        return NULL;
    }
    FaceCall call = {.method = "POST", .path = "/agent/v1/ask", .body = json_encode(body)};
    answer = call_json(face, &call, error);
    if (answer == NULL)
        return NULL;
    const char *id = json_string_value(json_object_get(answer, "id"));
    if (id == NULL)
        err_set(error, ERR_INTERNAL, "the server gave the question no id");
    return g_strdup(id);
}

char *
face_answer(Face *face, const char *question_id, GError **error)
{
    g_autofree char *id = url_encode_path(question_id);
    gint64 deadline_us = clock_mono_us() + (gint64)FACE_ASK_MS * 1000;

    for (;;) {
        gint64 left_ms = (deadline_us - clock_mono_us()) / 1000;

        if (left_ms <= 0) {
            err_set(error, ERR_TIMEOUT, "nobody has answered");
            return NULL;
        }
        gint64 wait_ms = MIN(left_ms, FACE_ASK_WAIT_MS);
        g_autofree char *path = g_strdup_printf("/agent/v1/ask/%s?wait_ms=%" G_GINT64_FORMAT, id, wait_ms);
        gint64 asked_us = clock_mono_us();
        g_autoptr(Json) found = call_json(
            face, &(FaceCall){.method = "GET", .path = path, .answer_ms = wait_ms + FACE_ANSWER_MS}, error);
        if (found == NULL)
            return NULL;
        if (g_strcmp0(json_string_value(json_object_get(found, "state")), "open") != 0)
            return g_strdup(json_string_value(json_object_get(found, "answer")) ?: "");
        /* A server that does not wait is not asked without a pause. */
        if (clock_mono_us() - asked_us < RETRY_FIRST_MS * 1000 &&
            !plain_client_pause(face->client, RETRY_FIRST_MS, error))
            return NULL;
    }
}

static char *
room_path(const char *room_id, const char *below)
{
    g_autofree char *id = url_encode_path(room_id);

    return g_strconcat("/rooms/", id, below, NULL);
}

bool
face_room_post(Face *face, const char *room_id, const char *text, const char *priority, GError **error)
{
    g_autofree char *path = room_path(room_id, "/messages");
    g_autoptr(Json) body = json_pack("{s:s, s:s*}", "text", text, "priority", priority);
    FaceCall call = {.method = "POST", .path = path, .body = body != NULL ? json_encode(body) : NULL};

    if (body == NULL)
        return err_set(error, ERR_INVALID, "the message is no text");
    return call_plainly(face, &call, error);
}

Json *
face_room_read(Face *face, const char *room_id, GError **error)
{
    g_autofree char *path = room_path(room_id, NULL);

    return call_json(face, &(FaceCall){.method = "GET", .path = path, .accept = "Accept: application/json"},
                     error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model.h"

#include <string.h>

#include "agent/retry.h"
#include "base/err.h"
#include "http/plain/client.h"

enum { SAID_MAX = 500 }; /* bytes of a refusal that are shown */

struct Model {
    const Dialect *dialect;
    char *name, *path;
    gint64 output_tokens, patience_ms;
    PlainClient *client;
    gint64 deadline_us; /* 0: none */
    bool old_bound;
};

/* One try. */
typedef struct Try {
    Stream *stream;
    GError *error; /* of the stream */
} Try;

typedef enum Verdict { VERDICT_GOOD, VERDICT_AGAIN, VERDICT_AGAIN_NOW, VERDICT_END } Verdict;

const char *
model_reason_name(ModelReason reason)
{
    static const char *const names[MODEL_REASON_MAX] = {
        [MODEL_AWAY] = "model_away",  [MODEL_BUDGET] = "budget_exceeded",
        [MODEL_LOOP] = "loop_broken", [MODEL_CONTEXT] = "context_too_long",
        [MODEL_NONE] = "no_model",    [MODEL_REFUSED] = "model_refused",
        [MODEL_STOPPED] = "stopped",
    };

    return names[reason];
}

Model *
model_new(const ModelSpec *spec, GError **error)
{
    g_autoptr(Model) m = g_new0(Model, 1);
    const char *own = g_getenv("COOP_AGENT_URL");

    m->dialect = dialect_find(spec->dialect);
    if (m->dialect == NULL) {
        err_set(error, ERR_INVALID, "nobody here speaks '%s'", spec->dialect);
        return NULL;
    }
    const char *base = g_getenv(m->dialect->base_env);
    bool has_base = base != NULL && *base != '\0';
    if (!has_base && own == NULL) {
        err_set(error, ERR_UNAVAILABLE, "%s is not set", m->dialect->base_env);
        return NULL;
    }
    m->client = plain_client_new(has_base ? base : own, error);
    if (m->client == NULL)
        return NULL;
    g_autofree char *below = has_base ? plain_url_path(base) : g_strdup(m->dialect->base_path);
    m->path = g_strconcat(below, m->dialect->path, NULL);
    m->name = g_strdup(spec->name);
    m->output_tokens = spec->output_tokens;
    m->patience_ms = spec->patience_ms > 0 ? spec->patience_ms : MODEL_PATIENCE_MS;
    plain_client_set_cancel(m->client, spec->cancel_fd);
    return g_steal_pointer(&m);
}

void
model_free(Model *model)
{
    if (model == NULL)
        return;
    plain_client_free(model->client);
    g_free(model->name);
    g_free(model->path);
    g_free(model);
}

void
model_set_deadline(Model *model, gint64 deadline_us)
{
    model->deadline_us = deadline_us;
}

/* ---- what an answer means ---- */

static bool
speaks_of_context(const char *text)
{
    static const char *const signs[] = {"context length", "context_length",  "maximum context",
                                        "too long",       "too many tokens", "context window"};
    g_autofree char *lower = g_ascii_strdown(text, -1);

    for (size_t i = 0; i < G_N_ELEMENTS(signs); i++) {
        if (strstr(lower, signs[i]) != NULL)
            return true;
    }
    return false;
}

static ModelReason
reason_of(int status, const char *code, const char *text)
{
    if (status == 402 || g_strcmp0(code, "budget_exceeded") == 0 || g_strcmp0(code, "price_unknown") == 0)
        return MODEL_BUDGET;
    if (g_strcmp0(code, "loop_broken") == 0)
        return MODEL_LOOP;
    if (status == 401 || status == 403 || status == 404 || g_strcmp0(code, "upstream_auth") == 0)
        return MODEL_NONE;
    if (status == 413 || ((status == 400 || status == 0) && speaks_of_context(text)))
        return MODEL_CONTEXT;
    return MODEL_REFUSED;
}

static bool
may_retry(const PlainAnswer *answer)
{
    const char *told = http_head_find(&answer->head, "X-Should-Retry");

    return retry_is_status(answer->status) && g_strcmp0(told, "false") != 0;
}

static Verdict
judge_refusal(Model *m, const PlainAnswer *answer, ModelReason *ret_reason, GError **error)
{
    g_autoptr(Json) body = json_decode(answer->body->str, answer->body->len, NULL);
    const char *code = NULL, *text = NULL;

    (void)dialect_read_error(body, &code, &text); /* else the text as it is */
    if (text == NULL)
        text = answer->body->str;
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)MIN(strlen(text), (size_t)SAID_MAX));
    g_clear_error(error);
    err_set(error, ERR_UNAVAILABLE, "the model's answer is %d: %s", answer->status, g_strstrip(valid));
    if (answer->status == 400 && !m->old_bound && strstr(text, "max_completion_tokens") != NULL) {
        m->old_bound = true;
        return VERDICT_AGAIN_NOW;
    }
    if (may_retry(answer)) {
        *ret_reason = MODEL_AWAY;
        return VERDICT_AGAIN;
    }
    *ret_reason = reason_of(answer->status, code, text);
    return VERDICT_END;
}

/* Of a stream that came to its end. */
static Verdict
judge_stream(const Answer *answer, ModelReason *ret_reason, GError **error)
{
    if (answer->error_text != NULL) {
        *ret_reason = reason_of(0, answer->error_code, answer->error_text);
        err_set(error, ERR_UNAVAILABLE, "the model broke off: %s", answer->error_text);
        return *ret_reason == MODEL_REFUSED ? VERDICT_AGAIN : VERDICT_END;
    }
    if (answer->finished)
        return VERDICT_GOOD;
    err_set(error, ERR_UNAVAILABLE, "the model's answer is not whole");
    return VERDICT_AGAIN;
}

/* ---- asking ---- */

static bool
on_body(int status, const void *bytes, size_t n, void *ctx)
{
    Try *try = ctx;

    return stream_feed(try->stream, bytes, n, &try->error);
}

static char *
write_question(Model *m, const char *system, Json *messages, Json *tools)
{
    const Question question = {.model = m->name,
                               .system = system,
                               .messages = messages,
                               .tools = tools,
                               .output_tokens = m->output_tokens,
                               .old_bound = m->old_bound};
    g_autoptr(Json) body = m->dialect->render(&question);

    return json_encode(body);
}

static Verdict
try_once(Model *m, const char *body, Answer *answer, PlainAnswer *ret_plain, ModelReason *ret_reason,
         GError **error)
{
    g_autoptr(Stream) stream = stream_new(m->dialect, answer);
    Try try = {.stream = stream};
    const PlainCall call = {.method = "POST",
                            .path = m->path,
                            .headers = m->dialect->headers,
                            .body = body,
                            .body_len = strlen(body),
                            .head_ms = MODEL_HEAD_MS,
                            .stall_ms = MODEL_STALL_MS,
                            .deadline_us = m->deadline_us,
                            .on_body = on_body,
                            .ctx = &try};

    *ret_reason = MODEL_AWAY;
    bool came = plain_call(m->client, &call, ret_plain, error);
    if (try.error != NULL) {
        g_clear_error(error);
        g_propagate_error(error, try.error);
        return VERDICT_AGAIN;
    }
    if (!came && err_kind(*error) == ERR_CANCELLED) {
        *ret_reason = MODEL_STOPPED;
        return VERDICT_END;
    }
    /* All there was to say may have been said before a connection broke. */
    if (!came && !answer->finished)
        return VERDICT_AGAIN;
    g_clear_error(error);
    if (ret_plain->status / 100 != 2)
        return judge_refusal(m, ret_plain, ret_reason, error);
    return judge_stream(answer, ret_reason, error);
}

bool
model_ask(Model *model, const char *system, Json *messages, Json *tools, Answer *ret_answer,
          ModelReason *ret_reason, GError **error)
{
    g_autoptr(GError) failed = NULL;
    guint broken = 0;
    Retry retry;

    retry_init(&retry, model->patience_ms);
    if (model->deadline_us > 0)
        retry.give_up_us = MIN(retry.give_up_us, model->deadline_us);
    answer_init(ret_answer);
    for (;;) {
        g_autofree char *body = write_question(model, system, messages, tools);
        g_auto(PlainAnswer) plain = {0};
        Verdict verdict = try_once(model, body, ret_answer, &plain, ret_reason, &failed);

        if (verdict == VERDICT_GOOD)
            return true;
        answer_clear(ret_answer);
        answer_init(ret_answer);
        broken += plain.status / 100 == 2;
        if (verdict == VERDICT_END || broken >= MODEL_BROKEN_MAX)
            break;
        const char *after = plain.status != 0 ? http_head_find(&plain.head, "Retry-After") : NULL;
        if (verdict == VERDICT_AGAIN && !retry_wait(&retry, model->client, after, &failed)) {
            *ret_reason = err_kind(failed) == ERR_CANCELLED ? MODEL_STOPPED : MODEL_AWAY;
            break;
        }
        g_clear_error(&failed);
    }
    g_propagate_error(error, g_steal_pointer(&failed));
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/dialect.h"
#include "agent/talk.h"
#include "fuzz.h"

/* What a model streams to coop-agent.  The first byte says which dialect it is; the rest is the stream. */

typedef struct Reading {
    Stream *stream;
    bool ok;
} Reading;

static bool
feed(void *ctx, const guint8 *bytes, size_t n)
{
    Reading *r = ctx;

    r->ok = stream_feed(r->stream, bytes, n, NULL);
    return r->ok;
}

static void
show(GString *out, const Answer *a)
{
    g_string_append_printf(out, "%s|%s|%d%d|%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT "|%s", a->text->str,
                           a->thought->str, a->finished, a->cut_short, a->input_tokens, a->output_tokens,
                           a->error_text != NULL ? a->error_text : "-");
    for (guint i = 0; i < a->calls->len; i++) {
        const AnswerCall *call = g_ptr_array_index(a->calls, i);

        g_string_append_printf(out, "|%s %s %s", call->id != NULL ? call->id : "-",
                               call->name != NULL ? call->name : "-", call->arguments->str);
    }
}

/* What was heard can be asked with again, in both dialects. */
static void
check_asking(const Answer *answer)
{
    static const Dialect *const dialects[] = {&dialect_openai, &dialect_anthropic};
    const Brief brief = {.execution_id = "e"};
    TalkFound found;
    g_autoptr(Talk) talk = talk_open(NULL, &brief, &found);

    for (guint i = 0; i < answer->calls->len; i++) {
        AnswerCall *call = g_ptr_array_index(answer->calls, i);

        call->id = call->id != NULL ? call->id : g_strdup("id");
        call->name = call->name != NULL ? call->name : g_strdup("name");
    }
    talk_add_user(talk, "goal");
    talk_add_answer(talk, answer);
    for (size_t i = 0; i < G_N_ELEMENTS(dialects); i++) {
        g_autoptr(Json) body = dialects[i]->render(
            &(Question){.model = "m", .system = "s", .messages = talk_messages(talk), .output_tokens = 1});

        g_assert(body != NULL);
        g_assert(json_array_size(json_object_get(body, "messages")) >= 1);
    }
}

static bool
read_all(const guint8 *data, size_t n, size_t cut, GString *out)
{
    const Dialect *dialect = n > 0 && data[0] % 2 == 0 ? &dialect_openai : &dialect_anthropic;
    g_auto(Answer) answer = {0};

    answer_init(&answer);
    g_autoptr(Stream) stream = stream_new(dialect, &answer);
    Reading r = {.stream = stream, .ok = true};
    size_t skip = MIN(n, (size_t)1);
    (void)fuzz_feed(data + skip, n - skip, cut == FUZZ_EACH_BYTE ? cut : MIN(cut, n - skip), feed, &r);
    g_assert(answer.bytes <= ANSWER_BYTES_MAX && answer.calls->len <= ANSWER_CALLS_MAX);
    if (r.ok) {
        show(out, &answer);
        check_asking(&answer);
    } else {
        g_assert(!stream_feed(stream, "\n\n", 2, NULL));
    }
    return r.ok;
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    g_autoptr(GString) whole = g_string_new(NULL);
    g_autoptr(GString) pieces = g_string_new(NULL);
    bool ok = read_all(data, n, n, whole);

    g_assert(read_all(data, n, cut, pieces) == ok);
    g_assert(!ok || g_string_equal(whole, pieces));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "brain/recording.h"
#include "brain/script.h"
#include "brain/usage.h"
#include "fuzz.h"

/* The input is a script; if it is one, it answers in every dialect, and each answer is one that
 * the gate would pass on. */

static const Route routes[] = {
    {ROUTE_CHAT, DIALECT_OPENAI, "POST", "/chat", "/chat", true, true, SHAPE_CHAT},
    {ROUTE_RESPONSES, DIALECT_OPENAI, "POST", "/responses", "/responses", true, true, SHAPE_RESPONSES},
    {ROUTE_MESSAGES, DIALECT_ANTHROPIC, "POST", "/messages", "/messages", true, true, SHAPE_MESSAGES},
};

static Json *
make_body(bool stream)
{
    return json_pack("{s:s, s:b, s:s, s:s, s:[{s:s, s:s}]}", "model", "m", "stream", (int)stream, "input",
                     "hello", "system", "be kind", "messages", "role", "user", "content", "hello");
}

static void
check_tape(const Route *route, const Tape *tape)
{
    g_autoptr(UsageReader) reader = usage_reader_new(route->dialect, tape->is_stream);
    g_autoptr(GString) all = g_string_new(NULL);

    for (guint i = 0; i < tape->pieces->len; i++) {
        size_t n;
        const char *bytes = g_bytes_get_data(g_array_index(tape->pieces, TapePiece, i).bytes, &n);

        g_assert(usage_reader_feed(reader, bytes, n, NULL));
        g_string_append_len(all, bytes, (gssize)n);
    }
    if (tape->is_cut)
        return;
    if (tape->is_stream) {
        g_assert(usage_reader_is_complete(reader));
        return;
    }
    g_autoptr(Json) object = json_decode(all->str, all->len, NULL);
    g_assert(json_is_object(object));
}

/* What is written down is what was said. */
static void
check_recording(const Tape *tape)
{
    const RecordingLabel label = {.provider = "p", .model = "m", .path = "/p", .request = "{}"};
    g_autofree char *text = recording_encode(tape, &label);
    g_autoptr(Tape) again = recording_decode(text, strlen(text), NULL);

    g_assert(again != NULL && again->pieces->len == tape->pieces->len);
    for (guint i = 0; i < tape->pieces->len; i++)
        g_assert(g_bytes_equal(g_array_index(tape->pieces, TapePiece, i).bytes,
                               g_array_index(again->pieces, TapePiece, i).bytes));
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    static const guint8 digest[ASK_DIGEST_LEN];
    if (cut != n) /* it is read whole */
        return;
    g_autofree char *text = g_strndup((const char *)data, n);
    g_autoptr(BrainScript) script = brain_script_new(text, strlen(text), NULL);

    if (script == NULL)
        return;
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(routes); i++) {
        bool stream = i % 2 == 0;
        Ask ask = {.route = &routes[i / 2], .body = make_body(stream), .stream = stream, .bytes = 100};
        const ScriptCall call = {
            .ask = &ask, .model = "m", .box = "b", .agent = "coder-1", .task = NULL, .digest = digest};
        g_autoptr(Tape) tape = brain_script_answer(script, &call);

        check_tape(ask.route, tape);
        check_recording(tape);
        json_decref(ask.body);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/answer.h"

#include <string.h>

#include "base/err.h"

static void
call_free(gpointer data)
{
    AnswerCall *call = data;

    g_free(call->id);
    g_free(call->name);
    g_string_free(call->arguments, TRUE);
    g_free(call);
}

void
answer_init(Answer *answer)
{
    *answer = (Answer){.text = g_string_new(NULL),
                       .thought = g_string_new(NULL),
                       .calls = g_ptr_array_new_with_free_func(call_free),
                       .input_tokens = -1,
                       .output_tokens = -1,
                       .cached_tokens = -1};
}

void
answer_clear(Answer *answer)
{
    if (answer->text == NULL)
        return;
    g_string_free(answer->text, TRUE);
    g_string_free(answer->thought, TRUE);
    g_ptr_array_unref(answer->calls);
    g_free(answer->error_code);
    g_free(answer->error_text);
    *answer = (Answer){0};
}

static bool
append(Answer *answer, GString *to, const char *text, GError **error)
{
    size_t n = text != NULL ? strlen(text) : 0;

    if (n > ANSWER_BYTES_MAX - answer->bytes)
        return err_set(error, ERR_LIMIT, "the model's answer is longer than %d bytes", ANSWER_BYTES_MAX);
    answer->bytes += n;
    g_string_append_len(to, text != NULL ? text : "", (gssize)n);
    return true;
}

bool
answer_add_text(Answer *answer, const char *text, GError **error)
{
    return append(answer, answer->text, text, error);
}

bool
answer_add_thought(Answer *answer, const char *text, GError **error)
{
    return append(answer, answer->thought, text, error);
}

static AnswerCall *
find_call(const Answer *answer, const AnswerPiece *piece)
{
    if (piece->index < 0)
        return piece->id == NULL && answer->calls->len > 0
                   ? g_ptr_array_index(answer->calls, answer->calls->len - 1)
                   : NULL;
    for (guint i = 0; i < answer->calls->len; i++) {
        AnswerCall *call = g_ptr_array_index(answer->calls, i);

        if (call->index == piece->index)
            return call;
    }
    return NULL;
}

/* Some servers repeat the id or the name in every piece; others send it in pieces never. */
static void
set_once(char **to, const char *text)
{
    if (*to == NULL && text != NULL && *text != '\0')
        *to = g_strdup(text);
}

bool
answer_add_call(Answer *answer, const AnswerPiece *piece, GError **error)
{
    AnswerCall *call = find_call(answer, piece);

    if (call == NULL) {
        if (answer->calls->len == ANSWER_CALLS_MAX)
            return err_set(error, ERR_LIMIT, "the model calls more than %d tools at once", ANSWER_CALLS_MAX);
        call = g_new0(AnswerCall, 1);
        call->index = piece->index;
        call->arguments = g_string_new(NULL);
        g_ptr_array_add(answer->calls, call);
    }
    set_once(&call->id, piece->id);
    set_once(&call->name, piece->name);
    return append(answer, call->arguments, piece->arguments, error);
}

void
answer_set_error(Answer *answer, const char *code, const char *text)
{
    if (answer->error_text != NULL)
        return;
    answer->error_code = g_strdup(code);
    answer->error_text = g_strdup(text != NULL ? text : "an error without words");
}

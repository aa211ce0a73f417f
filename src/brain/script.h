/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "brain/ask.h"
#include "brain/tape.h"

/* A model that says what a file tells it to, for tests and demonstrations:
 *
 *   conversations:
 *     - role: "coder*"            the agent who asks            (all of these are optional;
 *       model: "gpt-*"            the model asked for            the first conversation whose
 *       system: "tests"           a regex in the system prompt   conditions hold and that has
 *       match: "(?i)hello (\\w+)" a regex in the last message    the turn answers)
 *       asked: "(?i)factorial"    a regex in the first message of the user
 *       last: user                or tool: whose message that is
 *       turn: 2                   the first of `turns` answers this turn; else 1
 *       turns:                    answers, by how often the model has spoken before
 *         - text: "Hello {{match.1}}"
 *           tools: [{name: write_file, arguments: '{"path": "a", "text": "{{last_user}}"}'}]
 *           usage: {input: 10, output: 5, cached: 0}
 *           first_ms: 100         before the first byte
 *           delay_ms: 20          between pieces
 *           chunk: 8              characters in a piece
 *           cut: true             breaks off in the middle
 *           error: {status: 429, message: "too fast"}
 *
 * Placeholders: {{last}} {{last_user}} {{last_tool}} {{system}} {{model}} {{turn}} {{agent}}
 * {{task}} {{box}} {{match}} {{match.1}} … {{match.9}}. */
typedef struct BrainScript BrainScript;

enum {
    SCRIPT_CONVERSATIONS_MAX = 1000,
    SCRIPT_TURNS_MAX = 1000,
    SCRIPT_TEXT_MAX = 256 * 1024,
    SCRIPT_CHUNK = 16,
    SCRIPT_SAY_MAX = 4 * 1024 * 1024, /* of one answer, placeholders filled in */
};

BrainScript *brain_script_new(const char *yaml, size_t n, GError **error);
BrainScript *brain_script_ref(BrainScript *script);
void brain_script_unref(BrainScript *script);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BrainScript, brain_script_unref)

typedef struct ScriptCall {
    Ask *ask;
    const char *model, *box, *agent, *task; /* NULL: none; box is always there */
    const guint8 *digest;                   /* ASK_DIGEST_LEN bytes: the ids in the answer */
} ScriptCall;

/* Never NULL: what the script has no answer for is an error of the dialect. */
Tape *brain_script_answer(const BrainScript *script, const ScriptCall *call);

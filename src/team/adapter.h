/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* How a command-line agent that is not ours is run: templates/agents, or AGENTS_DIR/NAME.yaml.
 *
 *     description: Claude Code
 *     dialect: anthropic            # of the models it speaks; else openai
 *     ready: command -v claude      # in the box, by the shell; where it fails `setup` is run
 *     setup: npm install …
 *     command: [claude, -p, "{prompt}", --output-format, stream-json]
 *     env: {ANTHROPIC_MODEL: "{model}"}
 *     files:                        # in the work tree's parent, before it starts
 *       - path: opencode.json
 *         content: "…"
 *     output: json                  # a line is an object; "text": a line is something said
 *     events:                       # the first rule that fits makes the event
 *       - where: {type: assistant}  # members of the line, by dotted path
 *         each: message.content     # optional: for every element of that list
 *         of: {type: text}          # members of the element
 *         kind: said                # thought, said, tool, usage, summary
 *         text: text                # members of the event, each by its path in the element, or the line
 *
 * Placeholders in command, env and files: {prompt} {system} {goal} {model} {provider} {workdir} {home}
 * {execution}.  Everything in the file is known or refused. */
typedef struct Adapter Adapter;

enum {
    ADAPTER_FILE_MAX = 64 * 1024,
    ADAPTER_WORDS_MAX = 64,
    ADAPTER_FILES_MAX = 8,
    ADAPTER_RULES_MAX = 32,
    ADAPTER_CONDITIONS_MAX = 8,
    ADAPTER_LINE_MAX = 256 * 1024, /* bytes of a line of output; longer ones are passed over */
    ADAPTER_SUMMARY_MAX = 8192,
};

/* The error names the file and the line. */
Adapter *adapter_parse(const char *name, const char *text, size_t len, GError **error);
void adapter_free(Adapter *adapter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Adapter, adapter_free)

/* Those that come with the program, and over them all files of the folder (NULL: none): name -> Adapter.  A
 * broken one is left out, and logged. */
GHashTable *adapters_load(const char *folder);

const char *adapter_name(const Adapter *adapter);
const char *adapter_dialect(const Adapter *adapter);
const char *adapter_ready(const Adapter *adapter); /* NULL: nothing to look for */
const char *adapter_setup(const Adapter *adapter); /* NULL: nothing to do */

/* What the placeholders stand for. */
typedef struct AdapterWords {
    const char *prompt, *system, *goal, *model, *provider, *workdir, *home, *execution;
} AdapterWords;
char **adapter_argv(const Adapter *adapter, const AdapterWords *words);
char **adapter_env(const Adapter *adapter, const AdapterWords *words); /* "NAME=value" */
/* The i-th file; false: there is none.  `*ret_path` is the adapter's, `*ret_content` the caller's. */
bool adapter_file(const Adapter *adapter, guint i, const AdapterWords *words, const char **ret_path,
                  char **ret_content);

/* ---- its output ---- */

typedef struct AdapterLines AdapterLines;
AdapterLines *adapter_lines_new(const Adapter *adapter);
void adapter_lines_free(AdapterLines *lines);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AdapterLines, adapter_lines_free)
/* Bytes of its standard output; whole lines become events, which are appended to `events`. */
void adapter_lines_feed(AdapterLines *lines, const void *bytes, size_t n, Json *events);
void adapter_lines_gap(AdapterLines *lines); /* some are missing here */
void adapter_lines_end(AdapterLines *lines, Json *events);
/* Bytes behind the last whole line. */
size_t adapter_lines_rest(const AdapterLines *lines);
/* The last that was said, or summed up; "": nothing. */
const char *adapter_lines_summary(const AdapterLines *lines);
/* Of such words: "approve" or "changes", when that is all that their last line says; NULL: neither. */
const char *adapter_verdict(const char *summary);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "agent/brief.h"
#include "agent/face.h"
#include "json/json.h"

/* What a model can do.  A tool answers with text; what goes wrong is text too, so that the model can do
 * better: ERR_INVALID says that the call was malformed, other kinds that it did not work.  Only ERR_CANCELLED
 * ends the session. */

enum {
    TOOL_RESULT_MAX = 32 * 1024,     /* bytes that a model gets to see */
    TOOL_FILE_MAX = 8 * 1024 * 1024, /* of a file that is read or written */
    TOOL_SHELL_MS = 120 * 1000,      /* where the call says nothing */
    TOOL_SHELL_MAX_MS = 1800 * 1000,
    TOOL_CHECK_MS = 900 * 1000,
    TOOL_GIT_MS = 120 * 1000,
    TOOL_FINDINGS_MAX = 100,
    TOOL_SUMMARY_MAX = 8192,
    TOOL_MESSAGE_MAX = 8192, /* of a room, of a question */
};

/* How the session ends: what `done` was called with. */
typedef struct Ending {
    bool is_set;
    char *outcome; /* "done", "failed" */
    char *reason;  /* of a failure that the program itself met; NULL: none */
    char *summary, *verdict;
    Json *findings;
} Ending;
void ending_clear(Ending *ending);
/* The report of docs/design/18-team.md. */
Json *ending_report(const Ending *ending);

/* What tools work on. */
typedef struct Work {
    const Brief *brief;
    int root_fd; /* of the work tree */
    Face *face;
    int cancel_fd;
    bool echo;           /* what commands print is printed too */
    gint64 deadline_us;  /* of the session */
    char *question_path; /* a file with the question that is open; NULL: none is kept */
    Ending ending;
} Work;

typedef struct ToolResult {
    GString *text;
    GString *err;  /* what of it commands said on standard error; NULL: nobody asks */
    int exit_code; /* -1: there is none */
} ToolResult;

typedef struct Tool {
    const char *name;
    const char *description;
    const char *parameters; /* JSON schema of the arguments */
    enum {
        TOOL_SLOW = 1 << 0,       /* may take long: what happened before is told first */
        TOOL_REPEATABLE = 1 << 1, /* a second time changes nothing */
    } flags;
    bool (*run)(Work *work, Json *arguments, ToolResult *result, GError **error);
} Tool;

extern const Tool tool_shell, tool_test, tool_commit;
extern const Tool tool_read, tool_write, tool_edit, tool_search;
extern const Tool tool_room, tool_ask, tool_done;

/* Those of the role, as the dialects want them. */
Json *tools_describe(const Brief *brief);
/* `arguments` is what the model wrote.  The result is never empty and at most TOOL_RESULT_MAX long;
 * `*ret_malformed`: the call was no good.  False with ERR_CANCELLED. */
bool tool_call(Work *work, const char *name, const char *arguments, ToolResult *result, bool *ret_malformed,
               GError **error);

bool tool_is_slow(const char *name);
bool tool_is_repeatable(const char *name);

/* The path below the work tree that a model means; NULL with ERR_INVALID: it leads elsewhere. */
char *tool_path(const Work *work, const char *path, GError **error);
/* A whole file as text; NULL with an error. */
char *tool_load(const Work *work, const char *path, size_t *ret_len, GError **error);
/* The folders of `path` are made; its mode stays as it was. */
bool tool_store(const Work *work, const char *path, const char *text, size_t len, GError **error);

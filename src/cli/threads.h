/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/forge-call.h"

/* What pull requests and issues have in common on the command line. */

enum { THREAD_LIMIT = 30, THREAD_LIMIT_MAX = 1000 };

#define THREAD_LS_OPTIONS                                                                                    \
    {.name = "state", .value = "STATE", .help = "open, closed or all", .choices = thread_states},            \
        {.name = "limit", .value = "N", .help = "at most so many; 30 if not named"}, REPO_OPTION
#define THREAD_BODY_OPTION                                                                                   \
    {                                                                                                        \
        .name = "body", .letter = 'b', .value = "TEXT", .help = "the text; '-' reads it from the input"      \
    }
#define ONE_THREAD .args = "NUMBER", .args_min = 1, .args_max = 1, .settings = CLI_SETTINGS_CLIENT

extern const char *const thread_states[];

/* The list behind `kind` ("pulls", "issues"), filtered by the options, `query` (may be "") and `keep`. */
ExitCode threads_fetch(Cli *cli, const char *kind, const char *query, ForgeKeep keep, Json **ret_list);
/* A row of the table for people. */
Json *threads_row(const Json *thread);
/* What somebody wrote, below the fields; "": nothing. */
void threads_show_text(Out *out, const char *text);

/* --body; NULL after a message, if it is missing and `needed`. */
char *threads_read_body(Cli *cli, bool needed);

/* coop pr comment, coop issue comment */
ExitCode threads_run_comment(Cli *cli);

typedef struct ThreadsCall {
    const char *method, *kind; /* "pulls", "issues" */
    const char *rest;          /* behind the number */
    const Json *body;
    const char *said; /* of it, when it is done, before its name */
} ThreadsCall;
ExitCode threads_send(Cli *cli, const ThreadsCall *what);

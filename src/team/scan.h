/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* What programs find in a change: which are asked about which files, and what they said.  Pure functions;
 * crew.h runs them, in a box of the template `reviewer`.
 *
 * What a repository brings cannot silence them: their configuration is ours, and marks in the code that
 * switch a rule off (nosec, eslint-disable, shellcheck disable, cppcheck-suppress, allowlist secret) do not
 * count.  Only what such a mark silences on lines that the change leaves as they were is forgiven: who wrote
 * those has decided it before, and who changes one of them, or writes new ones below a mark, has not. */

enum {
    SCAN_PATHS_MAX = 500, /* files that one scan is given */
    SCAN_ARGV_BYTES_MAX = 64 * 1024,
    SCAN_READ_MAX = 5000,      /* findings of one scan that are looked at */
    SCAN_FINDINGS_MAX = 100,   /* and that are told; what is more is counted */
    SCAN_OUTPUT_MAX = 4 << 20, /* bytes that a program may say */
    SCAN_TEXT_MAX = 500,       /* bytes of one finding's words */
};

typedef enum ScanSeverity { SCAN_NOTE, SCAN_WARNING, SCAN_ERROR, SCAN_SEVERITY_MAX } ScanSeverity;
const char *scan_severity_name(ScanSeverity severity); /* note, warning, error */

typedef struct ScanCommand {
    const char *name;    /* bandit, eslint, shellcheck, cppcheck, secrets */
    const char *program; /* what of it a template may lack */
    char **argv;         /* in the top folder of the tree; no file name goes through a shell */
    char **marked;       /* the same, but marks in the code count */
    GPtrArray *paths;    /* files of the change that it is asked about */
    bool truncated;      /* there are more */
} ScanCommand;
void scan_command_free(ScanCommand *command);

/* ScanCommand, those that have something to look at.  `paths`: files that the change adds or changes. */
GPtrArray *scan_plan(const char *const *paths);

typedef struct ScanFinding {
    char *path;
    gint64 line, last; /* 0: of the whole file */
    ScanSeverity severity;
    char *rule;
    char *text; /* UTF-8, one line */
} ScanFinding;

/* ---- scan-read.c ---- */

typedef struct ScanResult {
    GPtrArray *findings; /* ScanFinding */
    guint counts[SCAN_SEVERITY_MAX];
} ScanResult;
void scan_result_free(ScanResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ScanResult, scan_result_free)

/* What it wrote to its standard output.  ERR_INVALID: that is not how it answers, so nothing was found out.
 * Findings in files that it was not asked about are dropped; a file that it has not looked at, where it
 * tells, is an error. */
ScanResult *scan_read(const ScanCommand *command, const char *output, size_t n, GError **error);
/* No errors among them. */
bool scan_passed(const ScanResult *result);
/* [{"path", "line", "severity", "rule", "body"}] */
Json *scan_findings_json(const char *name, const ScanResult *result);

/* ---- scan-marks.c ---- */

/* Which lines a change has written. */
typedef struct ScanLines ScanLines;
ScanLines *scan_lines_new(void);
void scan_lines_free(ScanLines *lines);
/* `patch`: from its first "@@".  A file that was never added is written anew, all of it; so is one in which
 * the change has written a mark, because that may silence any line, or what only some programs take for the
 * end of one. */
void scan_lines_add(ScanLines *lines, const char *path, const char *patch, size_t n);
bool scan_lines_have(const ScanLines *lines, const char *path, gint64 first, gint64 last);

/* Something in it may have been silenced by a mark of the base. */
bool scan_may_forgive(const ScanResult *result);
/* Drops what is not in `marked` and not on lines that were written. */
void scan_forgive(ScanResult *result, const ScanResult *marked, const ScanLines *written);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* What programs find in a change: which are asked about which files, and what they said.  Pure functions;
 * crew.h runs them, in a box of the template `reviewer`.
 *
 * What a repository brings cannot silence them: their configuration is ours, and marks in the code that
 * would switch a rule off do not count where the program lets us say so. */

enum {
    SCAN_PATHS_MAX = 500, /* files that one scan is given */
    SCAN_ARGV_BYTES_MAX = 64 * 1024,
    SCAN_FINDINGS_MAX = 100,   /* of one scan; what is more is counted */
    SCAN_OUTPUT_MAX = 4 << 20, /* bytes that a program may say */
    SCAN_TEXT_MAX = 500,       /* bytes of one finding's words */
};

typedef enum ScanSeverity { SCAN_NOTE, SCAN_WARNING, SCAN_ERROR, SCAN_SEVERITY_MAX } ScanSeverity;
const char *scan_severity_name(ScanSeverity severity); /* note, warning, error */

typedef struct ScanCommand {
    const char *name; /* bandit, eslint, shellcheck, cppcheck, secrets */
    char **argv;      /* in the top folder of the tree; no file name goes through a shell */
    guint files;      /* of the change, that it is asked about */
    bool truncated;   /* there are more */
} ScanCommand;
void scan_command_free(ScanCommand *command);

/* ScanCommand, those that have something to look at.  `paths`: files that the change adds or changes. */
GPtrArray *scan_plan(const char *const *paths);

typedef struct ScanFinding {
    char *path;
    gint64 line; /* 0: of the whole file */
    ScanSeverity severity;
    char *rule;
    char *text; /* UTF-8, one line */
} ScanFinding;

typedef struct ScanResult {
    GPtrArray *findings; /* ScanFinding */
    guint counts[SCAN_SEVERITY_MAX];
} ScanResult;
void scan_result_free(ScanResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ScanResult, scan_result_free)

/* What `name` wrote to its standard output.  ERR_INVALID: that is not how it answers, so nothing was found
 * out.  Findings in files that are not among `paths` are dropped. */
ScanResult *
scan_read(const char *name, const char *const *paths, const char *output, size_t n, GError **error);
/* No errors among them. */
bool scan_passed(const ScanResult *result);
/* [{"path", "line", "severity", "rule", "body"}] */
Json *scan_findings_json(const char *name, const ScanResult *result);

/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of agents as comments on lines: only lines that the change shows can have one. */
#include <stdlib.h>
#include <string.h>

#include "forge/diff.h"
#include "forge/review.h"
#include "team/flow-private.h"

enum { BODY_MAX = 4096 };

/* The hunks' heads: "@@ -a,b +c,d @@". */
static bool
patch_shows(const char *patch, gint64 line)
{
    for (const char *at = patch; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
        at += *at == '\n';
        const char *plus = strncmp(at, "@@ -", 4) == 0 ? strchr(at, '+') : NULL;
        char *end = NULL;
        gint64 first = plus != NULL ? strtoll(plus + 1, &end, 10) : 0;
        gint64 n = end != NULL && *end == ',' ? strtoll(end + 1, NULL, 10) : 1;

        if (plus != NULL && line >= first && line < first + n)
            return true;
    }
    return false;
}

static bool
is_shown(const GPtrArray *files, const char *path, gint64 line)
{
    for (guint i = 0; path != NULL && line > 0 && files != NULL && i < files->len; i++) {
        const DiffFile *file = files->pdata[i];

        if (strcmp(file->path, path) == 0)
            return file->patch != NULL && patch_shows(file->patch->str, line);
    }
    return false;
}

static char *
words_of(const Json *finding)
{
    const char *severity = row_text(finding, "severity"), *body = row_text(finding, "body");
    g_autofree char *whole = severity != NULL ? g_strdup_printf("**%s:** %s", severity, body)
                                              : g_strdup(body != NULL ? body : "");

    return flow_cut(whole, BODY_MAX);
}

Json *
flow_lines(const Json *findings, const GPtrArray *files, GString *rest)
{
    Json *lines = json_array();
    size_t i;
    const Json *finding;

    json_array_foreach(findings, i, finding)
    {
        const char *path = row_text(finding, "path");
        gint64 line = row_int(finding, "line");
        g_autofree char *words = words_of(finding);

        if (words[0] == '\0')
            continue;
        if (json_array_size(lines) < REVIEW_LINES_MAX && is_shown(files, path, line))
            json_array_append_new(
                lines, json_pack("{s:s, s:I, s:s}", "path", path, "line", (json_int_t)line, "body", words));
        else if (path != NULL)
            g_string_append_printf(rest, "\n- `%s`, line %" G_GINT64_FORMAT ": %s", path, line, words);
        else
            g_string_append_printf(rest, "\n- %s", words);
    }
    return lines;
}

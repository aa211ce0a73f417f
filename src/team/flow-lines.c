/* SPDX-License-Identifier: Apache-2.0 */
/* Findings, of agents and of scanners, as comments on lines: only lines that the change shows can have one.
 */
#include <stdlib.h>
#include <string.h>

#include "forge/diff.h"
#include "forge/markdown.h"
#include "forge/review.h"
#include "team/flow-private.h"

enum {
    BODY_MAX = 4096,
    REST_MAX = 32 * 1024, /* bytes of what is on no line; a review's body has a bound */
    SCANNED_MAX = 40,     /* findings of scanners in one review; the check runs have all */
};

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
    const char *seen = row_text(finding, "rule") != NULL ? " (a scan by Coop)" : "";
    g_autofree char *whole = severity != NULL ? g_strdup_printf("**%s:** %s%s", severity, body, seen)
                                              : g_strdup(body != NULL ? body : "");

    return flow_cut(whole, BODY_MAX);
}

/* It stands between backticks, on one line. */
static char *
dup_name(const char *path)
{
    char *name = g_strdup(path);

    for (char *p = name; *p != '\0'; p++) {
        if (*p == '`' || g_ascii_iscntrl(*p))
            *p = '?';
    }
    return name;
}

static void
add(Json *lines, const Json *finding, const GPtrArray *files, GString *rest)
{
    const char *path = row_text(finding, "path");
    gint64 line = row_int(finding, "line");
    g_autofree char *words = words_of(finding);

    if (words[0] == '\0')
        return;
    if (json_array_size(lines) < REVIEW_LINES_MAX && is_shown(files, path, line)) {
        g_autofree char *tame = markdown_tame(words);

        json_array_append_new(
            lines, json_pack("{s:s, s:I, s:s}", "path", path, "line", (json_int_t)line, "body", tame));
    } else if (rest->len + strlen(words) + REVIEW_PATH_MAX > REST_MAX) {
        return;
    } else if (path != NULL) {
        g_autofree char *name = dup_name(path);

        g_string_append_printf(rest, "\n- `%s`, line %" G_GINT64_FORMAT ": %s", name, line, words);
    } else {
        g_string_append_printf(rest, "\n- %s", words);
    }
}

Json *
flow_lines(const Json *findings, const GPtrArray *files, GString *rest)
{
    Json *lines = json_array();
    size_t i;
    const Json *finding;

    json_array_foreach(findings, i, finding) add(lines, finding, files, rest);
    return lines;
}

/* ---- scanners ---- */

/* The line moves with the code around it. */
static char *
key_of(const Json *finding)
{
    return g_strdup_printf("%s\n%s", row_text(finding, "path"), row_text(finding, "body"));
}

typedef void (*ScannedFunc)(const Json *finding, void *data);

static void
each_scanned(const Json *agent, ScannedFunc then, void *data)
{
    const Json *checks = json_object_get(json_object_get(agent, "result"), "checks"), *check, *finding;
    size_t i, k;

    json_array_foreach(checks, i, check)
    {
        json_array_foreach(json_object_get(check, "findings"), k, finding)
        {
            if (!flow_is(finding, "severity", "note"))
                then(finding, data);
        }
    }
}

static void
remember(const Json *finding, void *data)
{
    g_hash_table_add(data, key_of(finding));
}

/* What earlier reviews of the task have said. */
static GHashTable *
said_before(const Json *agents, const Json *now)
{
    GHashTable *said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    size_t i;
    const Json *agent;

    json_array_foreach(agents, i, agent)
    {
        if (agent != now && flow_is(agent, "kind", "review") && row_int(agent, "review_id") > 0)
            each_scanned(agent, remember, said);
    }
    return said;
}

typedef struct Scanned {
    Json *lines;
    const GPtrArray *files;
    GString *rest;
    GHashTable *said;
    guint n, again, more;
} Scanned;

static void
say(const Json *finding, void *data)
{
    Scanned *s = data;
    g_autofree char *key = key_of(finding);

    if (g_hash_table_contains(s->said, key))
        s->again++;
    else if (s->n >= SCANNED_MAX)
        s->more++;
    else
        add(s->lines, finding, s->files, s->rest);
    s->n += !g_hash_table_contains(s->said, key);
}

static void
say_missing(const Json *agent, GString *rest)
{
    const Json *checks = json_object_get(json_object_get(agent, "result"), "checks"), *check;
    size_t i;

    json_array_foreach(checks, i, check)
    {
        const char *why = row_text(check, "skipped");

        if (why != NULL)
            g_string_append_printf(rest, "\n\nNot scanned: %s.", why);
    }
}

void
flow_lines_scanned(Json *lines, const Json *agents, const Json *agent, const GPtrArray *files, GString *rest)
{
    g_autoptr(GHashTable) said = said_before(agents, agent);
    Scanned s = {.lines = lines, .files = files, .rest = rest, .said = said};

    each_scanned(agent, say, &s);
    say_missing(agent, rest);
    if (s.again > 0)
        g_string_append_printf(rest, "\n\nStill there of what scanners said before: %u.", s.again);
    if (s.more > 0)
        g_string_append_printf(rest, "\n\nScanners found %u more: the check runs have all of it.", s.more);
}

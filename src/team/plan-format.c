/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/row.h"
#include "team/plan.h"

/* As a Markdown quotation, so that headings in it are not ours. */
static void
put_quoted(GString *out, const char *indent, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (size_t i = 0; lines[i] != NULL; i++)
        g_string_append_printf(out, "%s>%s%s\n", indent, lines[i][0] != '\0' ? " " : "", lines[i]);
}

/* Between one backtick more than the text has in a row. */
static void
put_code(GString *out, const char *text)
{
    size_t longest = 0, n = 0;

    for (const char *p = text; *p != '\0'; p++) {
        n = *p == '`' ? n + 1 : 0;
        longest = MAX(longest, n);
    }
    g_autofree char *fence = g_strnfill(longest + 1, '`');

    g_string_append_printf(out, longest > 0 ? "%s %s %s" : "%s%s%s", fence, text, fence);
}

static void
put_codes(GString *out, const char *label, Json *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        g_string_append(out, i == 0 ? label : ", ");
        put_code(out, json_string_value(json_array_get(list, i)));
    }
    if (json_array_size(list) > 0)
        g_string_append_c(out, '\n');
}

static void
put_features(GString *out, Json *features)
{
    g_string_append(out, "\n## Features\n\n");
    for (size_t i = 0; i < json_array_size(features); i++) {
        Json *feature = json_array_get(features, i), *checks = json_object_get(feature, "acceptance");

        g_string_append_printf(out, "- **%s**: %s\n", row_text(feature, "name"), row_text(feature, "title"));
        for (size_t k = 0; k < json_array_size(checks); k++) {
            Json *check = json_array_get(checks, k);

            g_string_append_printf(out, "  - %s: ", row_text(check, "name"));
            put_code(out, row_text(check, "run"));
            g_string_append_c(out, '\n');
        }
    }
}

static void
put_steps(GString *out, Json *steps)
{
    g_string_append(out, "\n## Steps\n\n");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        Json *step = json_array_get(steps, i);
        const char *special = row_text(step, "specialization"), *details = row_text(step, "details");

        g_string_append_printf(out, "%zu. **%s** (%s%s%s): %s\n", i + 1, row_text(step, "name"),
                               row_text(step, "role"), special != NULL ? ", " : "",
                               special != NULL ? special : "", row_text(step, "title"));
        put_codes(out, "   - after ", json_object_get(step, "depends"));
        put_codes(out, "   - files ", json_object_get(step, "files"));
        if (details[0] != '\0') {
            g_string_append_c(out, '\n');
            put_quoted(out, "   ", details);
        }
    }
}

char *
plan_format(Json *plan, const char *request)
{
    GString *out = g_string_new(NULL);
    Json *risks = json_object_get(plan, "risks");
    const char *summary = row_text(plan, "summary");

    g_string_append_printf(out, "# Plan: %s\n\n", row_text(plan, "project"));
    if (request != NULL) {
        put_quoted(out, "", request);
        g_string_append_c(out, '\n');
    }
    if (summary[0] != '\0')
        g_string_append_printf(out, "%s\n\n", summary);
    g_string_append_printf(out, "Estimated time: %" JSON_INTEGER_FORMAT " min\n",
                           json_integer_value(json_object_get(plan, "minutes")));
    put_features(out, json_object_get(plan, "features"));
    put_steps(out, json_object_get(plan, "steps"));
    if (json_array_size(risks) > 0)
        g_string_append(out, "\n## Risks\n\n");
    for (size_t i = 0; i < json_array_size(risks); i++)
        g_string_append_printf(out, "- %s\n", json_string_value(json_array_get(risks, i)));
    return g_string_free(out, FALSE);
}

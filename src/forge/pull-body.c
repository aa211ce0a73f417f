/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/pull.h"
#include "forge/row.h"

/* What is written here is read as Markdown.  Text of others goes in with every character that could
 * begin markup escaped, so that a task cannot draw a link, an image, a mention or a heading of its
 * own into the body. */

enum { SUMMARY_MAX = 4000, STEP_MAX = 300, STEPS_MAX = 50 };

static const char markup[] = "\\`*_{}[]()<>#+-.!|~@&:/=\"'";

static void
append_literal(GString *out, const char *text, glong max)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    glong n = 0;

    for (const char *p = valid; *p != '\0'; p += g_utf8_skip[(guchar)*p]) {
        gunichar c = g_utf8_get_char(p);

        if (n++ == max) {
            g_string_append(out, " …");
            return;
        }
        if (c < 0x80 && strchr(markup, (int)c) != NULL)
            g_string_append_c(out, '\\');
        g_string_append_unichar(out, g_unichar_iscntrl(c) ? ' ' : c);
    }
}

/* Each line of its own, so that an escaped text keeps its form. */
static void
append_quote(GString *out, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    glong left = SUMMARY_MAX;

    for (char **line = lines; *line != NULL && left > 0; line++) {
        size_t before = out->len;

        g_string_append(out, "> ");
        append_literal(out, g_strchomp(*line), left);
        g_string_append_c(out, '\n');
        left -= (glong)(out->len - before);
    }
}

/* A URL of ours; what could end it early is encoded. */
static void
append_link(GString *out, const char *text, const char *url)
{
    g_autofree char *encoded = g_uri_escape_string(url, ":/?#&=%;,+@$!*'", FALSE);

    g_string_append_c(out, '[');
    append_literal(out, text, STEP_MAX);
    g_string_append_printf(out, "](%s)", encoded);
}

static void
append_task(GString *out, const PullBody *body)
{
    const char *name = body->task_name != NULL ? body->task_name : body->task_id;

    if (body->task_id == NULL)
        return;
    g_string_append(out, "\n**Task:** ");
    if (body->task_url != NULL)
        append_link(out, name, body->task_url);
    else
        append_literal(out, name, STEP_MAX);
    g_string_append_c(out, '\n');
}

static void
append_plan(GString *out, const char *const *plan)
{
    if (plan == NULL || plan[0] == NULL)
        return;
    g_string_append(out, "\n### Plan\n\n");
    for (guint i = 0; plan[i] != NULL && i < STEPS_MAX; i++) {
        g_string_append_printf(out, "%u. ", i + 1);
        append_literal(out, plan[i], STEP_MAX);
        g_string_append_c(out, '\n');
    }
}

static void
append_checks(GString *out, const PullBody *body)
{
    g_string_append(out, "\n### Checks\n\n");
    if (body->checks_url != NULL) {
        append_link(out, "What Coop saw", body->checks_url);
        g_string_append(out, ": ");
    } else {
        g_string_append(out, "Coop runs them itself: ");
    }
    g_string_append(out, "base and change alone, in a clean box.  Only what passed there can be merged.\n");
}

static void
append_author(GString *out, const PullBody *body)
{
    if (body->agent == NULL)
        return;
    g_string_append(out, "\nBy ");
    append_literal(out, body->agent, STEP_MAX);
    if (body->role != NULL) {
        g_string_append(out, ", ");
        append_literal(out, body->role, STEP_MAX);
    }
    g_string_append(out, ".\n");
}

char *
pull_body_format(const PullBody *body)
{
    g_autoptr(GString) out = g_string_new(NULL);

    if (body->summary != NULL && body->summary[0] != '\0')
        append_quote(out, body->summary);
    append_task(out, body);
    append_plan(out, body->plan);
    append_checks(out, body);
    append_author(out, body);
    return g_strdup(out->str[0] == '\n' ? out->str + 1 : out->str);
}

char *
pull_title_format(const char *summary, bool draft)
{
    g_autofree char *valid = g_utf8_make_valid(summary, -1);
    char *end = strpbrk(valid, "\r\n");

    if (end != NULL)
        *end = '\0';
    g_autofree char *clean = row_dup_line("the title", valid, G_MAXINT, ROW_TEXT_MAY_BE_EMPTY, NULL);
    g_autofree char *whole = g_strconcat(draft ? "[WIP] " : "", clean[0] != '\0' ? clean : "Untitled", NULL);

    if (g_utf8_strlen(whole, -1) <= THREAD_TITLE_MAX)
        return g_steal_pointer(&whole);
    g_autofree char *cut = g_utf8_substring(whole, 0, THREAD_TITLE_MAX - 1);

    return g_strconcat(cut, "…", NULL);
}

char *
pull_checks_url(const char *address, const RepoInfo *repo, const char *branch)
{
    g_autofree char *head = g_uri_escape_string(branch, NULL, FALSE);

    return g_strdup_printf("%s/api/v3/repos/%s/%s/commits/%s/check-runs", address, repo->owner, repo->name,
                           head);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "builder/report.h"

#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"

static void
say(Json *object)
{
    g_autofree char *text = json_encode(object);
    g_autofree char *line = g_strconcat(text, "\n", NULL);

    json_decref(object);
    (void)io_write_all(STDOUT_FILENO, line, strlen(line)); /* nobody listens: the server is gone */
}

static void
say_progress(Report *r, const char *line)
{
    Json *object = json_pack("{s:s, s:i}", "step", r->step, "percent", (int)r->percent);

    if (line != NULL)
        json_object_set_new(object, "line", json_string(line));
    r->told = r->percent;
    say(object);
}

void
report_step(Report *r, const char *step, guint from, guint to)
{
    r->step = step;
    r->from = from;
    r->to = to;
    r->percent = MAX(r->percent, from);
    say_progress(r, NULL);
}

void
report_part(Report *r, double part)
{
    guint percent = r->from + (guint)((r->to - r->from) * CLAMP(part, 0, 1));

    r->percent = MAX(r->percent, percent);
    if (r->percent != r->told)
        say_progress(r, NULL);
}

void
report_line(Report *r, const char *line)
{
    g_autofree char *text = g_utf8_make_valid(line, (gssize)strnlen(line, REPORT_LINE_MAX));

    for (char *c = text; *c != '\0'; c++) {
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    }
    g_strstrip(text);
    if (*text != '\0')
        say_progress(r, text);
}

void
report_done(Json *result)
{
    say(json_pack("{s:o}", "done", result));
}

void
report_error(const GError *error)
{
    g_autofree char *text = g_utf8_make_valid(error->message, -1);

    say(json_pack("{s:s, s:s}", "error", text, "kind", err_kind_name(err_kind(error))));
}

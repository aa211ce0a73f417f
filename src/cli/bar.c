/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bar.h"

#include <string.h>
#include <unistd.h>

#include "base/io.h"

enum {
    BAR_CELLS = 30,
    LINE_COLUMNS = 60, /* of what is said beside the bar */
    TOLD_EVERY = 10,   /* percent, where nobody sees a bar */
};

Bar
bar_make(Cli *cli)
{
    return (Bar){.cli = cli, .draws = out_format(cli_out(cli)) == OUT_TEXT && isatty(STDERR_FILENO) == 1};
}

static char *
printable(const char *text)
{
    char *copy = g_utf8_make_valid(text != NULL ? text : "", -1);

    for (char *c = copy; *c != '\0'; c++) {
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    }
    return copy;
}

static void
draw(Bar *b, guint percent, const char *step, const char *line)
{
    char cells[BAR_CELLS + 1];
    guint full = MIN(percent, 100) * BAR_CELLS / 100;
    g_autofree char *cut = g_utf8_substring(line, 0, MIN(g_utf8_strlen(line, -1), LINE_COLUMNS));

    memset(cells, ' ', BAR_CELLS);
    memset(cells, '#', full);
    cells[BAR_CELLS] = '\0';
    g_autofree char *text = g_strdup_printf("\r\033[K[%s] %3u %% %s  %s", cells, percent, step, cut);

    b->drawn = true;
    (void)io_write_all(STDERR_FILENO, text, strlen(text)); /* decoration */
}

void
bar_show(Bar *bar, guint percent, const char *step, const char *line)
{
    g_autofree char *what = printable(step);
    g_autofree char *more = printable(line);

    if (bar->draws) {
        draw(bar, percent, what, more);
    } else if (percent >= bar->told + TOLD_EVERY) {
        bar->told = percent - percent % TOLD_EVERY;
        out_notice(cli_out(bar->cli), "%u %% %s", percent, what);
    }
}

void
bar_clear(Bar *bar)
{
    static const char clear[] = "\r\033[K";

    if (bar->drawn)
        (void)io_write_all(STDERR_FILENO, clear, strlen(clear));
    bar->drawn = false;
}

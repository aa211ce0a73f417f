/* SPDX-License-Identifier: Apache-2.0 */
#include "report/match.h"

#include <string.h>

bool
match_text(const char **p, const char *text)
{
    const char *at = *p;

    /* Nearly every line of output fails at its first character, a dozen times. */
    for (; *text != '\0'; text++, at++) {
        if (*at != *text)
            return false;
    }
    *p = at;
    return true;
}

bool
match_blanks(const char **p)
{
    size_t n = strspn(*p, " ");

    *p += n;
    return n > 0;
}

bool
match_number(const char **p, gint64 *ret)
{
    size_t n = strspn(*p, "0123456789");

    if (n == 0 || n > MATCH_DIGITS_MAX)
        return false;
    *ret = 0;
    for (size_t i = 0; i < n; i++)
        *ret = *ret * 10 + (*p)[i] - '0';
    *p += n;
    return true;
}

static gint64
match_unit(const char **p, gint64 unit_ms)
{
    static const struct {
        const char *name;
        gint64 ms;
    } units[] = {{"ms", 1}, {"sec", 1000}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}};
    const char *at = *p;

    match_blanks(&at);
    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        const char *end = at;

        if (match_text(&end, units[i].name) && !g_ascii_isalnum(*end)) {
            *p = end;
            return units[i].ms;
        }
    }
    return unit_ms;
}

bool
match_duration(const char **p, gint64 unit_ms, gint64 *ret_ms)
{
    const char *at = *p;
    gint64 whole;
    double part = 0;
    double scale = 0.1;

    if (!match_number(&at, &whole))
        return false;
    if (*at == '.' && g_ascii_isdigit(at[1])) {
        for (at++; g_ascii_isdigit(*at); at++, scale /= 10)
            part += (*at - '0') * scale;
    }
    gint64 unit = match_unit(&at, unit_ms);

    *ret_ms = whole * unit + (gint64)(part * (double)unit + 0.5);
    *p = at;
    return true;
}

static bool
match_count(const char **p, const MatchCount *words)
{
    const char *at = *p;
    gint64 n;

    if (!match_number(&at, &n) || !match_blanks(&at))
        return false;
    for (const MatchCount *w = words; w->word != NULL; w++) {
        const char *end = at;

        if (!match_text(&end, w->word) || g_ascii_isalnum(*end))
            continue;
        if (w->to != NULL)
            *w->to += n;
        *p = end;
        return true;
    }
    return false;
}

bool
match_counts(const char **p, const char *separator, const MatchCount *words)
{
    do {
        if (!match_count(p, words))
            return false;
    } while (match_text(p, separator));
    return true;
}

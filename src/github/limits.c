/* SPDX-License-Identifier: Apache-2.0 */
#include "github/limits.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define US_PER_MS ((gint64)1000)

/* ---- headers ---- */

/* What can still be counted in microseconds. */
static const gint64 number_max = 1000LL * 1000 * 1000 * 1000;

/* Digits alone; -1: anything else. */
static gint64
number_of(const char *text)
{
    size_t n = text != NULL ? strspn(text, "0123456789") : 0;

    return n > 0 && text[n] == '\0' ? MIN(g_ascii_strtoll(text, NULL, 10), number_max) : -1;
}

/* Of "Sun, 06 Nov 1994 08:49:37 GMT"; 0: it makes no sense. */
static gint64
date_us(const char *text)
{
    struct tm parts = {0};
    const char *end = text != NULL ? strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &parts) : NULL;

    return end != NULL && *end == '\0' ? (gint64)timegm(&parts) * G_USEC_PER_SEC : 0;
}

static gint64
clamp_wait(gint64 wait_us)
{
    return CLAMP(wait_us, 0, GITHUB_WAIT_MAX_S * (gint64)G_USEC_PER_SEC);
}

/* How long until the limit is full again.  Both times are of the same clock where the answer has a date,
 * so ours may be wrong. */
static gint64
reset_in_us(const GithubHeaders *headers, gint64 wall_us)
{
    gint64 reset = number_of(headers->reset);
    gint64 date = date_us(headers->date);

    if (reset < 0)
        return -1;
    return clamp_wait(reset * G_USEC_PER_SEC - (date != 0 ? date : wall_us) + G_USEC_PER_SEC);
}

/* Seconds or a date; -1: absent. */
static gint64
retry_after_us(const GithubHeaders *headers, gint64 wall_us)
{
    gint64 seconds = number_of(headers->retry_after);
    gint64 at = date_us(headers->retry_after);
    gint64 date = date_us(headers->date);

    if (seconds >= 0)
        return clamp_wait(MIN(seconds, GITHUB_WAIT_MAX_S) * G_USEC_PER_SEC);
    return at != 0 ? clamp_wait(at - (date != 0 ? date : wall_us)) : -1;
}

/* ---- the budget ---- */

/* Search and the like have hours of their own: what counts is the one that all calls here are of. */
void
github_budget_note(GithubBudget *budget, const GithubHeaders *headers, gint64 now_us, gint64 wall_us)
{
    gint64 remaining = number_of(headers->remaining), reset = reset_in_us(headers, wall_us);

    if (remaining < 0 || reset < 0 || (headers->resource != NULL && strcmp(headers->resource, "core") != 0))
        return;
    gint64 reset_us = now_us + reset;
    bool same_hour = budget->remaining >= 0 && reset_us < budget->reset_us + G_USEC_PER_SEC &&
                     now_us < budget->reset_us;

    /* Answers overtake each other: in one hour it only shrinks. */
    budget->remaining = same_hour ? MIN(budget->remaining, remaining) : remaining;
    budget->reset_us = reset_us;
    budget->limit = number_of(headers->limit);
}

void
github_budget_hold(GithubBudget *budget, gint64 until_us)
{
    budget->hold_until_us = MAX(budget->hold_until_us, until_us);
}

gint64
github_budget_due_us(const GithubBudget *budget, guint under_way, gint64 now_us)
{
    bool is_spent = budget->remaining >= 0 && budget->remaining <= (gint64)under_way &&
                    now_us < budget->reset_us;

    return MAX(budget->hold_until_us, is_spent ? budget->reset_us : 0);
}

/* ---- trying again ---- */

static gint64
jittered_us(gint64 first_ms, gint64 max_ms, guint tries, guint32 random)
{
    gint64 ms = first_ms;

    for (guint i = 1; i < tries && ms < max_ms; i++)
        ms *= 2;
    gint64 half_us = MIN(ms, max_ms) * US_PER_MS / 2;

    return half_us + (gint64)((double)half_us * random / G_MAXUINT32);
}

gint64
github_backoff_us(guint tries, guint32 random)
{
    return jittered_us(GITHUB_BACKOFF_MS, GITHUB_BACKOFF_MAX_MS, tries, random);
}

gint64
github_work_pause_us(guint tries, guint32 random)
{
    return jittered_us(GITHUB_WORK_PAUSE_MS, GITHUB_WORK_PAUSE_MAX_MS, tries, random);
}

static bool
is_secondary(const char *message)
{
    static const char *const words[] = {"secondary rate limit", "abuse detection", "submitted too quickly"};

    for (size_t i = 0; message != NULL && i < G_N_ELEMENTS(words); i++) {
        if (strcasestr(message, words[i]) != NULL)
            return true;
    }
    return false;
}

/* Nobody is to come back before what was asked for; a little later is fine. */
static gint64
secondary_us(guint tries, guint32 random)
{
    return GITHUB_SECONDARY_MS * US_PER_MS / 2 +
           jittered_us(GITHUB_SECONDARY_MS, GITHUB_SECONDARY_MAX_MS, tries, random);
}

static GithubVerdict
judge_refusal(int status, const GithubHeaders *headers, const char *message, guint tries, guint32 random,
              gint64 wall_us, gint64 *ret_wait_us)
{
    gint64 after = retry_after_us(headers, wall_us), reset = reset_in_us(headers, wall_us);

    if (after >= 0)
        *ret_wait_us = after;
    else if (number_of(headers->remaining) == 0 && reset >= 0)
        *ret_wait_us = reset;
    else if (status == 429 || is_secondary(message))
        *ret_wait_us = secondary_us(tries, random);
    else
        return GITHUB_FAILED;
    return GITHUB_HELD;
}

GithubVerdict
github_judge(int status, const GithubHeaders *headers, const char *message, guint tries, guint32 random,
             gint64 wall_us, gint64 *ret_wait_us)
{
    *ret_wait_us = 0;
    if ((status >= 200 && status < 300) || status == 304)
        return GITHUB_DONE;
    if (status == 301 || status == 302 || status == 307 || status == 308)
        return GITHUB_MOVED;
    if (status == 403 || status == 429)
        return judge_refusal(status, headers, message, tries, random, wall_us, ret_wait_us);
    if (status >= 500 || status == 408) {
        *ret_wait_us = MAX(retry_after_us(headers, wall_us), github_backoff_us(tries, random));
        return GITHUB_AGAIN;
    }
    return GITHUB_FAILED;
}

ErrKind
github_status_kind(int status)
{
    static const struct {
        int status;
        ErrKind kind;
    } rows[] = {{401, ERR_DENIED},  {403, ERR_DENIED},   {404, ERR_NOT_FOUND}, {405, ERR_CONFLICT},
                {408, ERR_TIMEOUT}, {409, ERR_CONFLICT}, {410, ERR_NOT_FOUND}, {429, ERR_LIMIT}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].status == status)
            return rows[i].kind;
    }
    return status >= 500 ? ERR_UNAVAILABLE : ERR_INVALID;
}

/* ---- texts ---- */

gint64
github_expiry_us(const char *text)
{
    struct tm parts = {0};
    const char *zone = text != NULL ? strptime(text, "%Y-%m-%d %H:%M:%S ", &parts) : NULL;
    int hours = 0, minutes = 0;
    char sign = '+', more;

    if (zone == NULL)
        return 0;
    if (strcmp(zone, "UTC") != 0 && (sscanf(zone, "%c%2d%2d%c", &sign, &hours, &minutes, &more) != 3 ||
                                     strchr("+-", sign) == NULL || hours < 0 || minutes < 0))
        return 0;
    gint64 offset_s = (hours * (gint64)3600 + minutes * (gint64)60) * (sign == '-' ? -1 : 1);

    return MAX(((gint64)timegm(&parts) - offset_s) * G_USEC_PER_SEC, 0);
}

/* One piece is <target>; name="value"; …  Targets have no commas of their own: GitHub escapes them. */
char *
github_link_next(const char *link, size_t max)
{
    if (link == NULL)
        return NULL;
    g_auto(GStrv) pieces = g_strsplit(link, ",", 64);

    for (guint i = 0; pieces[i] != NULL; i++) {
        char *piece = g_strstrip(pieces[i]);
        char *end = piece[0] == '<' ? strchr(piece, '>') : NULL;

        if (end == NULL || (strstr(end, "rel=\"next\"") == NULL && !g_str_has_suffix(end, "rel=next")))
            continue;
        size_t n = (size_t)(end - piece) - 1;

        return n > 0 && n <= max ? g_strndup(piece + 1, n) : NULL;
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/git-private.h"
#include "wire/git-launch.h"

enum { MESSAGE_MAX = 2000 };

static void
replace(GString *text, const char *what, const char *with)
{
    if (what != NULL && what[0] != '\0')
        (void)g_string_replace(text, what, with, 0);
}

/* "https://user:secret@host/": what stands before the "@" is nobody's business. */
static void
drop_credentials(GString *text)
{
    for (char *at = strstr(text->str, "://"); at != NULL; at = strstr(at, "://")) {
        at += strlen("://");
        size_t n = strcspn(at, "/ '\"");
        char *end = memrchr(at, '@', n);

        if (end != NULL)
            g_string_erase(text, at - text->str, end + 1 - at);
    }
}

static const char *
without_prefix(const char *line)
{
    static const char *const prefixes[] = {"fatal: ", "error: ", "remote: "};

    for (size_t i = 0; i < G_N_ELEMENTS(prefixes); i++) {
        if (g_str_has_prefix(line, prefixes[i]))
            return line + strlen(prefixes[i]);
    }
    return line;
}

/* "Counting objects:  45% (164/363)" */
static bool
is_progress(const char *line)
{
    const char *percent = strstr(line, "% (");

    return percent != NULL && percent > line && g_ascii_isdigit(percent[-1]);
}

/* One line for people: no control characters, nothing about where we keep things. */
static char *
clean(const GitRepo *repo, const GitEnd *end)
{
    g_autofree char *valid = g_utf8_make_valid(end->said->str, (gssize)end->said->len);
    g_auto(GStrv) lines = g_strsplit_set(valid, "\r\n", -1);
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; lines[i] != NULL; i++) {
        const char *line = without_prefix(lines[i]);

        if (line[0] == '\0' || g_str_has_prefix(line, "hint: ") || is_progress(line))
            continue;
        g_string_append_printf(text, "%s%s", text->len > 0 ? "; " : "", line);
    }
    replace(text, repo->path, "the repository");
    drop_credentials(text);
    if (text->len > MESSAGE_MAX)
        g_string_truncate(text,
                          (gsize)(g_utf8_find_prev_char(text->str, text->str + MESSAGE_MAX) - text->str));
    for (char *p = text->str; *p != '\0'; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);

        if (g_unichar_iscntrl(c))
            memset(p, ' ', (size_t)(g_utf8_next_char(p) - p));
    }
    return g_strdup(g_strstrip(text->str));
}

static bool
says_full(const char *text)
{
    return strstr(text, "No space left on device") != NULL || strstr(text, "Disk quota exceeded") != NULL;
}

bool
git_error_set(const GitRepo *repo, const GitEnd *end, GError **error)
{
    g_autofree char *text = clean(repo, end);

    if (end->code == GIT_LAUNCH_FAILED)
        return err_set(error, ERR_UNAVAILABLE, "git cannot be started: %s", text);
    if (says_full(text))
        return err_set(error, ERR_FULL, "git: %s", text);
    if (text[0] == '\0')
        return err_set(error, ERR_INVALID, "git ended with code %d", end->code);
    return err_set(error, ERR_INVALID, "git: %s", text);
}

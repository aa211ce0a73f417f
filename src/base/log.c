/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

enum { LOG_VALUE_MAX = 2048, LOG_MODULES_MAX = 32, LOG_MODULE_NAME_MAX = 15 };

static const char *const level_names[LOG_LEVEL_MAX] = {"debug", "info", "warn", "error"};

typedef struct ModuleLevel {
    char name[LOG_MODULE_NAME_MAX + 1];
    LogLevel level;
} ModuleLevel;

typedef struct Levels {
    LogLevel fallback;
    size_t n_modules;
    ModuleLevel modules[LOG_MODULES_MAX];
} Levels;

/* Written at start, before there are threads; only read after. */
static Levels levels = {.fallback = LOG_INFO};

static bool
parse_level(const char *text, LogLevel *ret_level)
{
    for (LogLevel l = 0; l < LOG_LEVEL_MAX; l++) {
        if (strcmp(text, level_names[l]) == 0) {
            *ret_level = l;
            return true;
        }
    }
    return false;
}

static bool
parse_item(Levels *to, char *item)
{
    char *equals = strchr(item, '=');

    if (equals == NULL)
        return parse_level(item, &to->fallback);
    *equals = '\0';
    if (to->n_modules == LOG_MODULES_MAX || item[0] == '\0' || strlen(item) > LOG_MODULE_NAME_MAX)
        return false;
    ModuleLevel *m = &to->modules[to->n_modules++];
    g_strlcpy(m->name, item, sizeof m->name);
    return parse_level(equals + 1, &m->level);
}

static bool
parse_levels(const char *spec, Levels *ret_levels)
{
    g_auto(GStrv) items = g_strsplit(spec, ",", LOG_MODULES_MAX + 1);
    Levels parsed = {.fallback = LOG_INFO};

    for (char **item = items; *item != NULL; item++) {
        if (!parse_item(&parsed, g_strstrip(*item)))
            return false;
    }
    *ret_levels = parsed;
    return true;
}

bool
log_check_levels(const char *spec)
{
    Levels unused;

    return parse_levels(spec, &unused);
}

bool
log_set_levels(const char *spec)
{
    return parse_levels(spec, &levels);
}

bool
log_enabled(LogLevel level, const char *module)
{
    for (size_t i = 0; i < levels.n_modules; i++) {
        if (strcmp(levels.modules[i].name, module) == 0)
            return level >= levels.modules[i].level;
    }
    return level >= levels.fallback;
}

static bool
is_plain(const char *text)
{
    if (text[0] == '\0')
        return false;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p <= ' ' || *p >= 0x7f || strchr("\"\\=", *p) != NULL)
            return false;
    }
    return true;
}

static void
append_quoted(GString *line, const char *text)
{
    size_t start = line->len;

    g_string_append_c(line, '"');
    for (const char *p = text; *p != '\0'; p++) {
        guchar c = (guchar)*p;

        if (line->len - start > LOG_VALUE_MAX) {
            g_string_append(line, "…");
            break;
        }
        if (c == '"' || c == '\\')
            g_string_append_printf(line, "\\%c", c);
        else if (c == '\n')
            g_string_append(line, "\\n");
        else if (c < ' ' || c >= 0x7f)
            g_string_append_printf(line, "\\x%02x", c);
        else
            g_string_append_c(line, (char)c);
    }
    g_string_append_c(line, '"');
}

static void
append_value(GString *line, const char *text)
{
    if (is_plain(text) && strlen(text) <= LOG_VALUE_MAX)
        g_string_append(line, text);
    else
        append_quoted(line, text);
}

char *
log_format(gint64 wall_us, LogLevel level, const char *module, const char *message, const LogField *fields)
{
    GString *line = g_string_sized_new(160);
    char at[CLOCK_ISO_LEN + 1];

    clock_format_iso(wall_us, at);
    g_string_append_printf(line, "t=%s level=%s mod=%s msg=", at, level_names[level], module);
    append_quoted(line, message);
    for (const LogField *f = fields; f->key != NULL; f++) {
        g_string_append_printf(line, " %s=", f->key);
        if (f->str != NULL)
            append_value(line, f->str);
        else
            g_string_append_printf(line, "%" G_GINT64_FORMAT, f->num);
    }
    return g_string_free(line, FALSE);
}

void
log_emit(LogLevel level, const char *module, const char *message, const LogField *fields)
{
    g_autofree char *line = log_format(clock_wall_us(), level, module, message, fields);
    size_t n = strlen(line);

    line[n] = '\n'; /* in the place of the terminator: one write keeps lines whole */
    (void)io_write_all(STDERR_FILENO, line, n + 1); /* nobody is left to tell */
}

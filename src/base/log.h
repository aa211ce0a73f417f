/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Structured log lines on stderr, one write(2) each:
 *
 *     t=2026-01-31T12:00:00.123456Z level=info mod=http msg="request" id=4f… status=200
 *
 * Values are typed and escaped here, so no caller can be talked into writing a second line
 * or a forged key.  Errors are logged once, where they stop; library code below api/ and
 * daemon/ returns them.
 *
 * Levels come from COOP_LOG, e.g. "info,http=debug,store=warn"; the default is info. */
typedef enum LogLevel { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_MAX } LogLevel;

typedef struct LogField {
    const char *key; /* NULL ends a list */
    const char *str; /* NULL: `num` is the value */
    gint64 num;
} LogField;

#define log_str(k, v) ((LogField){.key = (k), .str = (v) != NULL ? (v) : ""})
#define log_int(k, v) ((LogField){.key = (k), .num = (gint64)(v)})
#define log_gerror(e) log_str("error", (e)->message)

/* Parses a COOP_LOG value; false (and nothing changed) when it is malformed. */
bool log_set_levels(const char *spec);
bool log_check_levels(const char *spec); /* only says whether it is well formed */
bool log_enabled(LogLevel level, const char *module);
void log_emit(LogLevel level, const char *module, const char *message, const LogField *fields);

/* The line without its newline, for tests and for other sinks. */
char *
log_format(gint64 wall_us, LogLevel level, const char *module, const char *message, const LogField *fields);

#define log_at(level, module, message, ...)                                                                  \
    do {                                                                                                     \
        if (log_enabled(level, module))                                                                      \
            log_emit(level, module, message, (const LogField[]){__VA_ARGS__ __VA_OPT__(, ){NULL}});          \
    } while (0)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)

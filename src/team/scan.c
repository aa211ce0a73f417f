/* SPDX-License-Identifier: Apache-2.0 */
/* Which scanners are asked, and how. */
#include "team/scan.h"

#include <string.h>

enum { WORDS_MAX = 14 };

#define ESLINT_CONFIG "/usr/local/share/coop/eslint.config.cjs"
/* Plugins and rules come with the configuration: without it there is no scanner. */
#define ESLINT "test -e " ESLINT_CONFIG " || exit 127; exec eslint -c " ESLINT_CONFIG " \"$@\""
/* It has no switch that makes it deaf to marks, so it gets copies in which they name a rule that there is
 * not; the lines stay where they are. */
#define SHELLCHECK                                                                                           \
    "set -e; marks=$1; shift; to=/tmp/coop-scan.$$; mkdir \"$to\"; trap 'rm -rf \"$to\"' EXIT; "             \
    "for file; do mkdir -p \"$to/${file%/*}\"; LC_ALL=C sed -e \"$marks\" <\"$file\" >\"$to/$file\"; done; " \
    "cd \"$to\"; shellcheck --norc -f json \"$@\""
#define SHELLCHECK_DEAF                                                                                      \
    "/shellcheck/{s/disable=[^[:space:]]*/disable=SC9/g;s/extended-analysis=false/extended-analysis=true/g}"
/* It tells its findings on standard error. */
#define CPPCHECK "exec cppcheck \"$@\" 2>&1"

typedef struct ScanKind {
    const char *name, *program;
    const char *argv[WORDS_MAX];
    const char *deaf[3];  /* more words: marks in the code do not count */
    const char *hears[2]; /* they do */
    const char *suffixes; /* separated by spaces; NULL: every file */
} ScanKind;

/* Files follow, each behind "./" so that none is an option.  B322 is about Python 2's input(). */
static const ScanKind kinds[] = {
    {"bandit", "bandit", {"bandit", "-q", "-s", "B322", "-f", "json"}, {"--ignore-nosec"}, {NULL}, ".py"},
    {"eslint",
     "eslint with security rules",
     {"sh", "-c", ESLINT, "sh", "--no-config-lookup", "--ignore-pattern", "!**/node_modules/", "-f", "json"},
     {"--no-inline-config"},
     {NULL},
     ".js .cjs .mjs .jsx"},
    {"shellcheck", "shellcheck", {"sh", "-c", SHELLCHECK, "sh"}, {SHELLCHECK_DEAF}, {""}, ".sh .bash"},
    {"cppcheck",
     "cppcheck",
     {"sh", "-c", CPPCHECK, "sh", "--quiet", "--enable=warning,portability",
      "--template={file}\t{line}\t{severity}\t{id}\t{message}"},
     {NULL},
     {"--inline-suppr"},
     ".c .cc .cpp .cxx .h .hpp"},
    {"secrets",
     "detect-secrets",
     {"detect-secrets", "-c", "1", "scan", "--no-verify"},
     {"--disable-filter", "detect_secrets.filters.allowlist.is_line_allowlisted"},
     {NULL},
     NULL},
};

const char *
scan_severity_name(ScanSeverity severity)
{
    static const char *const names[SCAN_SEVERITY_MAX] = {"note", "warning", "error"};

    return names[severity];
}

void
scan_command_free(ScanCommand *command)
{
    if (command == NULL)
        return;
    g_strfreev(command->argv);
    g_strfreev(command->marked);
    g_ptr_array_unref(command->paths);
    g_free(command);
}

static bool
has_suffix(const char *path, const char *suffixes)
{
    g_auto(GStrv) list = g_strsplit(suffixes, " ", -1);

    for (char **s = list; *s != NULL; s++) {
        if (g_str_has_suffix(path, *s))
            return true;
    }
    return false;
}

static char **
make_argv(const ScanKind *kind, const char *const *more, const GPtrArray *paths)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();

    for (const char *const *word = kind->argv; *word != NULL; word++)
        g_ptr_array_add(argv, g_strdup(*word));
    for (; *more != NULL; more++)
        g_ptr_array_add(argv, g_strdup(*more));
    for (guint i = 0; i < paths->len; i++)
        g_ptr_array_add(argv, g_strconcat("./", (const char *)paths->pdata[i], NULL));
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&argv), FALSE);
}

static ScanCommand *
plan_one(const ScanKind *kind, const char *const *paths)
{
    ScanCommand *command = g_new0(ScanCommand, 1);
    size_t bytes = 0;

    command->name = kind->name;
    command->program = kind->program;
    command->paths = g_ptr_array_new_with_free_func(g_free);
    for (const char *const *p = paths; *p != NULL; p++) {
        if (kind->suffixes != NULL && !has_suffix(*p, kind->suffixes))
            continue;
        bytes += strlen(*p) + sizeof "./";
        if (command->paths->len == SCAN_PATHS_MAX || bytes > SCAN_ARGV_BYTES_MAX) {
            command->truncated = true;
            break;
        }
        g_ptr_array_add(command->paths, g_strdup(*p));
    }
    command->argv = make_argv(kind, kind->deaf, command->paths);
    command->marked = make_argv(kind, kind->hears, command->paths);
    return command;
}

GPtrArray *
scan_plan(const char *const *paths)
{
    GPtrArray *commands = g_ptr_array_new_with_free_func((GDestroyNotify)scan_command_free);

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        ScanCommand *command = plan_one(&kinds[i], paths);

        if (command->paths->len > 0)
            g_ptr_array_add(commands, command);
        else
            scan_command_free(command);
    }
    return commands;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "team/scan.h"

#include <string.h>

#include "base/err.h"
#include "forge/row.h"

#define ESLINT_CONFIG "/usr/local/share/coop/eslint.config.cjs"

typedef bool (*ScanReader)(ScanResult *result, GHashTable *wanted, const char *output, size_t n,
                           GError **error);

typedef struct ScanKind {
    const char *name;
    const char *argv[10]; /* files follow, each behind "./" so that none is an option */
    const char *suffixes; /* separated by spaces; NULL: every file */
    ScanReader read;
} ScanKind;

static bool read_bandit(ScanResult *r, GHashTable *wanted, const char *output, size_t n, GError **error);
static bool read_eslint(ScanResult *r, GHashTable *wanted, const char *output, size_t n, GError **error);
static bool read_shellcheck(ScanResult *r, GHashTable *wanted, const char *output, size_t n, GError **error);
static bool read_cppcheck(ScanResult *r, GHashTable *wanted, const char *output, size_t n, GError **error);
static bool read_secrets(ScanResult *r, GHashTable *wanted, const char *output, size_t n, GError **error);

/* B322 is about Python 2's input().  cppcheck tells its findings on standard error. */
static const ScanKind kinds[] = {
    {"bandit", {"bandit", "-q", "--ignore-nosec", "-s", "B322", "-f", "json"}, ".py", read_bandit},
    {"eslint",
     {"eslint", "--no-config-lookup", "-c", ESLINT_CONFIG, "-f", "json"},
     ".js .cjs .mjs .jsx",
     read_eslint},
    {"shellcheck", {"shellcheck", "--norc", "-f", "json"}, ".sh .bash", read_shellcheck},
    {"cppcheck",
     {"sh", "-c", "exec cppcheck \"$@\" 2>&1", "sh", "--quiet", "--enable=warning,portability",
      "--template={file}\t{line}\t{severity}\t{id}\t{message}"},
     ".c .cc .cpp .cxx .h .hpp",
     read_cppcheck},
    {"secrets",
     {"detect-secrets", "-c", "1", "scan", "--no-verify", "--disable-filter",
      "detect_secrets.filters.allowlist.is_line_allowlisted"},
     NULL,
     read_secrets},
};

const char *
scan_severity_name(ScanSeverity severity)
{
    static const char *const names[SCAN_SEVERITY_MAX] = {"note", "warning", "error"};

    return names[severity];
}

/* ---- what is asked ---- */

void
scan_command_free(ScanCommand *command)
{
    if (command == NULL)
        return;
    g_strfreev(command->argv);
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

static ScanCommand *
plan_one(const ScanKind *kind, const char *const *paths)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    ScanCommand *command = g_new0(ScanCommand, 1);
    size_t bytes = 0;

    command->name = kind->name;
    for (const char *const *word = kind->argv; *word != NULL; word++)
        g_ptr_array_add(argv, g_strdup(*word));
    for (const char *const *p = paths; *p != NULL; p++) {
        if (kind->suffixes != NULL && !has_suffix(*p, kind->suffixes))
            continue;
        bytes += strlen(*p) + sizeof "./";
        if (command->files == SCAN_PATHS_MAX || bytes > SCAN_ARGV_BYTES_MAX) {
            command->truncated = true;
            break;
        }
        g_ptr_array_add(argv, g_strconcat("./", *p, NULL));
        command->files++;
    }
    g_ptr_array_add(argv, NULL);
    command->argv = (char **)g_ptr_array_free(g_steal_pointer(&argv), FALSE);
    return command;
}

GPtrArray *
scan_plan(const char *const *paths)
{
    GPtrArray *commands = g_ptr_array_new_with_free_func((GDestroyNotify)scan_command_free);

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        ScanCommand *command = plan_one(&kinds[i], paths);

        if (command->files > 0)
            g_ptr_array_add(commands, command);
        else
            scan_command_free(command);
    }
    return commands;
}

/* ---- what was answered ---- */

static void
finding_free(gpointer data)
{
    ScanFinding *f = data;

    g_free(f->path);
    g_free(f->rule);
    g_free(f->text);
    g_free(f);
}

void
scan_result_free(ScanResult *result)
{
    if (result == NULL)
        return;
    g_ptr_array_unref(result->findings);
    g_free(result);
}

/* One line of UTF-8: what programs say quotes what a repository brings. */
static char *
dup_clean(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)strnlen(text, SCAN_TEXT_MAX));

    return row_dup_line("a finding", valid, SCAN_TEXT_MAX, ROW_TEXT_MAY_BE_EMPTY, NULL);
}

typedef struct Found {
    const char *path;
    gint64 line;
    ScanSeverity severity;
    const char *rule, *text;
} Found;

/* Paths come back as they were given, or absolute: those are ended by one of ours. */
static const char *
find_path(GHashTable *wanted, const char *path)
{
    const char *at = g_str_has_prefix(path, "./") ? path + 2 : path;

    while (at != NULL && *at != '\0') {
        if (g_hash_table_contains(wanted, at))
            return at;
        if (path[0] != '/')
            return NULL;
        at = strchr(at + 1, '/');
        if (at != NULL)
            at++;
    }
    return NULL;
}

static void
add(ScanResult *r, GHashTable *wanted, const Found *found)
{
    const char *path = found->path != NULL ? find_path(wanted, found->path) : NULL;

    if (path == NULL)
        return;
    r->counts[found->severity]++;
    if (r->findings->len == SCAN_FINDINGS_MAX)
        return;
    ScanFinding *f = g_new0(ScanFinding, 1);
    *f = (ScanFinding){
        .path = g_strdup(path),
        .line = MAX(found->line, 0),
        .severity = found->severity,
        .rule = dup_clean(found->rule != NULL ? found->rule : ""),
        .text = dup_clean(found->text != NULL ? found->text : ""),
    };
    g_ptr_array_add(r->findings, f);
}

static const char *
text_of(Json *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static gint64
int_of(Json *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

typedef struct Level {
    const char *word;
    ScanSeverity severity;
} Level;

/* A word that is not in the table is a note. */
static ScanSeverity
severity_of(const Level *levels, const char *word)
{
    for (; levels->word != NULL; levels++) {
        if (g_strcmp0(levels->word, word) == 0)
            return levels->severity;
    }
    return SCAN_NOTE;
}

static bool
read_bandit(ScanResult *r, GHashTable *wanted, const char *output, size_t n, GError **error)
{
    static const Level levels[] = {{"HIGH", SCAN_ERROR}, {"MEDIUM", SCAN_WARNING}, {NULL}};
    g_autoptr(Json) root = json_decode(output, n, error);
    Json *results = json_object_get(root, "results"), *item;
    size_t i;

    if (root == NULL)
        return false;
    if (!json_is_array(results))
        return err_set(error, ERR_INVALID, "there are no results in it");
    /* A file that it cannot read is one that nobody has looked at. */
    json_array_foreach(json_object_get(root, "errors"), i, item)
        add(r, wanted,
            &(Found){.path = text_of(item, "filename"),
                     .severity = SCAN_ERROR,
                     .rule = "unread",
                     .text = text_of(item, "reason")});
    json_array_foreach(results, i, item)
        add(r, wanted,
            &(Found){.path = text_of(item, "filename"),
                     .line = int_of(item, "line_number"),
                     .severity = severity_of(levels, text_of(item, "issue_severity")),
                     .rule = text_of(item, "test_id"),
                     .text = text_of(item, "issue_text")});
    return true;
}

static void
read_eslint_file(ScanResult *r, GHashTable *wanted, Json *file)
{
    Json *message;
    size_t i;

    json_array_foreach(json_object_get(file, "messages"), i, message)
        add(r, wanted,
            &(Found){.path = text_of(file, "filePath"),
                     .line = int_of(message, "line"),
                     .severity = int_of(message, "severity") >= 2 ? SCAN_ERROR : SCAN_WARNING,
                     .rule = text_of(message, "ruleId"),
                     .text = text_of(message, "message")});
}

static bool
read_eslint(ScanResult *r, GHashTable *wanted, const char *output, size_t n, GError **error)
{
    g_autoptr(Json) root = json_decode(output, n, error);
    Json *file;
    size_t i;

    if (root == NULL)
        return false;
    if (!json_is_array(root))
        return err_set(error, ERR_INVALID, "it is no list");
    json_array_foreach(root, i, file) read_eslint_file(r, wanted, file);
    return true;
}

static bool
read_shellcheck(ScanResult *r, GHashTable *wanted, const char *output, size_t n, GError **error)
{
    static const Level levels[] = {{"error", SCAN_ERROR}, {"warning", SCAN_WARNING}, {NULL}};
    g_autoptr(Json) root = json_decode(output, n, error);
    Json *item;
    size_t i;

    if (root == NULL)
        return false;
    if (!json_is_array(root))
        return err_set(error, ERR_INVALID, "it is no list");
    json_array_foreach(root, i, item)
    {
        g_autofree char *rule = g_strdup_printf("SC%" G_GINT64_FORMAT, int_of(item, "code"));

        add(r, wanted,
            &(Found){.path = text_of(item, "file"),
                     .line = int_of(item, "line"),
                     .severity = severity_of(levels, text_of(item, "level")),
                     .rule = rule,
                     .text = text_of(item, "message")});
    }
    return true;
}

/* Lines of path, line, severity, id and message.  One that is none of ours tells of a program's trouble. */
static bool
read_cppcheck(ScanResult *r, GHashTable *wanted, const char *output, size_t n, GError **error)
{
    static const Level levels[] = {
        {"error", SCAN_ERROR}, {"warning", SCAN_WARNING}, {"portability", SCAN_WARNING}, {NULL}};
    g_autofree char *text = g_strndup(output, n);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) parts = g_strsplit(*line, "\t", 5);

        if (**line == '\0')
            continue;
        if (g_strv_length(parts) != 5)
            return err_set(error, ERR_INVALID, "a line in it is no finding");
        add(r, wanted,
            &(Found){.path = parts[0],
                     .line = g_ascii_strtoll(parts[1], NULL, 10),
                     .severity = severity_of(levels, parts[2]),
                     .rule = parts[3],
                     .text = parts[4]});
    }
    return true;
}

static bool
read_secrets(ScanResult *r, GHashTable *wanted, const char *output, size_t n, GError **error)
{
    g_autoptr(Json) root = json_decode(output, n, error);
    Json *results = json_object_get(root, "results"), *list, *item;
    const char *path;
    size_t i;

    if (root == NULL)
        return false;
    if (!json_is_object(results))
        return err_set(error, ERR_INVALID, "there are no results in it");
    json_object_foreach(results, path, list)
    {
        json_array_foreach(list, i, item)
            add(r, wanted,
                &(Found){.path = path,
                         .line = int_of(item, "line_number"),
                         .severity = SCAN_ERROR,
                         .rule = text_of(item, "type"),
                         .text = "this looks like a secret: take it out, and replace it where it is valid"});
    }
    return true;
}

ScanResult *
scan_read(const char *name, const char *const *paths, const char *output, size_t n, GError **error)
{
    g_autoptr(GHashTable) wanted = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(ScanResult) result = g_new0(ScanResult, 1);
    g_autoptr(GError) failed = NULL;

    result->findings = g_ptr_array_new_with_free_func(finding_free);
    for (const char *const *p = paths; *p != NULL; p++)
        g_hash_table_add(wanted, (char *)(guintptr)*p);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].name, name) != 0)
            continue;
        if (kinds[i].read(result, wanted, output, n, &failed))
            return g_steal_pointer(&result);
        err_set(error, ERR_INVALID, "%s did not answer as it should: %s", name, failed->message);
        return NULL;
    }
    err_set(error, ERR_INVALID, "there is no scan '%s'", name);
    return NULL;
}

bool
scan_passed(const ScanResult *result)
{
    return result->counts[SCAN_ERROR] == 0;
}

Json *
scan_findings_json(const char *name, const ScanResult *result)
{
    Json *list = json_array();

    for (guint i = 0; i < result->findings->len; i++) {
        const ScanFinding *f = result->findings->pdata[i];
        g_autofree char *body = g_strdup_printf("%s %s: %s", name, f->rule, f->text);

        json_array_append_new(
            list, json_pack("{s:s, s:I, s:s, s:s, s:s}", "path", f->path, "line", (json_int_t)f->line,
                            "severity", scan_severity_name(f->severity), "rule", f->rule, "body", body));
    }
    return list;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What scanners answered. */
#include <string.h>

#include "base/err.h"
#include "forge/row.h"
#include "team/scan.h"

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
    gint64 line, last; /* last 0: the same */
    ScanSeverity severity;
    const char *rule, *text;
} Found;

typedef struct Reading {
    ScanResult *result;
    GHashTable *asked, *seen; /* paths; seen: those that it has looked at, of programs that tell */
} Reading;

/* Paths come back as they were given, or absolute: those are ended by one of ours. */
static const char *
find_path(const Reading *in, const char *path)
{
    const char *at = g_str_has_prefix(path, "./") ? path + 2 : path;

    while (at != NULL && *at != '\0') {
        if (g_hash_table_contains(in->asked, at))
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
look(Reading *in, const char *path)
{
    const char *known = path != NULL ? find_path(in, path) : NULL;

    if (known != NULL)
        g_hash_table_add(in->seen, g_strdup(known));
}

static void
add(Reading *in, const Found *found)
{
    const char *path = found->path != NULL ? find_path(in, found->path) : NULL;
    ScanResult *r = in->result;

    if (path == NULL)
        return;
    look(in, path);
    r->counts[found->severity]++;
    if (r->findings->len == SCAN_READ_MAX)
        return;
    ScanFinding *f = g_new0(ScanFinding, 1);
    *f = (ScanFinding){
        .path = g_strdup(path),
        .line = MAX(found->line, 0),
        .last = MAX(found->line, found->last),
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

/* The lines of a statement. */
static gint64
last_of(Json *lines)
{
    gint64 last = 0;
    Json *line;
    size_t i;

    json_array_foreach(lines, i, line) last = MAX(last, json_integer_value(line));
    return last;
}

static bool
read_bandit(Reading *in, const char *output, size_t n, GError **error)
{
    static const Level levels[] = {{"HIGH", SCAN_ERROR}, {"MEDIUM", SCAN_WARNING}, {NULL}};
    g_autoptr(Json) root = json_decode(output, n, error);
    Json *results = json_object_get(root, "results"), *item;
    const char *path;
    size_t i;

    if (root == NULL)
        return false;
    if (!json_is_array(results))
        return err_set(error, ERR_INVALID, "there are no results in it");
    json_object_foreach(json_object_get(root, "metrics"), path, item) look(in, path);
    /* A file that it cannot read is one that nobody has looked at. */
    json_array_foreach(json_object_get(root, "errors"), i, item)
        add(in, &(Found){.path = text_of(item, "filename"),
                         .severity = SCAN_ERROR,
                         .rule = "unread",
                         .text = text_of(item, "reason")});
    json_array_foreach(results, i, item)
        add(in, &(Found){.path = text_of(item, "filename"),
                         .line = int_of(item, "line_number"),
                         .last = last_of(json_object_get(item, "line_range")),
                         .severity = severity_of(levels, text_of(item, "issue_severity")),
                         .rule = text_of(item, "test_id"),
                         .text = text_of(item, "issue_text")});
    return true;
}

static void
read_eslint_file(Reading *in, Json *file)
{
    Json *message;
    size_t i;

    look(in, text_of(file, "filePath"));
    json_array_foreach(json_object_get(file, "messages"), i, message)
        add(in, &(Found){.path = text_of(file, "filePath"),
                         .line = int_of(message, "line"),
                         .last = int_of(message, "endLine"),
                         .severity = int_of(message, "severity") >= 2 ? SCAN_ERROR : SCAN_WARNING,
                         .rule = text_of(message, "ruleId"),
                         .text = text_of(message, "message")});
}

static bool
read_eslint(Reading *in, const char *output, size_t n, GError **error)
{
    g_autoptr(Json) root = json_decode(output, n, error);
    Json *file;
    size_t i;

    if (root == NULL)
        return false;
    if (!json_is_array(root))
        return err_set(error, ERR_INVALID, "it is no list");
    json_array_foreach(root, i, file) read_eslint_file(in, file);
    return true;
}

static bool
read_shellcheck(Reading *in, const char *output, size_t n, GError **error)
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

        add(in, &(Found){.path = text_of(item, "file"),
                         .line = int_of(item, "line"),
                         .last = int_of(item, "endLine"),
                         .severity = severity_of(levels, text_of(item, "level")),
                         .rule = rule,
                         .text = text_of(item, "message")});
    }
    return true;
}

/* Lines of path, line, severity, id and message.  One that is none of ours tells of a program's trouble. */
static bool
read_cppcheck(Reading *in, const char *output, size_t n, GError **error)
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
        add(in, &(Found){.path = parts[0],
                         .line = g_ascii_strtoll(parts[1], NULL, 10),
                         .severity = severity_of(levels, parts[2]),
                         .rule = parts[3],
                         .text = parts[4]});
    }
    return true;
}

static bool
read_secrets(Reading *in, const char *output, size_t n, GError **error)
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
        json_array_foreach(list, i, item) add(
            in, &(Found){.path = path,
                         .line = int_of(item, "line_number"),
                         .severity = SCAN_ERROR,
                         .rule = text_of(item, "type"),
                         .text = "this looks like a secret: take it out, and replace it where it is valid"});
    }
    return true;
}

static const struct Reader {
    const char *name;
    bool (*read)(Reading *in, const char *output, size_t n, GError **error);
    bool tells_seen; /* also of files in which it finds nothing */
} readers[] = {
    {"bandit", read_bandit, true}, {"eslint", read_eslint, true}, {"shellcheck", read_shellcheck},
    {"cppcheck", read_cppcheck},   {"secrets", read_secrets},
};

static const struct Reader *
find_reader(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(readers); i++) {
        if (strcmp(readers[i].name, name) == 0)
            return &readers[i];
    }
    return NULL;
}

static void
add_unread(Reading *in, const GPtrArray *paths)
{
    for (guint i = 0; i < paths->len; i++) {
        if (!g_hash_table_contains(in->seen, paths->pdata[i]))
            add(in, &(Found){.path = paths->pdata[i],
                             .severity = SCAN_ERROR,
                             .rule = "unread",
                             .text = "it was not looked at"});
    }
}

ScanResult *
scan_read(const ScanCommand *command, const char *output, size_t n, GError **error)
{
    const struct Reader *reader = find_reader(command->name);
    g_autoptr(GHashTable) asked = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(ScanResult) result = g_new0(ScanResult, 1);
    g_autoptr(GError) failed = NULL;
    Reading in = {result, asked, seen};

    result->findings = g_ptr_array_new_with_free_func(finding_free);
    for (guint i = 0; i < command->paths->len; i++)
        g_hash_table_add(asked, command->paths->pdata[i]);
    if (reader == NULL || !reader->read(&in, output, n, &failed)) {
        err_set(error, ERR_INVALID, "%s did not answer as it should: %s", command->name,
                failed != NULL ? failed->message : "nobody knows it");
        return NULL;
    }
    if (reader->tells_seen)
        add_unread(&in, command->paths);
    return g_steal_pointer(&result);
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

    for (guint i = 0; i < MIN(result->findings->len, SCAN_FINDINGS_MAX); i++) {
        const ScanFinding *f = result->findings->pdata[i];
        g_autofree char *body = g_strdup_printf("%s %s: %s", name, f->rule, f->text);

        json_array_append_new(
            list, json_pack("{s:s, s:I, s:s, s:s, s:s}", "path", f->path, "line", (json_int_t)f->line,
                            "severity", scan_severity_name(f->severity), "rule", f->rule, "body", body));
    }
    return list;
}

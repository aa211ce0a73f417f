/* SPDX-License-Identifier: Apache-2.0 */
/* Tools for one file: read, write, edit.  Nothing outside the work tree is touched, links included. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/tool.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/path.h"

enum { PATH_BYTES_MAX = 4096, LINES_SHOWN = 800, LINE_MAX_NUMBER = 100 * 1000 * 1000 };

char *
tool_path(const Work *work, const char *path, GError **error)
{
    const char *root = work->brief->workdir;
    size_t n = strlen(root);

    while (n > 1 && root[n - 1] == '/')
        n--;
    if (path[0] == '/') {
        if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0')) {
            err_set(error, ERR_INVALID, "'%s' is outside the work tree %s", path, root);
            return NULL;
        }
        path += n;
    }
    path += strspn(path, "/");
    return g_strdup(*path != '\0' ? path : ".");
}

char *
tool_load(const Work *work, const char *path, size_t *ret_len, GError **error)
{
    autofd fd = open_beneath(work->root_fd, path, O_RDONLY | O_NONBLOCK, 0, error);
    struct stat st;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) < 0) {
        err_errno(error, "stat '%s'", path);
        return NULL;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > TOOL_FILE_MAX) {
        err_set(error, S_ISREG(st.st_mode) ? ERR_LIMIT : ERR_INVALID, "'%s' is %s", path,
                S_ISDIR(st.st_mode)   ? "a folder"
                : S_ISREG(st.st_mode) ? "too large"
                                      : "no regular file");
        return NULL;
    }
    g_autofree char *text = g_malloc((gsize)st.st_size + 1);
    ssize_t n = io_read_full(fd, text, (size_t)st.st_size);
    if (n < 0) {
        err_errno(error, "read '%s'", path);
        return NULL;
    }
    text[n] = '\0';
    *ret_len = (size_t)n;
    return g_steal_pointer(&text);
}

/* The folder of `path`, made with all above it; -1 with an error. */
static int
open_folder(const Work *work, const char *path, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(path);
    autofd fd = open_beneath(work->root_fd, folder, O_PATH | O_DIRECTORY, 0, NULL);

    if (fd >= 0)
        return g_steal_fd(&fd);
    if (strcmp(folder, ".") == 0 || strcmp(folder, "/") == 0) {
        err_set(error, ERR_INVALID, "'%s' is no name of a file in the work tree", path);
        return -1;
    }
    autofd above = open_folder(work, folder, error);
    g_autofree char *name = g_path_get_basename(folder);
    if (above < 0)
        return -1;
    if (mkdirat(above, name, 0777) < 0 && errno != EEXIST) {
        err_errno(error, "make the folder '%s'", folder);
        return -1;
    }
    return open_beneath(work->root_fd, folder, O_PATH | O_DIRECTORY, 0, error);
}

bool
tool_store(const Work *work, const char *path, const char *text, size_t len, GError **error)
{
    autofd folder = open_folder(work, path, error);

    if (folder < 0)
        return false;
    autofd fd = open_beneath(work->root_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0666, error);
    return fd >= 0 && (io_write_all(fd, text, len) || err_errno(error, "write '%s'", path));
}

static char *
load_given(const Work *work, const char *given, char **ret_path, size_t *ret_len, GError **error)
{
    *ret_path = tool_path(work, given, error);
    return *ret_path != NULL ? tool_load(work, *ret_path, ret_len, error) : NULL;
}

/* ---- read ---- */

static void
say_lines(GString *out, const char *text, size_t len, gint64 from, gint64 count)
{
    const char *end = text + len;
    gint64 number = 1, shown = 0;

    for (const char *line = text; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t n = (size_t)((stop != NULL ? stop : end) - line);

        if (number >= from && shown < count && out->len < TOOL_RESULT_MAX) {
            g_autofree char *valid = g_utf8_make_valid(line, (gssize)n);

            g_string_append_printf(out, "%6" G_GINT64_FORMAT "\t%s\n", number, valid);
            shown++;
        }
        line = stop != NULL ? stop + 1 : end;
    }
    if (shown == 0)
        g_string_append_printf(out, "(no lines there: the file has %" G_GINT64_FORMAT ")", number - 1);
    else if (from > 1 || from + shown < number)
        g_string_append_printf(out,
                               "[lines %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT "]",
                               from, from + shown - 1, number - 1);
}

static bool
read_run(Work *work, Json *arguments, ToolResult *result, GError **error)
{
    const char *given = NULL;
    gint64 from = 1, count = LINES_SHOWN;
    const JsonField fields[] = {
        {"path", JSON_KIND_STRING, &given, true, 1, PATH_BYTES_MAX},
        {"from", JSON_KIND_INT, &from, false, 1, LINE_MAX_NUMBER},
        {"lines", JSON_KIND_INT, &count, false, 1, LINE_MAX_NUMBER},
        {NULL},
    };
    size_t len;

    if (!json_read(arguments, fields, error))
        return false;
    g_autofree char *path = NULL;
    g_autofree char *text = load_given(work, given, &path, &len, error);
    if (text == NULL)
        return false;
    if (memchr(text, '\0', len) != NULL) {
        g_string_printf(result->text, "'%s' is not text (%zu bytes).", path, len);
        return true;
    }
    say_lines(result->text, text, len, from, count);
    return true;
}

const Tool tool_read = {
    .name = "read",
    .description = "Read a file of the work tree, with the numbers of its lines.",
    .parameters = "{\"type\": \"object\", \"properties\": {"
                  "\"path\": {\"type\": \"string\"},"
                  "\"from\": {\"type\": \"integer\", \"description\": \"first line, from 1\"},"
                  "\"lines\": {\"type\": \"integer\", \"description\": \"how many, 800 if not given\"}},"
                  "\"required\": [\"path\"]}",
    .flags = TOOL_REPEATABLE,
    .run = read_run,
};

/* ---- write ---- */

static bool
write_run(Work *work, Json *arguments, ToolResult *result, GError **error)
{
    const char *given = NULL, *text = NULL;
    const JsonField fields[] = {
        {"path", JSON_KIND_STRING, &given, true, 1, PATH_BYTES_MAX},
        {"text", JSON_KIND_STRING, &text, true, 0, TOOL_FILE_MAX},
        {NULL},
    };

    if (!json_read(arguments, fields, error))
        return false;
    g_autofree char *path = tool_path(work, given, error);
    if (path == NULL || !tool_store(work, path, text, strlen(text), error))
        return false;
    g_string_printf(result->text, "wrote %s (%zu bytes)", path, strlen(text));
    return true;
}

const Tool tool_write = {
    .name = "write",
    .description = "Write a whole file of the work tree; its folders are made.",
    .parameters = "{\"type\": \"object\", \"properties\": {"
                  "\"path\": {\"type\": \"string\"}, \"text\": {\"type\": \"string\"}},"
                  "\"required\": [\"path\", \"text\"]}",
    .flags = TOOL_REPEATABLE,
    .run = write_run,
};

/* ---- edit ---- */

static guint
count_of(const char *text, const char *part)
{
    guint n = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        n++;
    return n;
}

static bool
replace(const char *text, const char *old, const char *new, char **ret_text, GError **error)
{
    guint n = count_of(text, old);

    if (n == 0)
        return err_set(error, ERR_NOT_FOUND,
                       "'old' is not in the file; it must be copied exactly, white space included. Read the "
                       "file again");
    if (n > 1)
        return err_set(error, ERR_CONFLICT, "'old' is there %u times; give more of what is around it", n);
    const char *at = strstr(text, old);
    g_autofree char *before = g_strndup(text, (gsize)(at - text));
    *ret_text = g_strconcat(before, new, at + strlen(old), NULL);
    return true;
}

static bool
edit_run(Work *work, Json *arguments, ToolResult *result, GError **error)
{
    const char *given = NULL, *old = NULL, *new = NULL;
    const JsonField fields[] = {
        {"path", JSON_KIND_STRING, &given, true, 1, PATH_BYTES_MAX},
        {"old", JSON_KIND_STRING, &old, true, 1, TOOL_FILE_MAX},
        {"new", JSON_KIND_STRING, &new, true, 0, TOOL_FILE_MAX},
        {NULL},
    };
    g_autofree char *changed = NULL;
    size_t len;

    if (!json_read(arguments, fields, error))
        return false;
    g_autofree char *path = NULL;
    g_autofree char *text = load_given(work, given, &path, &len, error);
    if (text == NULL)
        return false;
    if (strlen(text) != len)
        return err_set(error, ERR_CONFLICT, "'%s' is not text", path);
    if (!replace(text, old, new, &changed, error) || !tool_store(work, path, changed, strlen(changed), error))
        return false;
    g_string_printf(result->text, "changed %s", path);
    return true;
}

const Tool tool_edit = {
    .name = "edit",
    .description = "Replace a piece of a file: `old`, which must be there exactly once, by `new`.",
    .parameters = "{\"type\": \"object\", \"properties\": {"
                  "\"path\": {\"type\": \"string\"}, \"old\": {\"type\": \"string\"}, \"new\": {\"type\": "
                  "\"string\"}}, \"required\": [\"path\", \"old\", \"new\"]}",
    .run = edit_run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* A regular expression over the files of the work tree. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/tool.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/path.h"

enum {
    PATTERN_MAX = 4096,
    MATCHES_MAX = 200,
    LINE_SHOWN = 300,
    DEPTH_MAX = 40,
    FILES_MAX = 50 * 1000,
    SEARCH_FILE_MAX = 2 * 1024 * 1024,
    SEARCH_MS = 20 * 1000,
};

typedef struct Search {
    GRegex *regex;
    GPatternSpec *names; /* NULL: all */
    GString *out;
    guint matches, files;
    gint64 deadline_us;
    const char *stopped; /* why it ended early; NULL: it did not */
} Search;

static bool
goes_on(Search *s)
{
    if (s->matches >= MATCHES_MAX)
        s->stopped = "there are more matches";
    else if (s->files >= FILES_MAX)
        s->stopped = "there are more files";
    else if (clock_mono_us() > s->deadline_us)
        s->stopped = "it took too long";
    return s->stopped == NULL;
}

static void
look_at_line(Search *s, const char *path, guint number, const char *line, size_t n)
{
    if (!g_utf8_validate(line, (gssize)n, NULL) ||
        !g_regex_match_full(s->regex, line, (gssize)n, 0, 0, NULL, NULL))
        return;
    g_autofree char *shown = g_utf8_make_valid(line, (gssize)MIN(n, (size_t)LINE_SHOWN));

    g_string_append_printf(s->out, "%s:%u:%s%s\n", path, number, shown, n > LINE_SHOWN ? " …" : "");
    s->matches++;
}

static void
look_at_text(Search *s, const char *path, const char *text, size_t len)
{
    const char *end = text + len;
    guint number = 1;

    if (memchr(text, '\0', len) != NULL)
        return;
    for (const char *line = text; line < end && goes_on(s); number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        stop = stop != NULL ? stop : end;
        look_at_line(s, path, number, line, (size_t)(stop - line));
        line = stop + 1;
    }
}

static void
look_at_file(Search *s, int folder, const char *name, const char *path)
{
    autofd fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    s->files++;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SEARCH_FILE_MAX)
        return;
    g_autofree char *text = g_malloc((gsize)st.st_size + 1);
    ssize_t n = io_read_full(fd, text, (size_t)st.st_size);
    if (n > 0)
        look_at_text(s, path, text, (size_t)n);
}

static int
by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In order, so that the same question has the same answer. */
static GPtrArray *
list_names(int folder)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;

    if (dir == NULL) {
        auto_close(&copy);
        return names;
    }
    for (struct dirent *e = readdir(dir); e != NULL && names->len < FILES_MAX; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && strcmp(e->d_name, ".git") != 0 &&
            strcmp(e->d_name, "node_modules") != 0)
            g_ptr_array_add(names, g_strdup(e->d_name));
    }
    closedir(dir);
    g_ptr_array_sort(names, by_name);
    return names;
}

static void
look_at_folder(Search *s, int folder, const char *path, guint depth)
{
    g_autoptr(GPtrArray) names = list_names(folder);

    for (guint i = 0; i < names->len && goes_on(s); i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autofree char *below = strcmp(path, ".") == 0 ? g_strdup(name)
                                                        : g_strdup_printf("%s/%s", path, name);
        autofd sub = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (sub >= 0 && depth < DEPTH_MAX)
            look_at_folder(s, sub, below, depth + 1);
        else if (sub < 0 && (s->names == NULL || g_pattern_spec_match_string(s->names, name)))
            look_at_file(s, folder, name, below);
    }
}

static bool
search(const Work *work, Search *s, const char *path, GError **error)
{
    autofd fd = open_beneath(work->root_fd, path, O_RDONLY | O_NONBLOCK, 0, error);
    struct stat st;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        look_at_folder(s, fd, path, 0);
        return true;
    }
    size_t len;
    g_autofree char *text = tool_load(work, path, &len, error);
    if (text == NULL)
        return false;
    look_at_text(s, path, text, len);
    return true;
}

static bool
search_run(Work *work, Json *arguments, ToolResult *result, GError **error)
{
    const char *pattern = NULL, *given = ".", *files = NULL;
    const JsonField fields[] = {
        {"pattern", JSON_KIND_STRING, &pattern, true, 1, PATTERN_MAX},
        {"path", JSON_KIND_STRING, &given, false, 1, PATTERN_MAX},
        {"files", JSON_KIND_STRING, &files, false, 1, PATTERN_MAX},
        {NULL},
    };
    Search s = {.out = result->text, .deadline_us = clock_mono_us() + SEARCH_MS * 1000};
    g_autoptr(GError) bad = NULL;

    if (!json_read(arguments, fields, error))
        return false;
    g_autofree char *path = tool_path(work, given, error);
    if (path == NULL)
        return false;
    g_autoptr(GRegex) regex = g_regex_new(pattern, G_REGEX_OPTIMIZE, 0, &bad);
    if (regex == NULL)
        return err_set(error, ERR_INVALID, "'pattern': %s", bad->message);
    g_autoptr(GPatternSpec) names = files != NULL ? g_pattern_spec_new(files) : NULL;
    s.regex = regex;
    s.names = names;
    if (!search(work, &s, path, error))
        return false;
    if (s.matches == 0)
        g_string_append(result->text, "No match.");
    if (s.stopped != NULL)
        g_string_append_printf(result->text, "[ended early: %s; make the search narrower]", s.stopped);
    return true;
}

const Tool tool_search = {
    .name = "search",
    .description =
        "Find lines that match a regular expression (PCRE) in the files of the work tree; .git and "
        "node_modules are left out.",
    .parameters = "{\"type\": \"object\", \"properties\": {"
                  "\"pattern\": {\"type\": \"string\"},"
                  "\"path\": {\"type\": \"string\", \"description\": \"file or folder; all if not given\"},"
                  "\"files\": {\"type\": \"string\", \"description\": \"names of files, as in *.py\"}},"
                  "\"required\": [\"pattern\"]}",
    .flags = TOOL_SLOW | TOOL_REPEATABLE,
    .run = search_run,
};

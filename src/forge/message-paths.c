/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/message-paths.h"

#include <string.h>

#include "forge/diff.h"
#include "forge/message-core.h"

/* In the order in which one wins where there are several. */
typedef enum PathKind { PATH_CODE, PATH_BUILD, PATH_CI, PATH_TEST, PATH_DOCS, PATH_KIND_MAX } PathKind;

static const char *const kind_types[PATH_KIND_MAX] = {
    [PATH_BUILD] = "build",
    [PATH_CI] = "ci",
    [PATH_TEST] = "test",
    [PATH_DOCS] = "docs",
};

/* Globs over the whole path in lower case, where '*' is any characters, '/' too.  The first one
 * that fits. */
static const struct {
    const char *glob;
    PathKind kind;
} globs[] = {
    {".github/*", PATH_CI},
    {".circleci/*", PATH_CI},
    {".gitlab-ci.yml", PATH_CI},
    {".travis.yml", PATH_CI},
    {"*jenkinsfile", PATH_CI},
    {"azure-pipelines*", PATH_CI},
    {"coop.yaml", PATH_CI},
    {"test/*", PATH_TEST},
    {"tests/*", PATH_TEST},
    {"*/test/*", PATH_TEST},
    {"*/tests/*", PATH_TEST},
    {"*__tests__/*", PATH_TEST},
    {"spec/*", PATH_TEST},
    {"*/spec/*", PATH_TEST},
    {"test_*", PATH_TEST},
    {"*/test_*", PATH_TEST},
    {"*_test.?*", PATH_TEST},
    {"*.test.?*", PATH_TEST},
    {"*.spec.?*", PATH_TEST},
    {"docs/*", PATH_DOCS},
    {"doc/*", PATH_DOCS},
    {"*/docs/*", PATH_DOCS},
    {"*.md", PATH_DOCS},
    {"*.rst", PATH_DOCS},
    {"*.adoc", PATH_DOCS},
    {"*readme*", PATH_DOCS},
    {"*changelog*", PATH_DOCS},
    {"*license*", PATH_DOCS},
    {"*meson.build", PATH_BUILD},
    {"*meson_options.txt", PATH_BUILD},
    {"*cmakelists.txt", PATH_BUILD},
    {"*.cmake", PATH_BUILD},
    {"*makefile", PATH_BUILD},
    {"*.mk", PATH_BUILD},
    {"*dockerfile", PATH_BUILD},
    {"*package.json", PATH_BUILD},
    {"*package-lock.json", PATH_BUILD},
    {"*yarn.lock", PATH_BUILD},
    {"*pnpm-lock.yaml", PATH_BUILD},
    {"*tsconfig*.json", PATH_BUILD},
    {"*cargo.toml", PATH_BUILD},
    {"*cargo.lock", PATH_BUILD},
    {"*go.mod", PATH_BUILD},
    {"*go.sum", PATH_BUILD},
    {"*pyproject.toml", PATH_BUILD},
    {"*setup.py", PATH_BUILD},
    {"*setup.cfg", PATH_BUILD},
    {"*requirements*.txt", PATH_BUILD},
    {"*pom.xml", PATH_BUILD},
    {"*build.gradle*", PATH_BUILD},
};

static PathKind
kind_of(const char *path)
{
    g_autofree char *valid = g_utf8_make_valid(path, -1);
    g_autofree char *lower = g_ascii_strdown(valid, -1);

    for (size_t i = 0; i < G_N_ELEMENTS(globs); i++) {
        if (g_pattern_match_simple(globs[i].glob, lower))
            return globs[i].kind;
    }
    return PATH_CODE;
}

/* Of code: something that was not there, the same in another place, or a correction. */
static const char *
type_of_code(const GPtrArray *files)
{
    bool added = false, edited = false;

    for (guint i = 0; i < files->len; i++) {
        const DiffFile *file = files->pdata[i];

        if (kind_of(file->path) != PATH_CODE)
            continue;
        added |= file->status == DIFF_ADDED;
        edited |= file->status == DIFF_MODIFIED || file->status == DIFF_TYPE_CHANGED;
    }
    return added ? "feat" : edited ? "fix" : "refactor";
}

const char *
message_type(const GPtrArray *files)
{
    PathKind first = PATH_KIND_MAX;

    for (guint i = 0; i < files->len; i++)
        first = MIN(first, kind_of(((const DiffFile *)files->pdata[i])->path));
    if (first == PATH_KIND_MAX)
        return "chore";
    return first == PATH_CODE ? type_of_code(files) : kind_types[first];
}

/* ---- scope ---- */

/* Folders of which every project has one. */
static bool
says_nothing(const char *folder)
{
    static const char *const common[] = {"src",      "lib",      "include", "test", "tests",
                                         "spec",     "docs",     "doc",     "app",  "pkg",
                                         "packages", "internal", "source",  "main", ".github"};

    for (size_t i = 0; i < G_N_ELEMENTS(common); i++) {
        if (strcmp(folder, common[i]) == 0)
            return true;
    }
    return false;
}

/* How many bytes of `path`, whole folders, `other` begins with too. */
static size_t
common_folders(const char *path, size_t n, const char *other)
{
    size_t same = 0;

    for (size_t i = 0; i < n && path[i] == other[i]; i++) {
        if (path[i] == '/')
            same = i + 1;
    }
    return same;
}

static bool
is_scope(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && n <= MESSAGE_SCOPE_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

char *
message_scope(const GPtrArray *files)
{
    const DiffFile *first = files->len > 0 ? files->pdata[0] : NULL;
    const char *path = first != NULL ? first->path : "";
    const char *slash = strrchr(path, '/');
    size_t n = slash != NULL ? (size_t)(slash - path) + 1 : 0;

    for (guint i = 1; i < files->len; i++)
        n = common_folders(path, n, ((const DiffFile *)files->pdata[i])->path);
    g_autofree char *common = g_strndup(path, n);
    g_auto(GStrv) folders = g_strsplit(common, "/", -1);

    for (guint i = g_strv_length(folders); i > 0; i--) {
        if (is_scope(folders[i - 1]) && !says_nothing(folders[i - 1]))
            return g_strdup(folders[i - 1]);
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "git-main/vet.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_MAX = 64 << 10, NAME_MAX_LEN = 80 };

/* Sections with a name of their own ("remote.NAME.url") are written without it. */
static const char *const allowed[] = {
    "core.bare",     "core.filemode",          "core.ignorecase",       "core.logallrefupdates",
    "core.symlinks", "core.precomposeunicode", "core.sharedrepository", "core.repositoryformatversion",
    "remote.fetch",  "remote.mirror",          "remote.tagopt",         "remote.url",
    "gc.auto",       "gc.pruneexpire",         "gc.reflogexpire",       NULL,
};

/* Each leads git to files elsewhere. */
static const char *const absent[] = {"commondir", "gitdir", "config.worktree", "objects/info/alternates",
                                     NULL};

static char *
trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

/* "[core]" or "[remote \"origin\"]" and nothing behind. */
static bool
read_section(char *line, char ret_section[NAME_MAX_LEN])
{
    size_t n = 0;

    for (line++; isalnum((unsigned char)*line) && n + 1 < NAME_MAX_LEN; line++)
        ret_section[n++] = *line;
    ret_section[n] = '\0';
    if (strncmp(line, " \"", 2) == 0) {
        line += 2;
        line += strcspn(line, "\"\\");
        if (*line++ != '"')
            return false;
    }
    return n > 0 && strcmp(line, "]") == 0;
}

static bool
is_allowed(const char *section, const char *line, const char **ret_problem)
{
    static char name[2 * NAME_MAX_LEN];
    size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");

    snprintf(name, sizeof name, "%s.%.*s", section, (int)(n < NAME_MAX_LEN ? n : NAME_MAX_LEN - 1), line);
    for (size_t i = 0; allowed[i] != NULL; i++) {
        if (strcasecmp(name, allowed[i]) == 0)
            return true;
    }
    *ret_problem = name;
    return false;
}

/* A stricter language than git's: what it does not have is refused, not guessed at. */
bool
vet_config(char *text, const char **ret_problem)
{
    char section[NAME_MAX_LEN] = "";

    *ret_problem = "its configuration cannot be read";
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        line = trim(line);
        size_t n = strlen(line);

        if (n == 0 || line[0] == '#' || line[0] == ';')
            continue;
        /* The next line would belong to this one. */
        if (line[n - 1] == '\\')
            return false;
        if (line[0] == '[' ? !read_section(line, section) : !is_allowed(section, line, ret_problem))
            return false;
    }
    return true;
}

static bool
vet_config_file(const char **ret_problem)
{
    static char text[CONFIG_MAX + 1];
    int fd = open("config", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n = -1;

    *ret_problem = "its configuration cannot be read";
    if (fd < 0)
        return errno == ENOENT;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= CONFIG_MAX)
        n = read(fd, text, CONFIG_MAX);
    close(fd);
    if (n != st.st_size || memchr(text, '\0', (size_t)n) != NULL)
        return false;
    text[n] = '\0';
    return vet_config(text, ret_problem);
}

bool
vet_repository(const char **ret_problem)
{
    for (size_t i = 0; absent[i] != NULL; i++) {
        struct stat st;

        if (lstat(absent[i], &st) == 0) {
            *ret_problem = absent[i];
            return false;
        }
    }
    return vet_config_file(ret_problem);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "hook/hook.h"

static const char heads[] = "refs/heads/";
static const char tags[] = "refs/tags/";

enum { REF_LIST_MAX = 32 << 20 };

static bool
is_set(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && strcmp(value, "1") == 0;
}

static bool
begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- names ---- */

/* Names that can be told apart on every file system and typed after every command. */
static bool
is_plain_name(const char *ref, const char *more)
{
    const char *name = strchr(ref + strlen("refs/"), '/');
    char before = '/';

    for (const char *p = name != NULL ? name + 1 : ""; *p != '\0'; before = *p++) {
        if (!isalnum((unsigned char)*p) && strchr("._/-", *p) == NULL && strchr(more, *p) == NULL)
            return false;
        if (before == '/' && (*p == '-' || *p == '.'))
            return false;
    }
    return true;
}

static bool
check_name(const Update *u)
{
    const char *own = getenv(HOOK_REF);

    if (own != NULL)
        return strcmp(u->ref, own) == 0 ||
               refuse("%s cannot be pushed to from here; the one that can is %s", u->ref, own);
    if (!begins(u->ref, heads) && !begins(u->ref, tags))
        return refuse("%s is neither a branch nor a tag", u->ref);
    if (!is_zero(u->old) || is_plain_name(u->ref, begins(u->ref, tags) ? "+@~" : ""))
        return true;
    return refuse(
        "%s: a new name may have letters, digits, '.', '_', '/' and '-' only, and no part may begin "
        "with '-' or '.'",
        u->ref);
}

/* One that leads to another would move that one.  git keeps such a ref as a file "ref: NAME", or as a
 * link, and in no other way: coop-git lets no repository say that it keeps its refs differently. */
static bool
check_plain(const Update *u)
{
    static const char mark[] = "ref:";
    char path[PATH_MAX], bytes[sizeof mark - 1];
    const char *folder = getenv("GIT_DIR");
    int n = snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : ".", u->ref);
    int fd = n < (int)sizeof path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || refuse("%s is not a ref of its own", u->ref);
    ssize_t got = read(fd, bytes, sizeof bytes);
    /* A folder that is left of other refs is none itself. */
    bool plain = got < 0 ? errno == EISDIR
                         : (size_t)got < sizeof bytes || memcmp(bytes, mark, sizeof bytes) != 0;

    close(fd);
    return plain || refuse("%s is not a ref of its own", u->ref);
}

/* ---- twins ---- */

static bool
has_twin(const char *list, const Update *u)
{
    for (const char *line = list; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t n = strcspn(line, "\n");

        if (n == strlen(u->ref) && strncasecmp(line, u->ref, n) == 0 && strncmp(line, u->ref, n) != 0)
            return true;
        if (line[n] == '\0')
            break;
    }
    return false;
}

static bool
check_twins(const Push *push)
{
    const char *argv[] = {"git", "for-each-ref", "--format=%(refname)", NULL};
    size_t creates = 0, n;

    for (size_t i = 0; i < push->n; i++)
        creates += is_zero(push->updates[i].old);
    if (creates == 0 || getenv(HOOK_REF) != NULL)
        return true;
    char *list = ask_text(argv, REF_LIST_MAX, &n);
    bool ok = list != NULL || refuse("the refs cannot be read");

    for (size_t i = 0; i < push->n && ok; i++) {
        if (is_zero(push->updates[i].old) && has_twin(list, &push->updates[i]))
            ok = refuse("%s: there is one that differs only in upper and lower case", push->updates[i].ref);
    }
    free(list);
    return ok;
}

/* ---- what may become of them ---- */

/* One '*' stands for anything. */
static bool
matches(const char *pattern, size_t n, const char *ref)
{
    const char *star = memchr(pattern, '*', n);
    size_t len = strlen(ref);

    if (star == NULL)
        return n == len && memcmp(pattern, ref, n) == 0;
    size_t first = (size_t)(star - pattern), last = n - first - 1;

    return len >= first + last && memcmp(pattern, ref, first) == 0 &&
           memcmp(star + 1, ref + len - last, last) == 0;
}

static bool
is_protected(const char *ref)
{
    const char *list = getenv(HOOK_PROTECTED);

    while (list != NULL && *list != '\0') {
        size_t n = strcspn(list, "\n");

        if (n > 0 && matches(list, n, ref))
            return true;
        list += n + (list[n] == '\n');
    }
    return false;
}

static bool
check_forward(Commits *commits, const Update *u)
{
    const char *argv[] = {"git", "merge-base", "--is-ancestor", u->old, u->new, NULL};

    return commits_lead(commits, u->new, u->old) || ask_code(argv) == 0 ||
           refuse("%s is at %s, and %s does not contain that.  Fetch it, rebase or merge, and push again; "
                  "nothing was changed",
                  u->ref, u->old, u->new);
}

static bool
is_move(const Update *u)
{
    return !is_zero(u->old) && !is_zero(u->new);
}

static bool
check_rights(const Update *u)
{
    bool guarded = is_protected(u->ref);

    if (is_zero(u->new))
        return (is_set(HOOK_DELETE) && !guarded && !is_zero(u->old)) ||
               refuse("%s may not be removed", u->ref);
    const char *standard = getenv(HOOK_DEFAULT);
    bool is_first = is_zero(u->old) && standard != NULL && strcmp(u->ref, standard) == 0;

    return !guarded || is_first || is_set(HOOK_ADVANCE) ||
           refuse("%s is protected: push a branch of your own and open a pull request", u->ref);
}

bool
refs_check(const Push *push)
{
    for (size_t i = 0; i < push->n; i++) {
        const Update *u = &push->updates[i];

        if (!check_name(u) || !check_plain(u) || !check_rights(u))
            return false;
    }
    return check_twins(push);
}

bool
refs_check_moves(const Push *push, Commits *commits)
{
    for (size_t i = 0; i < push->n; i++) {
        const Update *u = &push->updates[i];
        bool anywhere = is_set(HOOK_FORCE) && !is_protected(u->ref);

        if (is_move(u) && !anywhere && !check_forward(commits, u))
            return false;
    }
    return true;
}

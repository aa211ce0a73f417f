/* SPDX-License-Identifier: Apache-2.0 */
/* coop-hook: git runs it as pre-receive before anything of a push has moved, and as post-receive with
 * what has.  The first refuses the push as a whole, the second tells the server.  As alternate-refs it
 * names none. */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hook/hook.h"

bool
is_zero(const char *oid)
{
    return strspn(oid, "0") == OID_LEN;
}

bool
refuse(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("coop: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\n", stderr);
    va_end(args);
    return false;
}

/* ---- what is pushed ---- */

static char *
read_input(size_t *ret_n)
{
    char *text = malloc(HOOK_REPORT_MAX + 1);
    size_t n = 0;
    ssize_t got;

    while (text != NULL && n <= HOOK_REPORT_MAX &&
           ((got = read(STDIN_FILENO, text + n, HOOK_REPORT_MAX + 1 - n)) > 0 || (got < 0 && errno == EINTR)))
        n += got > 0 ? (size_t)got : 0;
    *ret_n = n;
    return text;
}

static bool
is_oid(const char *text)
{
    return strspn(text, "0123456789abcdef") == OID_LEN;
}

/* "OLD NEW REF\n"; the next line's start, NULL: this is none. */
static char *
read_update(char *line, char *end, Update *ret)
{
    char *stop = memchr(line, '\n', (size_t)(end - line));
    char *ref = line + 2 * (OID_LEN + 1);

    if (stop == NULL || stop <= ref || stop - ref > HOOK_REF_MAX || !is_oid(line) || line[OID_LEN] != ' ' ||
        !is_oid(line + OID_LEN + 1) || ref[-1] != ' ')
        return NULL;
    for (const char *p = ref; p < stop; p++) {
        if (iscntrl((unsigned char)*p) || *p == ' ')
            return NULL;
    }
    line[OID_LEN] = ref[-1] = *stop = '\0';
    *ret = (Update){.old = line, .new = line + OID_LEN + 1, .ref = ref};
    return stop + 1;
}

static bool
read_push(Push *push)
{
    size_t n;

    push->input = read_input(&n);
    push->updates = calloc(HOOK_REFS_MAX, sizeof *push->updates);
    if (push->input == NULL || push->updates == NULL)
        return refuse("out of memory");
    char *line = push->input, *end = push->input + n;

    while (line < end) {
        if (push->n == HOOK_REFS_MAX || n > HOOK_REPORT_MAX)
            return refuse("more than %d refs at once", HOOK_REFS_MAX);
        line = read_update(line, end, &push->updates[push->n++]);
        if (line == NULL)
            return refuse("this push cannot be read");
    }
    return true;
}

/* Neither is offered: whoever sends them all the same has something in mind. */
static bool
is_plain(void)
{
    const char *options = getenv("GIT_PUSH_OPTION_COUNT");

    return (getenv("GIT_PUSH_CERT") == NULL && (options == NULL || strcmp(options, "0") == 0)) ||
           refuse("pushes with a certificate or with options are not taken");
}

/* ---- the server ---- */

static bool
has_server(void)
{
    struct pollfd report = {.fd = HOOK_REPORT_FD, .events = POLLOUT};

    return poll(&report, 1, 0) == 1 && (report.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0 &&
           (report.revents & POLLOUT) != 0;
}

static bool
tell(const Push *push)
{
    bool ok = true;

    for (size_t i = 0; i < push->n && ok; i++)
        ok = dprintf(HOOK_REPORT_FD, "%s %s %s\n", push->updates[i].old, push->updates[i].new,
                     push->updates[i].ref) > 0;
    return ok;
}

static bool
check(const Push *push)
{
    static Commits commits;
    bool ok = refs_check(push) && commits_read(push, &commits) && refs_check_moves(push, &commits) &&
              commits_check(&commits);

    free(commits.text);
    return ok;
}

int
main(int argc, char **argv)
{
    const char *name = argc > 0 ? strrchr(argv[0], '/') : NULL;
    Push push = {0};
    bool ok;

    /* A server that goes away is found out by what a write returns. */
    signal(SIGPIPE, SIG_IGN);
    name = name != NULL ? name + 1 : argc > 0 ? argv[0] : "";
    if (strcmp(name, "post-receive") == 0)
        ok = read_push(&push) && tell(&push);
    else if (strcmp(name, "pre-receive") == 0)
        ok = read_push(&push) && is_plain() && check(&push) &&
             (has_server() || refuse("the server is gone; push again later"));
    else if (strcmp(name, "alternate-refs") == 0)
        ok = true;
    else
        ok = refuse("this is run by git, when something is pushed");
    free(push.updates);
    free(push.input);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

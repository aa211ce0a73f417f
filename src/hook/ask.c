/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook/hook.h"

static int
wait_code(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* git puts its own folder before all others in PATH.  `out` is its standard output; -1: nobody listens. */
static pid_t
start(const char *const argv[], int out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    int e = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    if (e == 0)
        e = out < 0 ? posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
                    : posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (e == 0)
        e = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return e == 0 ? pid : -1;
}

int
ask_code(const char *const argv[])
{
    pid_t pid = start(argv, -1);

    return pid < 0 ? -1 : wait_code(pid);
}

/* Closes `fd` when it has enough, which ends whoever writes. */
static char *
read_all(int fd, size_t max, size_t *ret_n)
{
    char *text = malloc(max + 1);
    size_t n = 0;
    ssize_t got = 1;

    while (text != NULL && n < max && got != 0) {
        got = read(fd, text + n, max - n);
        if (got < 0 && errno != EINTR)
            break;
        n += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (text != NULL)
        text[n] = '\0';
    *ret_n = n;
    return text;
}

char *
ask_text(const char *const argv[], size_t max, size_t *ret_n)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return NULL;
    pid_t pid = start(argv, ends[1]);

    close(ends[1]);
    char *text = read_all(ends[0], max, ret_n);
    int code = pid < 0 ? -1 : wait_code(pid);

    /* Cut off by us is no failure. */
    if (code == 0 || (text != NULL && *ret_n == max))
        return text;
    free(text);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for coop-init where the keeper is tested: says HELLO on its channel, then runs what it
 * is told.  A request is a packet: one byte, 'u' for the user 1000 or 'r' for root, and the
 * words of the command, each ended by NUL.  The answer is a packet: the exit code as a digit
 * string, a newline, and what the command wrote. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHANNEL = 3, PACKET_MAX = 65536, WORDS_MAX = 32, CODE_ROOM = 16, USER = 1000, SIGNAL_BASE = 128 };

static void
become_user(void)
{
    if (setresgid(USER, USER, USER) < 0 || setresuid(USER, USER, USER) < 0)
        _exit(126);
}

static void
write_score(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "500", 3);
        close(fd);
    }
}

static void
run_child(char *packet, size_t n, int out)
{
    char *words[WORDS_MAX + 1];
    size_t count = 0;

    for (size_t at = 1; at < n && count < WORDS_MAX; at += strlen(packet + at) + 1)
        words[count++] = packet + at;
    words[count] = NULL;
    write_score();
    if (dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    setsid();
    if (packet[0] == 'u')
        become_user();
    execv(words[0], words);
    printf("exec %s: %s\n", words[0], strerror(errno));
    fflush(stdout);
    _exit(127);
}

/* Whoever else holds the pipe after the command has ended is not waited for. */
static size_t
collect(int in, pid_t pid, char *out, size_t size, int *ret_status)
{
    size_t used = 0;
    int over = 0;

    while (!over) {
        struct pollfd p = {.fd = in, .events = POLLIN};

        over = waitpid(pid, ret_status, WNOHANG) == pid;
        while (poll(&p, 1, over ? 0 : 20) > 0 && used < size) {
            ssize_t got = read(in, out + used, size - used);

            if (got <= 0)
                break;
            used += (size_t)got;
        }
    }
    return used;
}

static void
serve(char *packet, size_t n)
{
    static char answer[PACKET_MAX];
    int pipe_fds[2];
    int status = 0;

    packet[n] = '\0';
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        exit(1);
    pid_t pid = fork();

    if (pid == 0)
        run_child(packet, n, pipe_fds[1]);
    close(pipe_fds[1]);
    size_t used = pid < 0 ? 0
                          : collect(pipe_fds[0], pid, answer + CODE_ROOM, sizeof answer - CODE_ROOM, &status);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : SIGNAL_BASE + WTERMSIG(status);
    int digits = snprintf(answer, CODE_ROOM, "%d\n", pid < 0 ? -errno : code);

    memmove(answer + digits, answer + CODE_ROOM, used);
    close(pipe_fds[0]);
    (void)!send(CHANNEL, answer, (size_t)digits + used, MSG_NOSIGNAL);
}

static void
reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int
main(void)
{
    static char packet[PACKET_MAX + 1];
    int flags = fcntl(CHANNEL, F_GETFL);

    prctl(PR_SET_DUMPABLE, 0);
    (void)fcntl(CHANNEL, F_SETFL, flags & ~O_NONBLOCK);
    (void)fcntl(CHANNEL, F_SETFD, FD_CLOEXEC);
    (void)!send(CHANNEL, "HELLO", 5, MSG_NOSIGNAL);
    for (;;) {
        ssize_t n = recv(CHANNEL, packet, PACKET_MAX, 0);

        if (n <= 0)
            return 0;
        if (packet[0] == 'q')
            return packet[1];
        serve(packet, (size_t)n);
        reap();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/sudo-client.h"
#include "wire/frame.h"

enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127, EXIT_SIGNAL = 128 };

static void
say(int fd, const char *text)
{
    (void)!write(fd, text, strlen(text));
}

static int
complain(const char *problem, const char *more)
{
    say(STDERR_FILENO, "sudo: ");
    say(STDERR_FILENO, problem);
    say(STDERR_FILENO, more[0] != '\0' ? ": " : "");
    say(STDERR_FILENO, more);
    say(STDERR_FILENO, "\n");
    return SUDO_EXIT_FAILED;
}

/* -1: nobody is there, or it is not init. */
static int
connect_to_init(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0" SUDO_SOCKET};
    socklen_t n = offsetof(struct sockaddr_un, sun_path) + sizeof SUDO_SOCKET;
    struct ucred who;
    socklen_t who_n = sizeof who;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&name, n) < 0)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_n) == 0 && who.pid == 1 && who.uid == 0)
        return fd;
    errno = ECONNREFUSED;
    return -1;
}

/* The caller sees what it would have seen had it run the command itself. */
static int
end_like(int status)
{
    sigset_t set;

    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    (void)signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, WTERMSIG(status));
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)raise(WTERMSIG(status));
    return EXIT_SIGNAL + WTERMSIG(status);
}

static int
run(int fd, SudoOptions *options)
{
    SudoRequest request;
    SudoSay failed;
    const char *problem;

    if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && !options->background)
        options->flags |= SUDO_TTY;
    char *text = sudo_request_make(options, environ, &request);
    if (text == NULL)
        return complain("the command and its environment are too large", "");
    int status = sudo_relay(fd, &request, text, &failed, &problem);
    if (status >= 0)
        return end_like(status);
    (void)complain(problem, failed.value != 0 ? strerror(failed.value) : "");
    if (failed.stage != FAIL_EXEC)
        return SUDO_EXIT_FAILED;
    return failed.value == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}

/* The parent ends at once, the child is the command's client. */
static bool
leave(void)
{
    pid_t pid = fork();

    if (pid > 0)
        _exit(0);
    return pid == 0;
}

int
main(int argc, char **argv)
{
    SudoOptions options;
    const char *problem;

    if (!sudo_options_parse(argc, argv, &options, &problem))
        return complain(problem, "");
    if (options.action == SUDO_HELP || options.action == SUDO_VERSION_TEXT) {
        say(STDOUT_FILENO, options.action == SUDO_HELP ? sudo_help : "sudo of Coop\n");
        return 0;
    }
    int fd = connect_to_init();
    if (fd < 0)
        return complain(errno == ECONNREFUSED ? "the template of this box does not allow sudo"
                                              : "init cannot be reached",
                        errno == ECONNREFUSED ? "" : strerror(errno));
    if (options.action == SUDO_LIST)
        say(STDOUT_FILENO, "Any command, as any user of this box, without a password.\n");
    if (options.action != SUDO_RUN)
        return 0;
    if (options.background && !leave())
        return complain("there is no process to be had", strerror(errno));
    return run(fd, &options);
}

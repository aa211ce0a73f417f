/* SPDX-License-Identifier: Apache-2.0 */
/* Pid 1 of box-bare: starts the command as the user and waits for it. */
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USER = 1000, OUT_FD = 10 };

static void
be_command(char **argv)
{
    char *const env[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL};

    if (dup2(OUT_FD, STDOUT_FILENO) < 0 || close(OUT_FD) < 0 || setsid() < 0 || setgroups(0, NULL) < 0 ||
        setresgid(USER, USER, USER) < 0 || setresuid(USER, USER, USER) < 0)
        perror("box-bare-init");
    else
        execve(argv[0], argv, env);
    _exit(1);
}

int
main(int argc, char **argv)
{
    pid_t pid = argc > 1 ? fork() : -1;

    if (pid == 0)
        be_command(argv + 1);
    return pid > 0 && waitpid(pid, NULL, 0) == pid ? 0 : 1;
}

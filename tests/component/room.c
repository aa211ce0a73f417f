/* SPDX-License-Identifier: Apache-2.0 */
#include "room.h"

#include <glib.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

bool
room_possible(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(geteuid() == 0 && unshare(CLONE_NEWPID | CLONE_NEWNS) == 0 ? 0 : 1);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    g_test_skip("pid namespaces need root");
    return false;
}

static bool
cover(const char *path, const char *text)
{
    const char *copy = "/tmp/cover";

    return g_file_set_contents(copy, text, -1, NULL) && chmod(copy, 0644) == 0 &&
           mount(copy, path, NULL, MS_BIND, NULL) == 0 && unlink(copy) == 0;
}

/* As the keeper hands them on; whoever started the test may ignore some. */
static void
default_signals(void)
{
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);
}

bool
room_furnish(void)
{
    default_signals();
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("proc", "/proc", "proc", 0, NULL) == 0 &&
           mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") == 0 &&
           mount("tmpfs", "/var/tmp", "tmpfs", 0, "mode=1777") == 0 &&
           cover("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"
                                "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
                                "user:x:1000:1000::/tmp:/bin/sh\n") &&
           cover("/etc/group", "root:x:0:\nteam:x:2000:other,user\nuser:x:1000:\n");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From fork to exec.  Nothing outside this file runs between the two, but for the leader's few
 * lines.  Each process takes what it needs in this order and gives the rest away before it
 * touches anything the box wrote: descriptors, user, directory.
 */
#include "init/start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/builtin.h"
#include "init/leader.h"

enum { DEFAULTS_MAX = 5, ENTRY_MAX = PASSWD_PATH_MAX + 16 };

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

void
report_send(int fd, const Report *report)
{
    ssize_t n;

    /* A packet, or less than PIPE_BUF: whole or not at all. */
    do {
        n = write(fd, report, sizeof *report);
    } while (n < 0 && errno == EINTR);
}

void
start_fail(int fd, FrameStage stage)
{
    Report report = {.kind = REPORT_FAILED, .stage = (uint32_t)stage, .error = errno};

    report_send(fd, &report);
    _exit(1);
}

/* Who has changed its user is as dumpable as fs.suid_dumpable says: with 1 other processes of that
 * user can trace it, and what they write into memory that it shares would be done by the leader,
 * which is root. */
StartWay
start_way(void)
{
    int fd = open("/proc/sys/fs/suid_dumpable", O_RDONLY | O_CLOEXEC);
    char value = '?';

    if (fd < 0)
        return START_WAY_COPIED;
    (void)!read(fd, &value, 1);
    close(fd);
    return value == '0' || value == '2' ? START_WAY_SHARED : START_WAY_COPIED;
}

pid_t
start_run(const FrameStart *start, StartWay way, const UserMemory *memory, const StartFds *fds)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    /* All of them lie above LEADER_REPORT_FD, since init holds 0…3 itself; and with its number
     * init's channel is gone too. */
    if (dup2(fds->in, STDIN_FILENO) < 0 || dup2(fds->out, STDOUT_FILENO) < 0 ||
        dup2(fds->err, STDERR_FILENO) < 0 || dup3(fds->report, LEADER_REPORT_FD, O_CLOEXEC) < 0)
        _exit(1);
    if (syscall(SYS_close_range, LEADER_REPORT_FD + 1, ~0U, 0) < 0)
        start_fail(LEADER_REPORT_FD, FAIL_FORK);
    leader_run(start, way, memory);
}

static bool
drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

    return syscall(SYS_capset, &head, none) == 0;
}

/* Changing from uid 0 clears the permitted and effective sets but not the inheritable one; and
 * uid 0 itself without START_ROOT has none either, which no_new_privs keeps across exec. */
bool
start_become(const User *user, bool keep_capabilities)
{
    if (setgroups(user->n_groups, user->groups) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
        setresuid(user->uid, user->uid, user->uid) < 0)
        return false;
    return keep_capabilities || drop_capabilities();
}

void
oom_score_set(const char *score)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    (void)!write(fd, score, strlen(score));
    close(fd);
}

/* A directory that was moved out of sight, or one of /proc's magic ones, would show the command
 * what is not the box's. */
static bool
enter(const char *cwd)
{
    char real[FRAME_PATH_MAX];

    if (chdir(cwd) < 0 || getcwd(real, sizeof real) == NULL)
        return false;
    if (real[0] == '/' && strcmp(real, "/proc") != 0 && strncmp(real, "/proc/", 6) != 0)
        return true;
    errno = EACCES;
    return false;
}

static bool
enter_wanted(const char *cwd, const User *user)
{
    if (cwd[0] != '\0')
        return enter(cwd);
    return (user->home[0] == '/' && enter(user->home)) || enter("/");
}

static bool
env_has(const Program *program, const char *name, size_t n)
{
    for (size_t i = 0; i < program->envc; i++) {
        if (strncmp(program->envp[i], name, n) == 0 && program->envp[i][n] == '=')
            return true;
    }
    return false;
}

/* The request's environment, and what a login would have set where it says nothing. */
static void
make_env(const Program *program, const User *user, char (*texts)[ENTRY_MAX], const char **env)
{
    const struct {
        const char *name, *value;
    } defaults[DEFAULTS_MAX] = {
        {"PATH", default_path},
        {"HOME", user->home[0] == '/' ? user->home : "/"},
        {"SHELL", user->shell[0] == '/' ? user->shell : "/bin/sh"},
        {"USER", user->name},
        {"LOGNAME", user->name},
    };
    size_t n = 0;

    for (size_t i = 0; i < program->envc; i++)
        env[n++] = program->envp[i];
    for (size_t i = 0; i < DEFAULTS_MAX; i++) {
        if (defaults[i].value[0] == '\0' || env_has(program, defaults[i].name, strlen(defaults[i].name)))
            continue;
        (void)stpcpy(stpcpy(stpcpy(texts[i], defaults[i].name), "="), defaults[i].value);
        env[n++] = texts[i];
    }
    env[n] = NULL;
}

/* What they do is the default already, as it is for init. */
static void
unblock_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The terminal becomes the session's, and the user's: programs open it again by name. */
static bool
take_terminal(const User *user)
{
    return fchown(STDIN_FILENO, user->uid, user->gid) == 0 && ioctl(STDIN_FILENO, TIOCSCTTY, 0) == 0;
}

void
start_program(const Program *program, const User *user, int failed_fd)
{
    char texts[DEFAULTS_MAX][ENTRY_MAX];
    const char **env = calloc(program->envc + DEFAULTS_MAX + 1, sizeof *env);

    if (env == NULL)
        start_fail(failed_fd, FAIL_FORK);
    oom_score_set(OOM_SCORE_COMMAND);
    if (!start_become(user, program->keep_capabilities))
        start_fail(failed_fd, FAIL_USER);
    umask(022);
    if (!enter_wanted(program->cwd, user))
        start_fail(failed_fd, FAIL_CWD);
    make_env(program, user, texts, env);
    unblock_signals();
    /* execvp() looks for PATH in `environ`. */
    environ = (char **)(uintptr_t)env;
    (void)execvp(program->file, (char *const *)(uintptr_t)program->argv);
    start_fail(failed_fd, FAIL_EXEC);
}

void
start_exec(const FrameStart *start, const User *user, int failed_fd)
{
    Program program = {.file = start->argv[0],
                       .cwd = start->cwd,
                       .argv = start->argv,
                       .envp = start->envp,
                       .envc = start->envc,
                       .keep_capabilities = (start->flags & START_ROOT) != 0};

    (void)setsid();
    if ((start->flags & START_TTY) != 0 && !take_terminal(user))
        start_fail(failed_fd, FAIL_TTY);
    start_program(&program, user, failed_fd);
}

void
start_builtin(const FrameStart *start, const User *user)
{
    (void)close(LEADER_REPORT_FD);
    (void)setsid();
    oom_score_set(OOM_SCORE_COMMAND);
    if (!start_become(user, (start->flags & START_ROOT) != 0))
        _exit(EPERM);
    umask(022);
    if (!enter_wanted(start->cwd, user))
        _exit(errno);
    unblock_signals();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    _exit(builtin_run((int)start->argc, start->argv));
}

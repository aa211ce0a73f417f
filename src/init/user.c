/* SPDX-License-Identifier: Apache-2.0 */
#include "init/user.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init/start.h"

enum { NOBODY = 65534 };

void
user_tame(User *user)
{
    user->n_groups = user->n_groups > PASSWD_GROUPS_MAX ? 0 : user->n_groups;
    user->name[PASSWD_NAME_MAX] = user->home[PASSWD_PATH_MAX] = user->shell[PASSWD_PATH_MAX] = '\0';
}

/* ---- looking ---- */

static _Noreturn void
lookup_child(User *user, int fd)
{
    static const User nobody = {.uid = NOBODY, .gid = NOBODY};

    if (!start_become(&nobody, false) || !user_read(user))
        _exit(errno);
    _exit(write(fd, user, sizeof *user) == (ssize_t)sizeof *user ? 0 : EIO);
}

static bool
await_user(int fd, pid_t pid, User *ret_user)
{
    User user;
    ssize_t n;
    int status = 0;

    do {
        n = read(fd, &user, sizeof user);
    } while (n < 0 && errno == EINTR);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (n != (ssize_t)sizeof user) {
        errno = WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : EIO;
        return false;
    }
    user_tame(&user);
    *ret_user = user;
    return true;
}

/* Only the effective ids change: others of that user may signal who has theirs as the real or the
 * saved one.  With the effective user go the capabilities that open what is not for everybody. */
static bool
look_here(User *user)
{
    const uid_t keep = (uid_t)-1;

    if (setresgid(keep, NOBODY, keep) < 0 || setresuid(keep, NOBODY, keep) < 0)
        return false;
    bool ok = user_read(user);
    int e = errno;

    if (setresuid(keep, 0, keep) < 0 || setresgid(keep, 0, keep) < 0)
        _exit(EPERM);
    errno = e;
    return ok;
}

static bool
look_apart(User *ret_user)
{
    User user = *ret_user;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        lookup_child(&user, fds[1]);
    int e = errno;
    close(fds[1]);
    bool ok = pid > 0 && await_user(fds[0], pid, ret_user);
    if (pid > 0)
        e = errno;
    close(fds[0]);
    errno = e;
    return ok;
}

bool
user_lookup(const char *wanted, bool here, User *ret_user)
{
    if (user_parse(wanted, ret_user))
        return here ? look_here(ret_user) : look_apart(ret_user);
    errno = EINVAL;
    return false;
}

/* ---- remembering ---- */

static bool
look_at(UserFile files[static USER_FILES])
{
    static const char *const paths[USER_FILES] = {"/etc/passwd", "/etc/group"};

    for (int i = 0; i < USER_FILES; i++) {
        struct stat st = {0}; /* so it stays where there is none: one that appears differs */

        if (stat(paths[i], &st) < 0 && errno != ENOENT)
            return false;
        files[i] = (UserFile){.device = st.st_dev,
                              .inode = st.st_ino,
                              .size = (uint64_t)st.st_size,
                              .changed_s = st.st_ctim.tv_sec,
                              .changed_ns = st.st_ctim.tv_nsec};
    }
    return true;
}

bool
user_recall(const UserMemory *memory, const char *wanted, User *ret_user)
{
    UserFile now[USER_FILES];

    if (!memory->known || strcmp(memory->wanted, wanted) != 0 || !look_at(now) ||
        memcmp(now, memory->files, sizeof now) != 0)
        return false;
    *ret_user = memory->user;
    return true;
}

static bool
has_settled(const UserFile *file)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return file->changed_s < now.tv_sec - USER_SETTLED_S;
}

bool
user_learn(const char *wanted, bool here, UserMemory *ret_memory)
{
    UserMemory *m = ret_memory;

    memset(m, 0, sizeof *m);
    /* Before they are read: a change meanwhile makes the memory false, never the other way round. */
    m->known = strlen(wanted) <= USER_WANTED_MAX && look_at(m->files) && has_settled(&m->files[0]) &&
               has_settled(&m->files[1]);
    if (m->known)
        memcpy(m->wanted, wanted, strlen(wanted) + 1);
    return user_lookup(wanted, here, &m->user);
}

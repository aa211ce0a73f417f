/* SPDX-License-Identifier: Apache-2.0 */
#include "init/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIELDS_MAX = 8, PASSWD_FIELDS = 7, GROUP_FIELDS = 4 };

typedef struct Field {
    const char *text;
    size_t n;
} Field;

typedef enum PasswdField { PW_NAME, PW_PASSWORD, PW_UID, PW_GID, PW_GECOS, PW_HOME, PW_SHELL } PasswdField;
typedef enum GroupField { GR_NAME, GR_PASSWORD, GR_GID, GR_MEMBERS } GroupField;

/* Decimal digits only, within the ids of a box. */
static bool
parse_id(const char *text, size_t n, uint32_t *ret_id)
{
    uint32_t id = 0;

    if (n == 0 || n > 5)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        id = id * 10 + (uint32_t)(text[i] - '0');
    }
    if (id > PASSWD_ID_MAX)
        return false;
    *ret_id = id;
    return true;
}

static bool
copy_field(char *out, size_t size, const char *text, size_t n)
{
    if (n >= size || memchr(text, '\0', n) != NULL)
        return false;
    memcpy(out, text, n);
    out[n] = '\0';
    return true;
}

bool
user_parse(const char *text, User *ret_user)
{
    User user = {0};
    const char *colon = strchr(text, ':');
    size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);

    if (*text == '\0') {
        user.uid = PASSWD_DEFAULT_ID;
        user.has_uid = true;
    } else if (parse_id(text, n, &user.uid)) {
        user.has_uid = true;
    } else if (colon != NULL || *text == '-' || (*text >= '0' && *text <= '9') ||
               !copy_field(user.name, sizeof user.name, text, n)) {
        return false;
    }
    if (colon != NULL) {
        user.has_gid = parse_id(colon + 1, strlen(colon + 1), &user.gid);
        if (!user.has_gid)
            return false;
    }
    *ret_user = user;
    return true;
}

static size_t
split(const char *line, size_t n, Field *fields, size_t max)
{
    size_t found = 0;
    const char *end = line + n;

    for (const char *at = line; found < max; at++) {
        const char *colon = memchr(at, ':', (size_t)(end - at));

        fields[found++] = (Field){at, (size_t)((colon != NULL ? colon : end) - at)};
        if (colon == NULL)
            break;
        at = colon;
    }
    return found;
}

static bool
field_is(const Field *field, const char *text)
{
    return field->n == strlen(text) && memcmp(field->text, text, field->n) == 0;
}

bool
passwd_take_line(const char *line, size_t n, User *user)
{
    Field f[FIELDS_MAX];
    uint32_t uid, gid;
    User found = *user;

    if (split(line, n, f, FIELDS_MAX) != PASSWD_FIELDS || f[PW_NAME].n == 0 ||
        !parse_id(f[PW_UID].text, f[PW_UID].n, &uid) || !parse_id(f[PW_GID].text, f[PW_GID].n, &gid))
        return false;
    if (user->has_uid ? uid != user->uid : !field_is(&f[PW_NAME], user->name))
        return false;
    if (!copy_field(found.name, sizeof found.name, f[PW_NAME].text, f[PW_NAME].n) ||
        !copy_field(found.home, sizeof found.home, f[PW_HOME].text, f[PW_HOME].n) ||
        !copy_field(found.shell, sizeof found.shell, f[PW_SHELL].text, f[PW_SHELL].n))
        return false;
    found.uid = uid;
    if (!found.has_gid)
        found.gid = gid;
    found.has_uid = found.has_gid = true;
    *user = found;
    return true;
}

static bool
is_member(const Field *members, const char *name)
{
    const char *at = members->text;
    const char *end = at + members->n;

    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        Field one = {at, (size_t)((comma != NULL ? comma : end) - at)};

        if (field_is(&one, name))
            return true;
        at += one.n + 1;
    }
    return false;
}

void
group_take_line(const char *line, size_t n, User *user)
{
    Field f[FIELDS_MAX];
    uint32_t gid;

    if (user->name[0] == '\0' || user->n_groups == PASSWD_GROUPS_MAX ||
        split(line, n, f, FIELDS_MAX) != GROUP_FIELDS || !parse_id(f[GR_GID].text, f[GR_GID].n, &gid))
        return;
    if (is_member(&f[GR_MEMBERS], user->name))
        user->groups[user->n_groups++] = gid;
}

/* An ordinary file, whatever stands at its path; reading a FIFO would wait for ever. */
static int
open_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        fd = -1;
    }
    return fd;
}

typedef bool (*LineFunc)(const char *line, size_t n, User *user);

/* Hands over each line until one is taken.  A line that does not fit is skipped to its end. */
static bool
each_line(int fd, LineFunc take, User *user)
{
    char text[PASSWD_LINE_MAX];
    size_t have = 0;
    size_t total = 0;
    bool skipping = false;
    ssize_t n;

    while (total < PASSWD_FILE_MAX && (n = read(fd, text + have, sizeof text - have)) > 0) {
        const char *at = text;
        const char *end = text + have + n;
        const char *newline;

        total += (size_t)n;
        while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
            if (!skipping && take(at, (size_t)(newline - at), user))
                return true;
            skipping = false;
            at = newline + 1;
        }
        have = (size_t)(end - at);
        if (have == sizeof text) {
            skipping = true;
            have = 0;
        }
        memmove(text, at, have);
    }
    return have > 0 && !skipping && take(text, have, user);
}

static bool
add_group(const char *line, size_t n, User *user)
{
    group_take_line(line, n, user);
    return false;
}

bool
user_read(User *user)
{
    int fd = open_file("/etc/passwd");
    bool found = fd >= 0 && each_line(fd, passwd_take_line, user);

    if (fd >= 0)
        close(fd);
    if (!found && !user->has_uid) {
        errno = ENOENT;
        return false;
    }
    if (!user->has_gid)
        user->gid = user->uid;
    fd = found ? open_file("/etc/group") : -1;
    if (fd >= 0) {
        each_line(fd, add_group, user);
        close(fd);
    }
    return true;
}

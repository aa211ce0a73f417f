/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "git-helper/helper.h"
#include "wire/door.h"

enum {
    ANSWER_MAX = 16 * 1024,
    HEAD_MAX = 256,
    TIMEOUT_S = 30,
    STATUS_OK = 200,
    STATUS_AT = 9,
    PATH_ROOM = 4096
};

static bool
complain(const char *what)
{
    fprintf(stderr, "coop: the commit was not signed: %s\n", what);
    return false;
}

static int
connect_to_door(void)
{
    struct sockaddr_in door = {
        .sin_family = AF_INET, .sin_port = htons(DOOR_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = TIMEOUT_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&door, sizeof door) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool
write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, bytes, n);

        if (put <= 0)
            return false;
        bytes += put;
        n -= (size_t)put;
    }
    return true;
}

/* Until the other side closes, as it was asked to. */
static size_t
read_all(int fd, char *into, size_t size)
{
    size_t n = 0;
    ssize_t got;

    while (n < size && (got = read(fd, into + n, size - n)) > 0)
        n += (size_t)got;
    return n;
}

static bool
ask(const char *commit, size_t n, char answer[ANSWER_MAX])
{
    char head[HEAD_MAX];
    int fd = connect_to_door();
    int head_n = snprintf(head, sizeof head,
                          "POST /git/sign HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                          "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n"
                          "Connection: close\r\n\r\n",
                          DOOR_PORT, n);

    if (fd < 0)
        return complain("the door does not answer");
    bool sent = write_all(fd, head, (size_t)head_n) && write_all(fd, commit, n);
    size_t got = sent ? read_all(fd, answer, ANSWER_MAX - 1) : 0;

    close(fd);
    answer[got] = '\0';
    return got > 0 || complain("the door does not answer");
}

static bool
write_signature(const char *path, const char *text)
{
    char name[PATH_ROOM];

    if (snprintf(name, sizeof name, "%s.sig", path) >= (int)sizeof name)
        return complain("the path is too long");
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_all(fd, text, strlen(text));

    if (fd >= 0)
        close(fd);
    return ok || complain(strerror(errno));
}

bool
helper_sign(const char *path)
{
    static char answer[ANSWER_MAX];
    size_t n;
    char *commit = helper_read_file(path, &n);

    if (commit == NULL)
        return complain(strerror(errno));
    bool asked = ask(commit, n, answer);

    free(commit);
    if (!asked)
        return false;
    const char *body = strstr(answer, "\r\n\r\n");
    long status = strlen(answer) > STATUS_AT ? strtol(answer + STATUS_AT, NULL, 10) : 0;

    if (body == NULL)
        return complain("the door's answer is none");
    body += strlen("\r\n\r\n");
    return status == STATUS_OK ? write_signature(path, body) : complain(body);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* git-peer FOLDER PORT: the least that can serve git over HTTP: each connection is one request, and
 * becomes `git http-backend`.  Nothing is checked; for benchmarks on loopback alone. */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEAD_MAX = 16 << 10, BACKLOG = 16 };

/* One byte at a time: the body behind it is the child's. */
static bool
read_head(int fd, char *text)
{
    size_t n = 0;

    while (n + 1 < HEAD_MAX && read(fd, text + n, 1) == 1) {
        text[++n] = '\0';
        if (n >= 4 && strcmp(text + n - 4, "\r\n\r\n") == 0)
            return true;
    }
    return false;
}

static void
take_header(const char *line)
{
    static const struct {
        const char *header, *variable;
    } known[] = {{"Content-Type: ", "CONTENT_TYPE"},
                 {"Content-Length: ", "CONTENT_LENGTH"},
                 {"Content-Encoding: ", "HTTP_CONTENT_ENCODING"},
                 {"Git-Protocol: ", "HTTP_GIT_PROTOCOL"}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t n = strlen(known[i].header);

        if (strncasecmp(line, known[i].header, n) == 0)
            setenv(known[i].variable, line + n, 1);
    }
}

static void
become_git(int fd)
{
    static char text[HEAD_MAX];
    static const char status[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
    char *save = NULL;

    if (!read_head(fd, text))
        _exit(EXIT_FAILURE);
    const char *method = strtok_r(text, " ", &save);
    const char *path = strtok_r(NULL, "? ", &save);
    char *rest = strtok_r(NULL, "\r\n", &save);
    char *query_end = rest != NULL ? strchr(rest, ' ') : NULL;

    if (query_end != NULL)
        *query_end = '\0';
    setenv("REQUEST_METHOD", method, 1);
    setenv("PATH_INFO", path, 1);
    setenv("QUERY_STRING", query_end != NULL ? rest : "", 1);
    for (const char *line; (line = strtok_r(NULL, "\r\n", &save)) != NULL;)
        take_header(line);
    if (write(fd, status, sizeof status - 1) < 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
        _exit(EXIT_FAILURE);
    execlp("git", "git", "http-backend", (char *)NULL);
    _exit(EXIT_FAILURE);
}

int
main(int argc, char **argv)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (argc != 3) {
        fprintf(stderr, "usage: git-peer FOLDER PORT\n");
        return EXIT_FAILURE;
    }
    at.sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10));
    setenv("GIT_PROJECT_ROOT", argv[1], 1);
    setenv("GIT_HTTP_EXPORT_ALL", "1", 1);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, BACKLOG) < 0) {
        perror("git-peer");
        return EXIT_FAILURE;
    }
    printf("ready\n");
    fflush(stdout);
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        pid_t pid = fork();

        if (pid == 0)
            become_git(fd);
        close(fd);
        /* One after the other, so that their time is in what this process has reaped. */
        (void)waitpid(pid, NULL, 0);
    }
    return EXIT_SUCCESS;
}

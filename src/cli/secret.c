/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/secret.h"

#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"

/* A terminal gives one line at a time, so this waits for no more than that. */
static char *
read_line(int fd, const char *from, GError **error)
{
    char line[SECRET_MAX + 2];
    ssize_t n = isatty(fd) ? read(fd, line, sizeof line - 1) : io_read_full(fd, line, sizeof line - 1);
    char *text = NULL;

    if (n < 0) {
        err_errno(error, "read %s", from);
        return NULL;
    }
    line[n] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    if (strlen(line) > SECRET_MAX || memchr(line, '\0', (size_t)n) < (void *)(line + strlen(line)))
        err_set(error, ERR_INVALID, "the key in %s is longer than %d bytes", from, SECRET_MAX);
    else if (line[0] == '\0')
        err_set(error, ERR_INVALID, "there is no key in %s", from);
    else
        text = g_strdup(line);
    sodium_memzero(line, sizeof line);
    return text;
}

static char *
ask(const char *prompt, GError **error)
{
    autofd fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    struct termios shown, hidden;

    if (fd < 0 || tcgetattr(fd, &shown) < 0) {
        err_set(error, ERR_INVALID, "there is no terminal to ask for the key: use --key-file or --key-env");
        return NULL;
    }
    hidden = shown;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    (void)io_write_all(fd, prompt, strlen(prompt));
    (void)tcsetattr(fd, TCSAFLUSH, &hidden);
    char *text = read_line(fd, "what was typed", error);

    (void)tcsetattr(fd, TCSAFLUSH, &shown);
    (void)io_write_all(fd, "\n", 1);
    return text;
}

char *
secret_read(const char *path, const char *prompt, GError **error)
{
    if (path == NULL)
        return ask(prompt, error);
    autofd fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0) {
        err_errno(error, "open '%s'", path);
        return NULL;
    }
    return read_line(fd, strcmp(path, "-") == 0 ? "standard input" : path, error);
}

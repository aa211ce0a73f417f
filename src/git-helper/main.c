/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forge/message-core.h"
#include "git-helper/helper.h"

char *
helper_read_file(const char *path, size_t *ret_n)
{
    char *text = malloc(HELPER_FILE_MAX + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got = fd < 0 || text == NULL ? -1 : 1;

    while (got > 0 && n <= HELPER_FILE_MAX) {
        got = read(fd, text + n, HELPER_FILE_MAX + 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    if (got >= 0 && n > HELPER_FILE_MAX) {
        errno = EFBIG;
        got = -1;
    }
    if (fd >= 0)
        close(fd);
    if (got < 0) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    *ret_n = n;
    return text;
}

static int
check_message(const char *path)
{
    char problem[MESSAGE_PROBLEM_MAX];
    size_t n;
    char *text = helper_read_file(path, &n);

    if (text == NULL) {
        fprintf(stderr, "coop: cannot read the message: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    MessageRule rule = message_parse(text, n, true, NULL);

    if (rule != MESSAGE_OK) {
        message_explain(rule, text, n, problem, sizeof problem);
        fputs(problem, stderr);
    }
    free(text);
    return rule == MESSAGE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* As ssh-keygen is called: -Y sign -n git -f KEY [-U] FILE. */
static bool
is_asked_to_sign(int argc, char **argv)
{
    return argc >= 4 && strcmp(argv[1], "-Y") == 0 && strcmp(argv[2], "sign") == 0;
}

int
main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];

    if (strcmp(name, "commit-msg") == 0 && argc == 2)
        return check_message(argv[1]);
    if (is_asked_to_sign(argc, argv))
        return helper_sign(argv[argc - 1]) ? EXIT_SUCCESS : EXIT_FAILURE;
    /* To verify is the box's own affair. */
    argv[0] = (char[]){"ssh-keygen"};
    execvp(argv[0], argv);
    fprintf(stderr, "coop: ssh-keygen: %s\n", strerror(errno));
    return EXIT_FAILURE;
}

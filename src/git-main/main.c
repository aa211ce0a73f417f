/* SPDX-License-Identifier: Apache-2.0 */
/* coop-git: becomes git with no more rights than one call on one repository needs.
 *
 *     coop-git --read|--write|--net [--wait] [--config] [--foreign] [--hooks=FOLDER] [--file-max=BYTES]
 *         REPOSITORY -- git ARGUMENTS
 *
 * What a taken-over git could do: read this repository, or also write to it; with --net, speak to
 * the network.  It can run git and what is in FOLDER, and nothing else.  The environment is the
 * caller's.  A shared lock on the repository's folder is held by everything that is started, so that
 * whoever can lock it alone knows that nothing runs. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "git-main/confine.h"
#include "git-main/vet.h"
#include "wire/git-launch.h"

typedef struct Options {
    ConfineSpec confine;
    bool wait, config, foreign;
    char **command;
} Options;

static int
fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return GIT_LAUNCH_FAILED;
}

static bool
parse(Options *options, int argc, char **argv)
{
    enum { READ = 1, WRITE, NET, WAIT, CONFIG, FOREIGN, HOOKS, FILE_MAX };
    static const struct option known[] = {
        {"read", no_argument, NULL, READ},
        {"write", no_argument, NULL, WRITE},
        {"net", no_argument, NULL, NET},
        {"wait", no_argument, NULL, WAIT},
        {"config", no_argument, NULL, CONFIG},
        {"foreign", no_argument, NULL, FOREIGN},
        {"hooks", required_argument, NULL, HOOKS},
        {"file-max", required_argument, NULL, FILE_MAX},
        {NULL, 0, NULL, 0},
    };

    for (int option; (option = getopt_long(argc, argv, "+", known, NULL)) != -1;) {
        if (option == WRITE || option == NET)
            options->confine.write = true;
        if (option == NET)
            options->confine.net = true;
        else if (option == WAIT)
            options->wait = true;
        else if (option == CONFIG)
            options->config = true;
        else if (option == FOREIGN)
            options->foreign = true;
        else if (option == HOOKS)
            options->confine.hooks = optarg;
        else if (option == FILE_MAX)
            options->confine.file_max = strtoull(optarg, NULL, 10);
        else if (option == '?')
            return false;
    }
    if (argc - optind < 3 || strcmp(argv[optind + 1], "--") != 0 || strcmp(argv[optind + 2], "git") != 0)
        return false;
    options->confine.repository = argv[optind];
    options->command = argv + optind + 2;
    return options->confine.repository[0] == '/' && !(options->foreign && options->confine.write);
}

/* Held, by this open file, until the last process that has it is gone. */
static bool
lock_repository(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY);

    if (fd < 0 || fchdir(fd) < 0)
        return false;
    while (flock(fd, LOCK_SH) < 0) {
        if (errno != EINTR)
            return false;
    }
    return true;
}

/* Whoever started us puts us into a group first; its end is ours.  The fd stays: what is started tells
 * its own things there. */
static bool
wait_for_leave(void)
{
    char byte;
    ssize_t n;

    do {
        n = read(GIT_LAUNCH_WAIT_FD, &byte, 1);
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        errno = ECANCELED;
    return n == 1;
}

static bool
close_others(const Options *options)
{
    return (options->wait || close_range(GIT_LAUNCH_WAIT_FD, GIT_LAUNCH_WAIT_FD, 0) == 0) &&
           (options->config || close_range(GIT_LAUNCH_CONFIG_FD, GIT_LAUNCH_CONFIG_FD, 0) == 0) &&
           close_range(GIT_LAUNCH_CONFIG_FD + 1, ~0u, 0) == 0;
}

int
main(int argc, char **argv)
{
    Options options = {0};
    const char *problem = NULL;

    if (!parse(&options, argc, argv)) {
        fprintf(stderr, "usage: coop-git --read|--write|--net [--wait] [--config] [--foreign] "
                        "[--hooks=FOLDER] [--file-max=BYTES] REPOSITORY -- git ARGUMENTS\n");
        return GIT_LAUNCH_FAILED;
    }
    /* The signal comes with the end of the thread that started us; that one waits for us. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || !close_others(&options))
        return fail("close what was inherited");
    umask(077);
    if (!lock_repository(options.confine.repository))
        return fail("open the repository");
    if (!options.foreign && !vet_repository(&problem)) {
        fprintf(stderr, "the repository is not as we made it: %s\n", problem);
        return GIT_LAUNCH_REFUSED;
    }
    options.confine.scratch = !options.foreign;
    if (!confine(&options.confine, &problem))
        return fail(problem);
    if (options.wait && !wait_for_leave())
        return fail("wait for leave to go on");
    execv(confine_git(), options.command);
    return fail("start git");
}

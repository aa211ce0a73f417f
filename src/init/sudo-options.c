/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "init/sudo-client.h"

const char sudo_help[] =
    "usage: sudo [-EHinSs] [-u USER] [-D FOLDER] [NAME=VALUE] [COMMAND [ARG...]]\n"
    "       sudo -v | -k | -K | -l | -V | -h\n"
    "\n"
    "Runs a command as root of this box, or as another of its users.\n"
    "\n"
    "  -u, --user=USER            a name, or #UID\n"
    "  -E, --preserve-env[=LIST]  keep the environment, or the named parts of it\n"
    "  -H, --set-home             HOME is the user's\n"
    "  -i, --login                the user's shell as at a login; a command goes through it\n"
    "  -s, --shell                the user's shell; a command goes through it\n"
    "  -D, --chdir=FOLDER         where to run it\n"
    "  -b, --background           do not wait for it\n"
    "  -v, --validate             only see whether it is allowed\n"
    "  -l, --list                 say what is allowed\n"
    "  -k, -K, -n, -S, -A, -p     taken and not needed: nobody is asked for a password\n"
    "  -h, --help                 this text\n"
    "  -V, --version\n"
    "\n"
    "A command gets a fresh environment with TERM, the language, proxies and certificates kept.\n";

static const char letters[] = "+:AbD:EHhiKklnp:SsTu:Vv";
static const struct option names[] = {
    {"askpass", no_argument, NULL, 'A'},         {"background", no_argument, NULL, 'b'},
    {"chdir", required_argument, NULL, 'D'},     {"preserve-env", optional_argument, NULL, 'E'},
    {"set-home", no_argument, NULL, 'H'},        {"help", no_argument, NULL, 'h'},
    {"login", no_argument, NULL, 'i'},           {"remove-timestamp", no_argument, NULL, 'K'},
    {"reset-timestamp", no_argument, NULL, 'k'}, {"list", no_argument, NULL, 'l'},
    {"non-interactive", no_argument, NULL, 'n'}, {"prompt", required_argument, NULL, 'p'},
    {"stdin", no_argument, NULL, 'S'},           {"shell", no_argument, NULL, 's'},
    {"user", required_argument, NULL, 'u'},      {"version", no_argument, NULL, 'V'},
    {"validate", no_argument, NULL, 'v'},        {NULL, 0, NULL, 0},
};

static bool
keep_listed(SudoOptions *o, const char *list)
{
    for (const char *at = list; at != NULL && *at != '\0';) {
        const char *comma = strchr(at, ',');

        if (o->n_keeps == SUDO_KEEPS_MAX)
            return false;
        o->keeps[o->n_keeps++] = at;
        at = comma != NULL ? comma + 1 : NULL;
    }
    return true;
}

static const char *
take_user(SudoOptions *o, const char *user)
{
    if (*user == '#')
        user++;
    /* Empty means something else in the request. */
    if (*user == '\0')
        return "-u wants a user";
    o->user = strcmp(user, "root") == 0 ? "0" : user;
    return NULL;
}

static const char *
take(SudoOptions *o, int letter)
{
    switch (letter) {
    case 'E':
        if (optarg != NULL)
            return keep_listed(o, optarg) ? NULL : "too many names to keep";
        o->keep_env = true;
        return NULL;
    case 'H':
        o->set_home = true;
        return NULL;
    case 'i':
        o->flags |= SUDO_LOGIN;
        return NULL;
    case 's':
        o->flags |= SUDO_SHELL;
        return NULL;
    case 'b':
        o->background = true;
        return NULL;
    case 'D':
        o->cwd = optarg;
        return NULL;
    case 'u':
        return take_user(o, optarg);
    case 'v':
        o->action = SUDO_VALIDATE;
        return NULL;
    case 'l':
        o->action = SUDO_LIST;
        return NULL;
    case 'h':
        o->action = SUDO_HELP;
        return NULL;
    case 'V':
        o->action = SUDO_VERSION_TEXT;
        return NULL;
    case 'K':
    case 'k':
        /* With a command it is run: nothing was remembered anyway. */
        if (o->action == SUDO_RUN)
            o->action = SUDO_NOTHING;
        return NULL;
    case 'A':
    case 'n':
    case 'p':
    case 'S':
        return NULL;
    case ':':
        return "an option lacks its argument";
    default:
        return "there is no such option here; try --help";
    }
}

/* NAME=VALUE as a shell would take it. */
static bool
is_assignment(const char *word)
{
    size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

    return n > 0 && word[n] == '=' && (*word < '0' || *word > '9');
}

bool
sudo_options_parse(int argc, char **argv, SudoOptions *ret_options, const char **ret_problem)
{
    SudoOptions o = {.user = "0"};
    int letter;

    *ret_problem = NULL;
    opterr = 0;
    optind = 0;
    while (*ret_problem == NULL && (letter = getopt_long(argc, argv, letters, names, NULL)) >= 0)
        *ret_problem = take(&o, letter);
    for (; *ret_problem == NULL && optind < argc && is_assignment(argv[optind]); optind++) {
        if (o.n_sets == SUDO_SETS_MAX)
            *ret_problem = "too many variables";
        else
            o.sets[o.n_sets++] = argv[optind];
    }
    o.argv = argv + optind;
    o.argc = argc - optind;
    if (o.action == SUDO_NOTHING && o.argc > 0)
        o.action = SUDO_RUN;
    if ((o.flags & SUDO_LOGIN) != 0 && (o.flags & SUDO_SHELL) != 0)
        *ret_problem = "-i and -s exclude each other";
    else if (*ret_problem == NULL && o.action == SUDO_RUN && o.argc == 0 &&
             (o.flags & (SUDO_LOGIN | SUDO_SHELL)) == 0)
        *ret_problem = "which command?  Try --help";
    *ret_options = o;
    return *ret_problem == NULL;
}

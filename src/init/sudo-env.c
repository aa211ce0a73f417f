/* SPDX-License-Identifier: Apache-2.0 */
/* What the command is told: its words, and an environment that is not the caller's.  Who may run
 * anything as root is not kept from anything by that; it is what programs and people expect. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "init/sudo-client.h"
#include "wire/decimal.h"

/* A word that ends in "_" is the beginning of names. */
static const char *const kept[] = {
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_",
    "TZ",
    "LS_COLORS",
    "DEBIAN_FRONTEND",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_",
    "npm_config_",
    "CARGO_HTTP_",
    "GOPROXY",
    "GOSUMDB",
    "DISPLAY",
};
/* These say who it is, which is somebody else from now on. */
static const char *const whose[] = {"USER", "LOGNAME", "MAIL", "USERNAME", "SUDO_"};

typedef struct Texts {
    char *bytes;
    size_t n;
    bool full;
} Texts;

static void
put(Texts *t, const char *text, size_t n)
{
    if (t->full || n >= SUDO_TEXT_MAX - t->n) {
        t->full = true;
        return;
    }
    memcpy(t->bytes + t->n, text, n);
    t->n += n;
}

static void
end_text(Texts *t)
{
    put(t, "", 1);
}

static void
put_text(Texts *t, const char *text)
{
    put(t, text, strlen(text) + 1);
}

static bool
name_is(const char *entry, const char *name)
{
    size_t n = strlen(name);

    return strncmp(entry, name, n) == 0 && (entry[n] == '=' || (n > 0 && name[n - 1] == '_'));
}

static bool
is_listed(const char *entry, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (name_is(entry, list[i]))
            return true;
    }
    return false;
}

/* By --preserve-env=LIST; each of its names ends at a comma. */
static bool
is_asked_for(const SudoOptions *o, const char *entry)
{
    size_t n = strcspn(entry, "=");

    for (size_t i = 0; i < o->n_keeps; i++) {
        if (strcspn(o->keeps[i], ",") == n && strncmp(o->keeps[i], entry, n) == 0)
            return true;
    }
    return false;
}

static bool
is_set(const SudoOptions *o, const char *entry)
{
    size_t n = strcspn(entry, "=");

    for (size_t i = 0; i < o->n_sets; i++) {
        if (strncmp(o->sets[i], entry, n + 1) == 0)
            return true;
    }
    return false;
}

static bool
stays(const SudoOptions *o, const char *entry)
{
    if (is_set(o, entry) || is_listed(entry, whose, sizeof whose / sizeof whose[0]))
        return false;
    if (is_asked_for(o, entry) || is_listed(entry, kept, sizeof kept / sizeof kept[0]))
        return true;
    /* A login is always fresh. */
    return o->keep_env && (o->flags & SUDO_LOGIN) == 0 && !(o->set_home && name_is(entry, "HOME"));
}

static void
put_number(Texts *t, const char *name, uint64_t number)
{
    char digits[DECIMAL_MAX];

    (void)decimal_put(digits, number);
    put(t, name, strlen(name));
    put_text(t, digits);
}

static const char *
find(char **environment, const char *name)
{
    for (; *environment != NULL; environment++) {
        if (name_is(*environment, name))
            return *environment + strlen(name) + 1;
    }
    return NULL;
}

static uint32_t
put_env(Texts *t, const SudoOptions *o, char **environment)
{
    const char *user = find(environment, "USER");
    uint32_t n = 0;

    for (char **at = environment; *at != NULL && n < SUDO_TEXTS_MAX; at++) {
        if (!stays(o, *at))
            continue;
        put_text(t, *at);
        n++;
    }
    for (size_t i = 0; i < o->n_sets; i++, n++)
        put_text(t, o->sets[i]);
    put_number(t, "SUDO_UID=", getuid());
    put_number(t, "SUDO_GID=", getgid());
    put(t, "SUDO_USER=", strlen("SUDO_USER="));
    put_text(t, user != NULL ? user : "");
    put(t, "SUDO_COMMAND=", strlen("SUDO_COMMAND="));
    put_text(t, o->argc > 0 ? o->argv[0] : "");
    return n + 4;
}

/* One line for a shell, in which every word stays what it is. */
static void
put_line(Texts *t, char **argv)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-$";

    for (char **word = argv; *word != NULL; word++) {
        if (word != argv)
            put(t, " ", 1);
        if (**word == '\0')
            put(t, "''", 2);
        for (const char *at = *word; *at != '\0'; at++) {
            /* A newline behind a backslash would vanish. */
            if (*at == '\n') {
                put(t, "'\n'", 3);
                continue;
            }
            if (strchr(plain, *at) == NULL)
                put(t, "\\", 1);
            put(t, at, 1);
        }
    }
    end_text(t);
}

static uint32_t
put_argv(Texts *t, const SudoOptions *o)
{
    if ((o->flags & (SUDO_SHELL | SUDO_LOGIN)) != 0) {
        if (o->argc > 0)
            put_line(t, o->argv);
        return o->argc > 0 ? 1 : 0;
    }
    for (int i = 0; i < o->argc; i++)
        put_text(t, o->argv[i]);
    return (uint32_t)o->argc;
}

char *
sudo_request_make(const SudoOptions *options, char **environment, SudoRequest *ret_request)
{
    char here[PATH_MAX];
    Texts t = {.bytes = malloc(SUDO_TEXT_MAX)};

    if (t.bytes == NULL)
        return NULL;
    put_text(&t, options->user);
    /* One that was removed has no name any more. */
    put_text(&t, options->cwd != NULL ? options->cwd : getcwd(here, sizeof here) != NULL ? here : "/");
    *ret_request = (SudoRequest){.version = SUDO_VERSION, .flags = options->flags};
    ret_request->argc = put_argv(&t, options);
    ret_request->envc = put_env(&t, options, environment);
    ret_request->bytes = (uint32_t)t.n;
    if (!t.full && ret_request->argc <= SUDO_TEXTS_MAX && ret_request->envc <= SUDO_TEXTS_MAX)
        return t.bytes;
    free(t.bytes);
    return NULL;
}

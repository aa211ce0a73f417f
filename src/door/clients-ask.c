/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be asked for is provoked: pip tells in a dry run where a file would come from, and
 * cargo names its index when it is told to use a proxy that is not there. */
#include "door/clients-ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { OUTPUT_MAX = 256 * 1024, POLL_MS = 100 };

typedef struct Asking {
    gint *stop;
    gint64 until_us;
    char **env;
} Asking;

/* ---- running ---- */

/* The user's own folder: after a change of user HOME is still that of the one before. */
static char **
make_env(void)
{
    const struct passwd *user = getpwuid(geteuid());
    char **env = g_get_environ();

    if (user != NULL)
        env = g_environ_setenv(env, "HOME", user->pw_dir, TRUE);
    env = g_environ_setenv(env, "PIP_NO_CACHE_DIR", "1", FALSE);
    env = g_environ_setenv(env, "PIP_DISABLE_PIP_VERSION_CHECK", "1", FALSE);
    return g_environ_setenv(env, "LC_ALL", "C.UTF-8", TRUE);
}

static void
read_output(const Asking *a, int fd, GString *text)
{
    char piece[4096];

    while (g_atomic_int_get(a->stop) == 0 && clock_mono_us() < a->until_us && text->len < OUTPUT_MAX) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, POLL_MS) <= 0)
            continue;
        ssize_t n = read(fd, piece, sizeof piece);

        if (n == 0 || (n < 0 && errno != EINTR))
            return;
        g_string_append_len(text, piece, MAX(n, 0));
    }
}

/* What it wrote to `stream`, one of stdout and stderr; NULL: it is not there.  Never both: a warning
 * may name any URL. */
static char *
run(const Asking *a, const char *const *argv, char **env, int stream)
{
    g_autoptr(GString) text = g_string_new(NULL);
    int fds[2];
    GPid pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return NULL;
    autofd reader = fds[0];
    autofd writer = fds[1];
    autofd nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool out = stream == STDOUT_FILENO;

    if (nowhere < 0)
        return NULL;
    if (!g_spawn_async_with_pipes_and_fds(
            "/", argv, (const char *const *)(env != NULL ? env : a->env),
            G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDIN_FROM_DEV_NULL, NULL, NULL, -1,
            out ? writer : nowhere, out ? nowhere : writer, NULL, NULL, 0, &pid, NULL, NULL, NULL, NULL))
        return NULL;
    close(g_steal_fd(&writer));
    read_output(a, reader, text);
    (void)kill(pid, SIGKILL); /* it has ended, or had its time */
    (void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
    g_autofree char *valid = g_utf8_make_valid(text->str, (gssize)text->len);

    return g_steal_pointer(&valid);
}

/* ---- reading ---- */

static bool
is_url_end(char c)
{
    return (guchar)c <= ' ' || strchr("\"'`<>(),|\\", c) != NULL;
}

void
clients_find_urls(const char *text, GPtrArray *ret_urls)
{
    for (const char *at = strstr(text, "://"); at != NULL; at = strstr(at + 3, "://")) {
        const char *scheme = at >= text + 5 && strncmp(at - 5, "https", 5) == 0  ? "https"
                             : at >= text + 4 && strncmp(at - 4, "http", 4) == 0 ? "http"
                                                                                 : NULL;
        const char *end = at + 3;

        if (scheme == NULL || ret_urls->len >= CLIENTS_URLS_MAX)
            continue;
        while (!is_url_end(*end))
            end++;
        g_autofree char *rest = g_strndup(at + 3, (gsize)(end - at - 3));
        size_t host = strcspn(rest, "/?#");
        const char *user = g_strrstr_len(rest, (gssize)host, "@");
        g_autofree char *url = g_strconcat(scheme, "://", user != NULL ? user + 1 : rest, NULL);

        if (host > 0 && !g_ptr_array_find_with_equal_func(ret_urls, url, g_str_equal, NULL))
            g_ptr_array_add(ret_urls, g_steal_pointer(&url));
    }
}

char *
clients_pip_value(const char *list, const char *name)
{
    g_auto(GStrv) lines = g_strsplit(list, "\n", -1);
    g_autofree char *mark = g_strconcat(".", name, "='", NULL);

    for (guint i = 0; lines[i] != NULL; i++) {
        char *value = strstr(lines[i], mark);

        if (value == NULL)
            continue;
        value += strlen(mark);
        value[strcspn(value, "'")] = '\0';
        return g_strdup(value);
    }
    return NULL;
}

/* ---- what is known of one client ---- */

typedef struct Known {
    GPtrArray *urls, *env;
} Known;

static void
known_add(Json *all, const char *client, Known *known)
{
    Json *urls = json_array(), *env = json_array();

    for (guint i = 0; i < known->urls->len; i++)
        json_array_append_new(urls, json_string(known->urls->pdata[i]));
    for (guint i = 0; i < known->env->len; i++)
        json_array_append_new(env, json_string(known->env->pdata[i]));
    if (known->urls->len > 0)
        json_object_set_new(all, client, json_pack("{s:o, s:o}", "urls", urls, "env", env));
    else
        json_decref(urls), json_decref(env);
    g_ptr_array_set_size(known->urls, 0);
    g_ptr_array_set_size(known->env, 0);
}

/* NAME=value, with the user info of URLs taken out: it may hold a password. */
static void
add_env(Known *known, const char *name, const char *value)
{
    g_autoptr(GRegex) user = g_regex_new("://[^/@\\s]*@", 0, 0, NULL);
    g_autofree char *clean = g_regex_replace_literal(user, value, -1, 0, "://", 0, NULL);

    if (clean != NULL && *clean != '\0' && strlen(clean) < 1024)
        g_ptr_array_add(known->env, g_strdup_printf("%s=%s", name, clean));
}

static void
ask_npm(const Asking *a, Known *known)
{
    static const char *const argv[] = {"npm", "config", "get", "registry", NULL};
    g_autofree char *text = run(a, argv, NULL, STDOUT_FILENO);

    if (text == NULL)
        return;
    clients_find_urls(text, known->urls);
    g_auto(GStrv) lines = g_strsplit(g_strstrip(text), "\n", -1);
    guint n = g_strv_length(lines);

    if (n > 0 && g_str_has_prefix(lines[n - 1], "http"))
        add_env(known, "npm_config_registry", lines[n - 1]);
}

static void
ask_pip(const Asking *a, Known *known)
{
    static const char *const python = "python3";
    static const char *const list[] = {python, "-m", "pip", "config", "list", NULL};
    static const char *const help[] = {python, "-m", "pip", "install", "--help", NULL};
    static const char *const dry[] = {
        python,      "-m",         "pip",      "install", "-q",  "--dry-run", "--ignore-installed",
        "--no-deps", "--no-input", "--report", "-",       "pip", NULL};
    g_autofree char *configured = run(a, list, NULL, STDOUT_FILENO);
    g_autofree char *index = configured != NULL ? clients_pip_value(configured, "index-url") : NULL;
    g_autofree char *extra = configured != NULL ? clients_pip_value(configured, "extra-index-url") : NULL;

    if (index != NULL) {
        clients_find_urls(index, known->urls);
        add_env(known, "PIP_INDEX_URL", index);
    } else {
        g_autofree char *text = run(a, help, NULL, STDOUT_FILENO);
        const char *place = text != NULL ? strstr(text, "--index-url") : NULL;
        g_autofree char *near = place != NULL ? g_strndup(place, 300) : NULL;

        if (near != NULL)
            clients_find_urls(near, known->urls);
    }
    if (extra != NULL) {
        clients_find_urls(extra, known->urls);
        add_env(known, "PIP_EXTRA_INDEX_URL", extra);
    }
    /* Files may lie elsewhere than the index. */
    g_autofree char *report = known->urls->len > 0 ? run(a, dry, NULL, STDOUT_FILENO) : NULL;
    g_autoptr(GRegex) form = g_regex_new("\"url\": *\"(https?://[^/\"]+)/", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;

    if (report != NULL && g_regex_match(form, report, 0, &match)) {
        g_autofree char *url = g_match_info_fetch(match, 1);

        clients_find_urls(url, known->urls);
    }
}

static void
ask_go(const Asking *a, Known *known)
{
    static const char *const argv[] = {"go", "env", "GOPROXY", "GOSUMDB", NULL};
    g_autofree char *text = run(a, argv, NULL, STDOUT_FILENO);
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);

    if (text == NULL || g_strv_length(lines) < 2)
        return;
    clients_find_urls(lines[0], known->urls);
    if (known->urls->len == 0)
        return;
    add_env(known, "GOPROXY", lines[0]);
    /* "name[+key[ url]]"; a name that is a host is asked there. */
    g_auto(GStrv) sum = g_strsplit_set(lines[1], "+ ", 2);

    add_env(known, "GOSUMDB", lines[1]);
    if (sum[0] != NULL && strchr(sum[0], '.') != NULL) {
        g_autofree char *url = g_strconcat("https://", sum[0], NULL);

        clients_find_urls(url, known->urls);
    }
    clients_find_urls(lines[1], known->urls);
}

static void
ask_cargo(const Asking *a, Known *known)
{
    g_autofree char *folder = g_dir_make_tmp("coop-cargo-XXXXXX", NULL);
    g_autofree char *manifest = folder != NULL ? g_build_filename(folder, "Cargo.toml", NULL) : NULL;
    g_autofree char *source = folder != NULL ? g_build_filename(folder, "lib.rs", NULL) : NULL;
    const char *const argv[] = {"cargo", "fetch", "--manifest-path", manifest, NULL};
    g_auto(GStrv) env = g_strdupv(a->env);

    if (folder == NULL)
        return;
    env = g_environ_setenv(env, "CARGO_HTTP_PROXY", "http://127.0.0.1:9", TRUE); /* nobody listens there */
    env = g_environ_setenv(env, "CARGO_NET_RETRY", "0", TRUE);
    env = g_environ_setenv(env, "CARGO_HOME", folder, FALSE);
    if (g_file_set_contents(manifest,
                            "[package]\nname = \"ask\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"
                            "[lib]\npath = \"lib.rs\"\n[dependencies]\ncfg-if = \"1\"\n",
                            -1, NULL) &&
        g_file_set_contents(source, "", 0, NULL)) {
        g_autofree char *text = run(a, argv, env, STDERR_FILENO);
        const char *place = text != NULL ? strstr(text, "download from") : NULL;

        if (place != NULL)
            clients_find_urls(place, known->urls);
    }
    (void)unlink(manifest);
    (void)unlink(source);
    (void)rmdir(folder); /* cargo may have left something; it is in the folder for such things */
}

static void
ask_apt(const Asking *a, Known *known)
{
    static const char *const argv[] = {"apt-get", "indextargets", "--format", "$(SITE)", NULL};
    g_autofree char *text = run(a, argv, NULL, STDOUT_FILENO);

    if (text != NULL)
        clients_find_urls(text, known->urls);
}

Json *
clients_ask(gint *stop)
{
    static const struct {
        const char *name;
        void (*ask)(const Asking *a, Known *known);
    } clients[] = {
        {"npm", ask_npm}, {"pip", ask_pip}, {"go", ask_go}, {"cargo", ask_cargo}, {"apt", ask_apt}};
    g_auto(GStrv) env = make_env();
    Asking a = {.stop = stop,
                .until_us = clock_mono_us() + (gint64)CLIENTS_ASK_MS * G_TIME_SPAN_MILLISECOND,
                .env = env};
    g_autoptr(GPtrArray) urls = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) vars = g_ptr_array_new_with_free_func(g_free);
    Known known = {urls, vars};
    Json *all = json_object();

    for (size_t i = 0; i < G_N_ELEMENTS(clients); i++) {
        clients[i].ask(&a, &known);
        known_add(all, clients[i].name, &known);
    }
    return all;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "builder/host.h"

#include <string.h>
#include <sys/utsname.h>

/* The text a program prints, without white space around it; NULL: it is not there, or failed. */
static char *
capture(const char *const *argv)
{
    g_autofree char *text = NULL;
    int status;

    if (!g_spawn_sync("/", (char **)(guintptr)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL,
                      NULL, NULL, &text, NULL, &status, NULL) ||
        status != 0)
        return NULL;
    return g_strstrip(g_steal_pointer(&text));
}

static bool
is_of_release(const char *suite, const char *codename)
{
    return codename == NULL || *codename == '\0' || g_str_has_prefix(suite, codename);
}

/* deb [options] URI SUITE COMPONENT... */
void
host_pick_list(const char *text, const char *codename, GString *out)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        g_autoptr(GRegex) form = g_regex_new("^\\s*deb\\s+(\\[[^]]*\\]\\s+)?(\\S+)\\s+(\\S+)", 0, 0, NULL);
        g_autoptr(GMatchInfo) match = NULL;

        if (!g_regex_match(form, lines[i], 0, &match))
            continue;
        g_autofree char *suite = g_match_info_fetch(match, 3);
        if (is_of_release(suite, codename))
            g_string_append_printf(out, "%s\n", lines[i]);
    }
}

/* The value of a field; its further lines begin with white space. */
static char *
field_of(char **lines, const char *name)
{
    size_t n = strlen(name);

    for (guint i = 0; lines[i] != NULL; i++) {
        if (g_ascii_strncasecmp(lines[i], name, n) == 0 && lines[i][n] == ':')
            return g_strstrip(g_strdup(lines[i] + n + 1));
    }
    return g_strdup("");
}

static void
pick_stanza(const char *stanza, const char *codename, GString *out)
{
    g_auto(GStrv) lines = g_strsplit(stanza, "\n", -1);
    g_autofree char *suites = field_of(lines, "Suites");
    g_autofree char *types = field_of(lines, "Types");
    g_autofree char *enabled = field_of(lines, "Enabled");
    g_auto(GStrv) words = g_strsplit_set(suites, " \t", -1);
    g_auto(GStrv) kinds = g_strsplit_set(types, " \t", -1);
    bool ours = false;

    for (guint i = 0; words[i] != NULL; i++)
        ours = ours || (*words[i] != '\0' && is_of_release(words[i], codename));
    if (!ours || !g_strv_contains((const char *const *)kinds, "deb") ||
        g_ascii_strcasecmp(enabled, "no") == 0)
        return;
    for (guint i = 0; lines[i] != NULL; i++) {
        /* Sources of packages would only be fetched for nothing. */
        if (g_ascii_strncasecmp(lines[i], "Types:", strlen("Types:")) == 0)
            g_string_append(out, "Types: deb\n");
        else if (lines[i][0] != '#' && lines[i][0] != '\0')
            g_string_append_printf(out, "%s\n", lines[i]);
    }
    g_string_append_c(out, '\n');
}

void
host_pick_stanzas(const char *text, const char *codename, GString *out)
{
    g_auto(GStrv) stanzas = g_regex_split_simple("\n[ \t]*\n", text, 0, 0);

    for (guint i = 0; stanzas[i] != NULL; i++)
        pick_stanza(stanzas[i], codename, out);
}

static void
read_sources_file(const char *path, const char *codename, GString *list, GString *stanzas)
{
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    if (g_str_has_suffix(path, ".sources"))
        host_pick_stanzas(text, codename, stanzas);
    else if (g_str_has_suffix(path, ".list"))
        host_pick_list(text, codename, list);
}

static void
read_apt_sources(HostSources *s, const char *codename)
{
    static const char *const parts = "/etc/apt/sources.list.d";
    g_autoptr(GString) list = g_string_new(NULL);
    g_autoptr(GString) stanzas = g_string_new(NULL);
    g_autoptr(GDir) dir = g_dir_open(parts, 0, NULL);
    const char *name;

    read_sources_file("/etc/apt/sources.list", codename, list, stanzas);
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(parts, name, NULL);

        read_sources_file(path, codename, list, stanzas);
    }
    g_free(s->apt_list);
    g_free(s->apt_stanzas);
    s->apt_list = g_string_free(g_steal_pointer(&list), FALSE);
    s->apt_stanzas = g_string_free(g_steal_pointer(&stanzas), FALSE);
}

static void
read_apt(HostSources *s)
{
    static const char *const dump[] = {"apt-config", "dump", "--format", "%F \"%v\";%n", NULL};
    static const char *const arch[] = {"dpkg", "--print-architecture", NULL};
    g_autofree char *codename = g_get_os_info(G_OS_INFO_KEY_VERSION_CODENAME);
    g_autofree char *text = capture(dump);
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    g_autoptr(GString) options = g_string_new(NULL);

    for (guint i = 0; lines[i] != NULL; i++) {
        if (g_str_has_prefix(lines[i], "Acquire::") && !g_str_has_prefix(lines[i], "Acquire::IndexTargets"))
            g_string_append_printf(options, "%s\n", lines[i]);
    }
    s->apt_options = g_string_free(g_steal_pointer(&options), FALSE);
    s->architecture = capture(arch);
    s->codename = codename != NULL ? g_steal_pointer(&codename) : g_strdup("");
    read_apt_sources(s, s->codename);
    if (*s->apt_list == '\0' && *s->apt_stanzas == '\0')
        read_apt_sources(s, NULL); /* a host that says "stable" */
}

static char **
with_prefix(const char *const *prefixes)
{
    g_auto(GStrv) all = g_get_environ();
    GPtrArray *env = g_ptr_array_new();

    for (guint i = 0; all[i] != NULL; i++) {
        for (guint k = 0; prefixes[k] != NULL; k++) {
            if (g_ascii_strncasecmp(all[i], prefixes[k], strlen(prefixes[k])) == 0) {
                g_ptr_array_add(env, g_strdup(all[i]));
                break;
            }
        }
    }
    g_ptr_array_add(env, NULL);
    return (char **)g_ptr_array_free(env, FALSE);
}

static void
read_npm(HostSources *s)
{
    static const char *const argv[] = {"npm",   "config",      "get",    "registry",
                                       "proxy", "https-proxy", "cafile", NULL};
    g_autofree char *text = capture(argv);
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    GPtrArray *env = g_ptr_array_new();

    s->has_npm = text != NULL;
    for (guint i = 0; lines[i] != NULL; i++) {
        char *value = strchr(lines[i], '=');

        if (value == NULL || strcmp(value, "=null") == 0 || strcmp(value, "=undefined") == 0)
            continue;
        *value++ = '\0';
        g_strdelimit(lines[i], "- ", '_');
        g_ptr_array_add(env, g_strdup_printf("npm_config_%s=%s", lines[i], value));
    }
    g_ptr_array_add(env, NULL);
    s->npm_env = (char **)g_ptr_array_free(env, FALSE);
}

static void
read_go(HostSources *s)
{
    static const char *const argv[] = {"go", "env", "GOPROXY", NULL};
    const char *set = g_getenv("GOPROXY");
    g_autofree char *value = set != NULL ? g_strdup(set) : capture(argv);
    g_auto(GStrv) parts = g_strsplit_set(value != NULL ? value : "", ",|", -1);
    GPtrArray *urls = g_ptr_array_new();

    for (guint i = 0; parts[i] != NULL; i++) {
        if (strstr(parts[i], "://") != NULL)
            g_ptr_array_add(urls, g_strdup(g_strstrip(parts[i])));
    }
    g_ptr_array_add(urls, NULL);
    s->go_proxies = (char **)g_ptr_array_free(urls, FALSE);
}

HostSources *
host_sources_read(unsigned needs)
{
    static const char *const pip[] = {
        "PIP_INDEX_URL=", "PIP_EXTRA_INDEX_URL=", "PIP_TRUSTED_HOST=", "PIP_DEFAULT_TIMEOUT=", NULL};
    static const char *const proxies[] = {"http_proxy=", "https_proxy=", "all_proxy=", "no_proxy=", NULL};
    HostSources *s = g_new0(HostSources, 1);

    if ((needs & HOST_APT) != 0)
        read_apt(s);
    if ((needs & HOST_NPM) != 0)
        read_npm(s);
    if ((needs & HOST_GO) != 0)
        read_go(s);
    s->pip_env = with_prefix(pip);
    s->proxy_env = with_prefix(proxies);
    return s;
}

void
host_sources_free(HostSources *s)
{
    if (s == NULL)
        return;
    g_free(s->apt_options);
    g_free(s->apt_list);
    g_free(s->apt_stanzas);
    g_free(s->architecture);
    g_free(s->codename);
    g_strfreev(s->npm_env);
    g_strfreev(s->pip_env);
    g_strfreev(s->proxy_env);
    g_strfreev(s->go_proxies);
    g_free(s);
}

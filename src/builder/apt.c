/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "builder/build.h"

/* Packages are fetched by the host's apt, which knows the host's proxies, certificates and
 * keys, and installed by the template's dpkg, with archives and lists bound into the root for
 * as long as it takes.  What packages bring along runs without network: first everything is
 * fetched, then it is installed in a cell that has none. */

enum { LISTS_GOOD_S = 24 * 3600, MANY = 200 };
#define LISTS BUILD_CACHE "/lists"
#define ARCHIVES BUILD_CACHE "/archives"
#define STAMP LISTS "/stamp"
#define FETCH "--download-only"

static bool
put(const char *path, const char *text, GError **error)
{
    return g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_NONE, 0644, NULL) ||
           err_errno(error, "write '%s'", path);
}

bool
apt_write_config(Build *b, bool in_root, GError **error)
{
    g_autoptr(GString) text = g_string_new(b->host->apt_options);

    g_string_append_printf(
        text,
        "Dir::Etc::sourcelist \"/dev/null\";\nDir::Etc::sourceparts \"" APT_SOURCES "\";\n"
        "Dir::Etc::trusted \"/etc/apt/trusted.gpg\";\n"
        "Dir::Etc::trustedparts \"/etc/apt/trusted.gpg.d\";\n"
        "Dir::Log \"/dev/null\";\nAPT::Architecture \"%s\";\nAPT::Architectures \"%s\";\n"
        "APT::Sandbox::User \"root\";\nAPT::Install-Recommends \"false\";\n"
        "APT::Keep-Downloaded-Packages \"true\";\n"
        "Acquire::Languages \"none\";\nDPkg::Use-Pty \"false\";\nDebug::NoLocking \"true\";\n",
        b->host->architecture, b->host->architecture);
    if (in_root)
        g_string_append(text, "Dir \"" BUILD_ROOT "\";\nDPkg::Chroot-Directory \"" BUILD_ROOT "\";\n"
                              "DPkg::Install::Recursive \"false\";\nDPkg::Options {\"--force-unsafe-io\"; "
                              "\"--force-confnew\";};\n");
    else
        g_string_append(text, "Dir::State \"/tmp/apt-state\";\nDir::State::status \"/dev/null\";\n"
                              "Dir::State::lists \"" LISTS "\";\nDir::Cache \"/tmp/apt-state\";\n"
                              "Dir::Cache::archives \"" ARCHIVES "\";\n");
    if ((mkdir(APT_SOURCES, 0755) < 0 || mkdir("/tmp/apt-state", 0755) < 0) && errno != EEXIST)
        return err_errno(error, "make a folder for apt");
    return put(APT_CONFIG_FILE, text->str, error) &&
           put(APT_SOURCES "/host.list", b->host->apt_list, error) &&
           put(APT_SOURCES "/host.sources", b->host->apt_stanzas, error);
}

static CellSpec
host_cell(Build *b, const char *const *argv, char **env)
{
    return (CellSpec){.argv = argv, .env = (const char *const *)env, .network = true, .mounts = true};
}

static char **
apt_env(Build *b)
{
    static const char *const more[] = {"APT_CONFIG=" APT_CONFIG_FILE,
                                       "DEBIAN_FRONTEND=noninteractive",
                                       "LC_ALL=C.UTF-8",
                                       "PATH=" BUILD_PATH,
                                       "HOME=/tmp",
                                       NULL};
    GStrvBuilder *env = g_strv_builder_new();

    g_strv_builder_addv(env, (const char **)(guintptr)more);
    g_strv_builder_addv(env, (const char **)(guintptr)b->host->proxy_env);
    char **result = g_strv_builder_end(env);
    g_strv_builder_unref(env);
    return result;
}

/* Borrows them. */
static GPtrArray *
join_words(const char *const *head, const char *const *packages)
{
    GPtrArray *argv = g_ptr_array_new();

    for (guint i = 0; head[i] != NULL; i++)
        g_ptr_array_add(argv, (char *)(guintptr)head[i]);
    for (guint i = 0; packages[i] != NULL; i++)
        g_ptr_array_add(argv, (char *)(guintptr)packages[i]);
    g_ptr_array_add(argv, NULL);
    return argv;
}

/* ---- the lists ---- */

static char *
stamp_text(Build *b)
{
    g_autofree char *all = g_strconcat(b->host->apt_list, b->host->apt_stanzas, b->host->architecture, NULL);

    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, all, -1);
}

static bool
lists_are_good(Build *b)
{
    g_autofree char *want = stamp_text(b);
    g_autofree char *have = NULL;
    struct stat st;

    return !b->plan->fresh && stat(STAMP, &st) == 0 &&
           g_get_real_time() / G_USEC_PER_SEC - st.st_mtime < LISTS_GOOD_S &&
           g_file_get_contents(STAMP, &have, NULL, NULL) && strcmp(have, want) == 0;
}

static void
on_plain_line(const char *line, void *data)
{
    Build *b = data;

    report_line(&b->report, line);
}

bool
apt_update(Build *b, GError **error)
{
    static const char *const argv[] = {"apt-get", "-q", "update", "--error-on=any", NULL};
    g_auto(GStrv) env = apt_env(b);
    g_autofree char *stamp = stamp_text(b);
    g_autofree char *have = NULL;
    g_autoptr(GError) failed = NULL;
    CellSpec cell = host_cell(b, argv, env);

    if (b->host->architecture == NULL || (*b->host->apt_list == '\0' && *b->host->apt_stanzas == '\0'))
        return err_set(error, ERR_UNAVAILABLE,
                       "this machine has no Debian package sources (apt and /etc/apt); the template \"host\" "
                       "needs none");
    if (!apt_write_config(b, false, error) || !build_mount_cache(b, "lists", error) ||
        !build_mount_cache(b, "archives", error))
        return false;
    if (lists_are_good(b))
        return true;
    cell.line = on_plain_line;
    cell.line_data = b;
    if (cell_run(&cell, &failed))
        return put(STAMP, stamp, error);
    /* Without network the lists of the last time will do, if they are of the same sources. */
    if (!g_file_get_contents(STAMP, &have, NULL, NULL) || strcmp(have, stamp) != 0) {
        g_propagate_prefixed_error(error, g_steal_pointer(&failed), "read the package lists: ");
        return false;
    }
    report_line(&b->report, "the package lists cannot be read anew; the ones of the last time are used");
    return true;
}

/* ---- which packages there are ---- */

/* "python3.11" -> "^python[0-9.]+$": others that differ in the version only. */
static char *
relatives_pattern(const char *package)
{
    g_autofree char *name = g_strdup(package);
    char *version = strpbrk(name, "=:");

    if (version != NULL)
        *version = '\0';
    size_t n = strlen(name);
    while (n > 1 && (g_ascii_isdigit(name[n - 1]) || name[n - 1] == '.'))
        n--;
    name[n] = '\0';
    g_autofree char *quoted = g_regex_escape_string(name, -1);
    return g_strdup_printf("^%s[0-9.]*$", quoted);
}

static bool
fail_missing(Build *b, const char *package, GError **error)
{
    static const char *const argv[] = {"apt-cache", "pkgnames", NULL};
    g_auto(GStrv) env = apt_env(b);
    g_autofree char *pattern = relatives_pattern(package);
    g_autoptr(GString) all = g_string_new(NULL);
    g_autoptr(GString) found = g_string_new(NULL);
    g_autofree char *command = g_strdup_printf("apt-cache pkgnames | grep -E '%s' | sort -V | head -n 20",
                                               pattern);
    const char *const shell[] = {"sh", "-c", command, NULL};
    CellSpec cell = host_cell(b, strchr(pattern, '\'') == NULL ? shell : argv, env);

    cell.output = all;
    (void)cell_code(&cell, NULL); /* then nothing is named */
    g_auto(GStrv) names = g_strsplit(all->str, "\n", -1);
    for (guint i = 0; names[i] != NULL; i++) {
        if (*names[i] != '\0')
            g_string_append_printf(found, "%s%s", found->len > 0 ? ", " : "", names[i]);
    }
    return err_set(error, ERR_UNAVAILABLE, "package '%s' is not in this machine's package sources%s%s",
                   package, found->len > 0 ? "; there are " : "", found->str);
}

typedef struct Simulation {
    guint n;
    char *missing;
} Simulation;

static void
on_simulated(const char *line, void *data)
{
    static const char *const unknown[] = {"E: Unable to locate package ", "E: Version '"};
    Simulation *s = data;

    s->n += g_str_has_prefix(line, "Inst ");
    for (size_t i = 0; s->missing == NULL && i < G_N_ELEMENTS(unknown); i++) {
        if (g_str_has_prefix(line, unknown[i]))
            s->missing = g_strdup(line + strlen(unknown[i]));
    }
}

bool
apt_simulate(Build *b, const char *const *packages, guint *ret_n, GError **error)
{
    g_auto(GStrv) env = apt_env(b);
    static const char *const head[] = {"apt-get", "--simulate", "install", NULL};
    g_autoptr(GPtrArray) argv = join_words(head, packages);
    g_autoptr(GError) failed = NULL;
    Simulation s = {0};
    CellSpec cell = host_cell(b, (const char *const *)argv->pdata, env);

    cell.line = on_simulated;
    cell.line_data = &s;
    bool ok = cell_run(&cell, &failed);
    *ret_n = s.n;
    if (!ok && s.missing != NULL)
        (void)fail_missing(b, s.missing, error);
    else if (!ok)
        g_propagate_error(error, g_steal_pointer(&failed));
    g_free(s.missing);
    return ok;
}

void
apt_on_line(const char *line, void *data)
{
    AptProgress *p = data;

    p->fetched += g_str_has_prefix(line, "Get:");
    p->unpacked += g_str_has_prefix(line, "Unpacking ");
    p->set_up += g_str_has_prefix(line, "Setting up ");
    double total = MAX(p->total, 1);
    double part = 0.25 * p->fetched / total + 0.75 * (p->unpacked + p->set_up) / (2 * total);

    report_part(&p->build->report, part);
    if (g_str_has_prefix(line, "Get:") || g_str_has_prefix(line, "Setting up ") ||
        g_str_has_prefix(line, "I: "))
        report_line(&p->build->report, line);
}

/* ---- the packages of a root ---- */

/* A root is made in two steps, the second on top of the first: so are the archives looked up, with
 * the essential packages given out as installed. */
static const char fetch_script[] = "set -e\n"
                                   "cd /tmp/apt-state\n"
                                   "apt-get -y -q " FETCH " install '?essential' > essential\n"
                                   "cat essential\n"
                                   "sed -n '/^The following NEW packages/,/^[^ ]/s/^  //p' essential | xargs "
                                   "apt-cache show --no-all-versions |\n"
                                   "    sed 's/^Package: .*/&\\nStatus: install ok installed/' > status\n"
                                   "apt-get -y -q " FETCH
                                   " -o Dir::State::status=/tmp/apt-state/status install apt \"$@\"\n";

bool
apt_fetch_root(AptProgress *progress, GError **error)
{
    static const char *const head[] = {"sh", "-c", fetch_script, "sh", NULL};
    g_auto(GStrv) env = apt_env(progress->build);
    g_autoptr(GPtrArray) argv = join_words(head, (const char *const *)progress->build->plan->packages);
    CellSpec cell = host_cell(progress->build, (const char *const *)argv->pdata, env);

    cell.line = apt_on_line;
    cell.line_data = progress;
    return cell_run(&cell, error);
}

/* ---- packages on top of other layers ---- */

static bool
bind_into_root(const char *from, const char *to, GError **error)
{
    if (g_mkdir_with_parents(to, 0755) < 0)
        return err_errno(error, "make '%s'", to);
    return mount(from, to, NULL, MS_BIND, NULL) == 0 || err_errno(error, "bind '%s'", to);
}

/* dpkg wants them, the finished template does not. */
static bool
mount_for_dpkg(GError **error)
{
    return bind_into_root(ARCHIVES, BUILD_ROOT "/var/cache/apt/archives", error) &&
           bind_into_root(LISTS, BUILD_ROOT "/var/lib/apt/lists", error);
}

static bool
unmount_for_dpkg(GError **error)
{
    static const char *const places[] = {BUILD_ROOT "/var/lib/apt/lists",
                                         BUILD_ROOT "/var/cache/apt/archives"};

    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        if (umount2(places[i], MNT_DETACH) < 0 && errno != EINVAL)
            return err_errno(error, "unmount '%s'", places[i]);
    }
    return true;
}

/* Runs `apt-get -y -q HOW install PACKAGES` in the root. */
static bool
run_install(AptProgress *progress, char **env, const char *how, GError **error)
{
    const char *const head[] = {"apt-get", "-y", "-q", how, "install", NULL};
    g_autoptr(GPtrArray) argv = join_words(head, (const char *const *)progress->build->plan->packages);
    CellSpec cell = host_cell(progress->build, (const char *const *)argv->pdata, env);

    cell.inner = BUILD_ROOT;
    cell.network = strcmp(how, FETCH) == 0;
    cell.line = apt_on_line;
    cell.line_data = progress;
    return cell_run(&cell, error);
}

static bool
install(Build *b, GError **error)
{
    static const char policy[] = "#!/bin/sh\nexit 101\n"; /* no service is started by a package */
    static const char *const policy_file = BUILD_ROOT "/usr/sbin/policy-rc.d";
    /* The names of archives that apt hands to dpkg must be there inside of the root too. */
    g_auto(GStrv) env = g_environ_setenv(apt_env(b), "TMPDIR", BUILD_ROOT "/tmp", TRUE);
    AptProgress progress = {.build = b};

    if (!apt_simulate(b, (const char *const *)b->plan->packages, &progress.total, error))
        return false;
    if (progress.total == 0)
        return true;
    if (!run_install(&progress, env, FETCH, error))
        return false;
    if (!put(policy_file, policy, error) || chmod(policy_file, 0755) < 0)
        return false;
    bool ok = run_install(&progress, env, "--no-download", error);
    (void)unlink(policy_file); /* the layer is thrown away if the rest fails */
    return ok;
}

bool
step_packages(Build *b, GError **error)
{
    if (b->plan->packages[0] == NULL || b->plan->root != NULL)
        return true;
    report_step(&b->report, "lists", 2, 10);
    if (!apt_update(b, error))
        return false;
    report_step(&b->report, "packages", 10, 50);
    if (!apt_write_config(b, true, error))
        return false;
    bool ok = mount_for_dpkg(error) && install(b, error);
    return unmount_for_dpkg(ok ? error : NULL) && ok;
}

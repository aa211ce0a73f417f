/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/path.h"
#include "base/tree.h"
#include "builder/build.h"
#include "builder/inside.h"

/* The end of a build: the root is cleaned of what only the build needed, checked, measured,
 * synced and renamed to its hash. */

enum { HASH_LEN = 40 };

#define CERTIFICATES_FOLDER "etc/ssl/certs"
#define CERTIFICATES_NAME "ca-certificates.crt"
#define CERTIFICATES CERTIFICATES_FOLDER "/" CERTIFICATES_NAME

/* Places that boxes mount over; a link there would lead a mount astray. */
static bool
check_places(int root_fd, GError **error)
{
    static const char *const places[] = {"dev", "proc", "sys", "tmp", "run", "etc"};

    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        struct stat st;

        if (mkdirat(root_fd, places[i], 0755) < 0 && errno != EEXIST)
            return err_errno(error, "make '/%s'", places[i]);
        if (fstatat(root_fd, places[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
            return err_set(error, ERR_INVALID, "'/%s' of the template is not a folder", places[i]);
    }
    return fchmodat(root_fd, "tmp", 01777, 0) == 0 || err_errno(error, "open '/tmp' for everybody");
}

static bool
empty_folder(int root_fd, const char *path, GError **error)
{
    g_autoptr(GPtrArray) names = inside_list(root_fd, path, NULL);
    autofd fd = inside_open_folder(root_fd, path, NULL);
    bool ok = true;

    for (guint i = 0; ok && fd >= 0 && names != NULL && i < names->len; i++)
        ok = tree_remove(fd, names->pdata[i], error);
    return ok;
}

/* ---- apt ---- */

/* Names and passwords of a private mirror are not for boxes.  What a link leads to is read under
 * another name in a box than here, so there is none. */
static bool
strip_sources(int root_fd, const char *folder, const char *name, GError **error)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autoptr(GError) failure = NULL;
    autofd fd = inside_open_folder(root_fd, folder, &failure);
    struct stat st;
    gsize n;

    if (failure != NULL && err_kind(failure) != ERR_NOT_FOUND) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    if (fd < 0 || (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT))
        return true;
    g_autofree char *text = inside_read(root_fd, path, &n);
    if (text == NULL)
        return err_set(error, ERR_INVALID, "'/%s' of the template is not a file", path);
    g_autoptr(GRegex) secret = g_regex_new("://[^/@\\s]+@", 0, 0, NULL);
    g_autofree char *clean = g_regex_replace_literal(secret, text, -1, 0, "://", 0, NULL);
    if (clean == NULL)
        return err_set(error, ERR_INVALID, "'/%s' of the template is not text", path);
    return strcmp(text, clean) == 0 || inside_write(root_fd, folder, name, clean, strlen(clean), 0644, error);
}

static bool
is_source(const char *name)
{
    return g_str_has_suffix(name, ".list") || g_str_has_suffix(name, ".sources");
}

static bool
clean_apt(int root_fd, GError **error)
{
    static const char *const parts = "etc/apt/sources.list.d";
    g_autoptr(GPtrArray) names = inside_list(root_fd, parts, error);
    bool ok = names != NULL && strip_sources(root_fd, "etc/apt", "sources.list", error);

    for (guint i = 0; ok && i < names->len; i++)
        ok = !is_source(names->pdata[i]) || strip_sources(root_fd, parts, names->pdata[i], error);
    autofd conf_fd = inside_open_folder(root_fd, "etc/apt/apt.conf.d", NULL);

    if (conf_fd >= 0)
        (void)unlinkat(conf_fd, "99mmdebstrap", 0); /* the host's proxies */
    return ok;
}

/* ---- what boxes need ---- */

static bool
put_sudo(Build *b, int root_fd, GError **error)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", b->sudo_fd);
    g_autofree char *bytes = NULL;
    gsize n;

    if (b->sudo_fd < 0)
        return true;
    if (!g_file_get_contents(path, &bytes, &n, NULL))
        return err_set(error, ERR_UNAVAILABLE, "'%s' cannot be read", b->plan->sudo);
    return inside_write(root_fd, "usr/bin", "sudo", bytes, n, 0755, error);
}

static bool
make_certificates_folder(int root_fd, GError **error)
{
    if (mkdirat(root_fd, "etc/ssl", 0755) < 0 && errno != EEXIST)
        return err_errno(error, "make '/etc/ssl'");
    autofd ssl_fd = inside_open_folder(root_fd, "etc/ssl", error);

    if (ssl_fd < 0)
        return false;
    return mkdirat(ssl_fd, "certs", 0755) == 0 || errno == EEXIST ||
           err_errno(error, "make '/" CERTIFICATES_FOLDER "'");
}

/* A box trusts what the host trusts: behind a company's proxy nothing else would work. */
static bool
put_certificates(int root_fd, GError **error)
{
    g_autofree char *bytes = NULL;
    gsize n, had = 0;

    if (!g_file_get_contents("/" CERTIFICATES, &bytes, &n, NULL))
        return true;
    g_autofree char *before = inside_read(root_fd, CERTIFICATES, &had);
    if (before != NULL && n == had && memcmp(bytes, before, n) == 0)
        return true;
    return make_certificates_folder(root_fd, error) &&
           inside_write(root_fd, CERTIFICATES_FOLDER, CERTIFICATES_NAME, bytes, n, 0644, error);
}

static bool
clean(Build *b, int root_fd, GError **error)
{
    static const char *const folders[] = {"dev",           "run",     "tmp",      "var/lib/apt/lists",
                                          "var/cache/apt", "var/log", "root/.npm"};

    if (!check_places(root_fd, error) || !clean_apt(root_fd, error) || !put_sudo(b, root_fd, error) ||
        !put_certificates(root_fd, error))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        if (!empty_folder(root_fd, folders[i], error))
            return false;
    }
    (void)unlinkat(root_fd, "etc/machine-id", 0); /* each box has its own */
    (void)unlinkat(root_fd, "etc/hostname", 0);
    return true;
}

/* ---- the hash ---- */

static void
add_dpkg(int root_fd, GPtrArray *manifest)
{
    gsize n;
    g_autofree char *text = inside_read(root_fd, "var/lib/dpkg/status", &n);
    g_autofree char *package = NULL;

    if (text == NULL)
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        if (g_str_has_prefix(lines[i], "Package: ")) {
            g_free(package);
            package = g_strdup(lines[i] + strlen("Package: "));
        } else if (g_str_has_prefix(lines[i], "Version: ") && package != NULL) {
            g_ptr_array_add(manifest, g_strdup_printf("deb %s %s", package, lines[i] + strlen("Version: ")));
        }
    }
}

/* Names that carry their version, as pip's do, and what the checks said. */
static void
add_others(Build *b, int root_fd, GPtrArray *manifest)
{
    static const char *const place = "usr/local/lib";
    g_autofree char *versions = json_encode(b->versions);
    g_autoptr(GPtrArray) libs = inside_list(root_fd, place, NULL);

    g_ptr_array_add(manifest, g_strdup(versions));
    for (guint i = 0; libs != NULL && i < libs->len; i++) {
        g_autofree char *path = g_build_filename(place, libs->pdata[i], "dist-packages", NULL);
        g_autoptr(GPtrArray) names = inside_list(root_fd, path, NULL);

        for (guint k = 0; names != NULL && k < names->len; k++)
            g_ptr_array_add(manifest, g_strdup_printf("pip %s", (const char *)names->pdata[k]));
    }
}

static void
add_npm(int root_fd, GPtrArray *manifest)
{
    static const char *const modules = "usr/local/lib/node_modules";
    g_autoptr(GPtrArray) names = inside_list(root_fd, modules, NULL);

    for (guint i = 0; names != NULL && i < names->len; i++) {
        g_autofree char *path = g_build_filename(modules, names->pdata[i], "package.json", NULL);
        gsize n;
        g_autofree char *text = inside_read(root_fd, path, &n);

        if (text != NULL)
            g_ptr_array_add(manifest, g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1));
    }
}

static void
add_certificates(int root_fd, GPtrArray *manifest)
{
    gsize n;
    g_autofree char *text = inside_read(root_fd, CERTIFICATES, &n);

    if (text != NULL)
        g_ptr_array_add(manifest, g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1));
}

static gint
by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *
layer_hash(Build *b, int root_fd)
{
    g_autoptr(GPtrArray) manifest = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

    add_dpkg(root_fd, manifest);
    add_others(b, root_fd, manifest);
    add_npm(root_fd, manifest);
    add_certificates(root_fd, manifest);
    /* What was copied has no version. */
    if (b->plan->root != NULL && strcmp(b->plan->root, "debian") != 0)
        g_ptr_array_add(manifest, g_strdup_printf("copied %" G_GINT64_FORMAT, g_get_real_time()));
    g_ptr_array_sort(manifest, by_text);
    g_checksum_update(sum, (const guchar *)b->plan->key, -1);
    for (guint i = 0; i < manifest->len; i++) {
        g_checksum_update(sum, (const guchar *)"\n", 1);
        g_checksum_update(sum, manifest->pdata[i], -1);
    }
    return g_strndup(g_checksum_get_string(sum), HASH_LEN);
}

/* ---- into the store ---- */

static bool
keep(Build *b, const char *hash, guint64 size, GError **error)
{
    autofd work_fd = openat(b->store_fd, b->plan->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_autofree char *index = g_strconcat(b->plan->key, ".layer", NULL);
    g_autoptr(Json) result = json_pack("{s:s, s:I, s:O, s:I}", "layer", hash, "size", (json_int_t)size,
                                       "versions", b->versions, "built_us", (json_int_t)g_get_real_time());
    g_autofree char *text = json_encode(result);
    g_autofree char *index_path = g_strdup_printf("/proc/self/fd/%d/index", work_fd);

    if (work_fd < 0 || syncfs(work_fd) < 0)
        return err_errno(error, "sync the layer");
    FAILPOINT("build-sync");
    /* Somebody may have built the very same meanwhile; then ours goes with the folder. */
    if (renameat(work_fd, "root", b->store_fd, hash) < 0 && errno != ENOTEMPTY && errno != EEXIST)
        return err_errno(error, "put the layer '%s' in place", hash);
    FAILPOINT("build-renamed");
    if (!path_write_atomic(index_path, text, strlen(text), 0644, error))
        return false;
    if (renameat(work_fd, "index", b->store_fd, index) < 0)
        return err_errno(error, "write '%s'", index);
    report_done(g_steal_pointer(&result));
    return true;
}

bool
step_finish(Build *b, GError **error)
{
    autofd root_fd = inside_open_root(error);
    guint64 size;

    report_step(&b->report, "finish", 95, 99);
    if (root_fd < 0 || !clean(b, root_fd, error))
        return false;
    g_autofree char *hash = layer_hash(b, root_fd);
    g_autofree char *root = g_build_filename(b->plan->work, "root", NULL);

    close(g_steal_fd(&root_fd)); /* it would hold the mount */
    return build_unmount_root(b, error) && tree_size(b->store_fd, root, &size, error) &&
           keep(b, hash, size, error);
}

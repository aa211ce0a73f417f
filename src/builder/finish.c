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

/* The end of a build: the root is cleaned of what only the build needed, checked, measured,
 * synced and renamed to its hash. */

enum { HASH_LEN = 40, TREE_FILE_MAX = 64 * 1024 * 1024 };

#define CERTIFICATES_FOLDER "etc/ssl/certs"
#define CERTIFICATES_NAME "ca-certificates.crt"
#define CERTIFICATES CERTIFICATES_FOLDER "/" CERTIFICATES_NAME

/* The tree is not ours: a link could lead to the host's files, a pipe never end.  NULL: there is no
 * such file, or none that is one. */
static char *
read_inside(int root_fd, const char *path, gsize *ret_n)
{
    autofd fd = open_beneath(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0, NULL);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > TREE_FILE_MAX)
        return NULL;
    g_autofree char *bytes = g_malloc((gsize)st.st_size + 1);
    ssize_t n = io_read_full(fd, bytes, (size_t)st.st_size);

    if (n < 0)
        return NULL;
    bytes[n] = '\0';
    *ret_n = (gsize)n;
    return g_steal_pointer(&bytes);
}

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
empty_folder(int root_fd, const char *name, GError **error)
{
    int fd = openat(root_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    bool ok = true;

    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return true;
    }
    while (ok && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ok = tree_remove(dirfd(dir), entry->d_name, error);
    }
    closedir(dir);
    return ok;
}

/* Names and passwords of a private mirror are not for boxes. */
static bool
strip_sources(const char *path, GError **error)
{
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return true;
    g_autoptr(GRegex) secret = g_regex_new("://[^/@\\s]+@", 0, 0, NULL);
    g_autofree char *clean = g_regex_replace_literal(secret, text, -1, 0, "://", 0, NULL);
    if (strcmp(text, clean) == 0)
        return true;
    return g_file_set_contents_full(path, clean, -1, G_FILE_SET_CONTENTS_NONE, 0644, NULL) ||
           err_errno(error, "write '%s'", path);
}

static bool
clean_apt(GError **error)
{
    static const char *const parts = BUILD_ROOT "/etc/apt/sources.list.d";
    g_autoptr(GDir) dir = g_dir_open(parts, 0, NULL);
    const char *name;
    bool ok = strip_sources(BUILD_ROOT "/etc/apt/sources.list", error);

    while (ok && dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(parts, name, NULL);

        ok = strip_sources(path, error);
    }
    /* The host's proxies. */
    (void)unlink(BUILD_ROOT "/etc/apt/apt.conf.d/99mmdebstrap");
    return ok;
}

static bool
put_sudo(Build *b, GError **error)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", b->sudo_fd);
    g_autofree char *bytes = NULL;
    gsize n;

    if (b->sudo_fd < 0)
        return true;
    if (!g_file_get_contents(path, &bytes, &n, NULL))
        return err_set(error, ERR_UNAVAILABLE, "'%s' cannot be read", b->plan->sudo);
    return g_file_set_contents_full(BUILD_ROOT "/usr/bin/sudo", bytes, (gssize)n, G_FILE_SET_CONTENTS_NONE,
                                    0755, NULL) ||
           err_errno(error, "write '/usr/bin/sudo'");
}

/* -1 with an error. */
static int
open_certificates_folder(int root_fd, GError **error)
{
    if (mkdirat(root_fd, "etc/ssl", 0755) < 0 && errno != EEXIST) {
        err_errno(error, "make '/etc/ssl'");
        return -1;
    }
    autofd ssl_fd = open_beneath(root_fd, "etc/ssl", O_RDONLY | O_DIRECTORY, 0, error);

    if (ssl_fd < 0)
        return -1;
    if (mkdirat(ssl_fd, "certs", 0755) < 0 && errno != EEXIST) {
        err_errno(error, "make '/" CERTIFICATES_FOLDER "'");
        return -1;
    }
    return open_beneath(root_fd, CERTIFICATES_FOLDER, O_RDONLY | O_DIRECTORY, 0, error);
}

/* A box trusts what the host trusts: behind a company's proxy nothing else would work. */
static bool
put_certificates(int root_fd, GError **error)
{
    g_autofree char *bytes = NULL;
    gsize n, had = 0;

    if (!g_file_get_contents("/" CERTIFICATES, &bytes, &n, NULL))
        return true;
    g_autofree char *before = read_inside(root_fd, CERTIFICATES, &had);
    if (before != NULL && n == had && memcmp(bytes, before, n) == 0)
        return true;
    autofd folder_fd = open_certificates_folder(root_fd, error);

    if (folder_fd < 0 || !tree_remove(folder_fd, CERTIFICATES_NAME, error))
        return false;
    autofd fd = openat(folder_fd, CERTIFICATES_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    return (fd >= 0 && io_write_all(fd, bytes, n) && fchmod(fd, 0644) == 0) ||
           err_errno(error, "write '/%s'", CERTIFICATES);
}

static bool
clean(Build *b, GError **error)
{
    static const char *const folders[] = {"dev",           "run",     "tmp",      "var/lib/apt/lists",
                                          "var/cache/apt", "var/log", "root/.npm"};
    autofd root_fd = open(BUILD_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (root_fd < 0)
        return err_errno(error, "open the root");
    if (!check_places(root_fd, error) || !clean_apt(error) || !put_sudo(b, error) ||
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
    g_autofree char *text = read_inside(root_fd, "var/lib/dpkg/status", &n);
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
add_others(Build *b, GPtrArray *manifest)
{
    g_autofree char *versions = json_encode(b->versions);
    g_autoptr(GDir) libs = g_dir_open(BUILD_ROOT "/usr/local/lib", 0, NULL);
    const char *lib;

    g_ptr_array_add(manifest, g_strdup(versions));
    while (libs != NULL && (lib = g_dir_read_name(libs)) != NULL) {
        g_autofree char *path = g_build_filename(BUILD_ROOT "/usr/local/lib", lib, "dist-packages", NULL);
        g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
        const char *name;

        while (dir != NULL && (name = g_dir_read_name(dir)) != NULL)
            g_ptr_array_add(manifest, g_strdup_printf("pip %s", name));
    }
}

static void
add_npm(GPtrArray *manifest)
{
    static const char *const modules = BUILD_ROOT "/usr/local/lib/node_modules";
    g_autoptr(GDir) dir = g_dir_open(modules, 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(modules, name, "package.json", NULL);
        g_autofree char *text = NULL;

        if (g_file_get_contents(path, &text, NULL, NULL))
            g_ptr_array_add(manifest, g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1));
    }
}

static void
add_certificates(int root_fd, GPtrArray *manifest)
{
    gsize n;
    g_autofree char *text = read_inside(root_fd, CERTIFICATES, &n);

    if (text != NULL)
        g_ptr_array_add(manifest, g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1));
}

static gint
by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *
layer_hash(Build *b)
{
    g_autoptr(GPtrArray) manifest = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    autofd root_fd = open(BUILD_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    add_dpkg(root_fd, manifest);
    add_others(b, manifest);
    add_npm(manifest);
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
    guint64 size;

    report_step(&b->report, "finish", 95, 99);
    if (!clean(b, error))
        return false;
    g_autofree char *hash = layer_hash(b);
    g_autofree char *root = g_build_filename(b->plan->work, "root", NULL);

    return build_unmount_root(b, error) && tree_size(b->store_fd, root, &size, error) &&
           keep(b, hash, size, error);
}

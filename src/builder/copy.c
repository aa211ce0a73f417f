/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tree.h"
#include "builder/build.h"

/* Roots that are copied: a folder as it is, or of the host what programs need, which is /usr
 * and some of /etc.  Nothing that is the machine's own comes along: no accounts, no passwords,
 * no keys, no machine-id, no configuration of services. */

static const char *const host_etc[] = {
    "alternatives",    "ca-certificates", "ca-certificates.conf",
    "ssl/certs",       "ssl/openssl.cnf", "ld.so.cache",
    "ld.so.conf",      "ld.so.conf.d",    "os-release",
    "debian_version",  "bash.bashrc",     "profile",
    "inputrc",         "mime.types",      "services",
    "protocols",       "python3",         "python3.11",
    "java-17-openjdk", "maven",           "localtime",
    "debconf.conf",    "host.conf",       "shells",
    "login.defs",
};

static const char *const usr_left_out[] = {
    "/share/doc",    "/share/man", "/share/info", "/share/locale", "/lib/modules",
    "/lib/firmware", "/src",       "/local/etc",  "/share/help",   "/share/gtk-doc",
};

static bool
skip_of_usr(const char *path, void *data)
{
    for (size_t i = 0; i < G_N_ELEMENTS(usr_left_out); i++) {
        if (strcmp(path, usr_left_out[i]) == 0)
            return true;
    }
    return false;
}

static bool
make_dir(const char *path, guint mode, GError **error)
{
    return (g_mkdir_with_parents(path, 0755) == 0 && chmod(path, mode) == 0) ||
           err_errno(error, "make '%s'", path);
}

static bool
put(const char *path, const char *text, GError **error)
{
    return g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_NONE, 0644, NULL) ||
           err_errno(error, "write '%s'", path);
}

static bool
copy_etc_entry(const char *name, GError **error)
{
    g_autofree char *from = g_build_filename("/etc", name, NULL);
    g_autofree char *to = g_build_filename(BUILD_ROOT "/etc", name, NULL);
    g_autofree char *above = g_path_get_dirname(to);
    g_autofree char *target = g_file_read_link(from, NULL);
    g_autofree char *text = NULL;
    gsize n;

    if (access(from, R_OK) < 0)
        return true;
    if (!make_dir(above, 0755, error))
        return false;
    if (target != NULL)
        return symlink(target, to) == 0 || err_errno(error, "link '%s'", to);
    if (g_file_test(from, G_FILE_TEST_IS_DIR))
        return make_dir(to, 0755, error) && tree_copy(from, to, NULL, NULL, error);
    if (!g_file_get_contents(from, &text, &n, NULL))
        return true;
    return g_file_set_contents_full(to, text, (gssize)n, G_FILE_SET_CONTENTS_NONE, 0644, NULL) ||
           err_errno(error, "write '%s'", to);
}

/* /bin and /lib are links into /usr where the host has them merged, else folders. */
static bool
copy_top(const char *name, GError **error)
{
    g_autofree char *from = g_build_filename("/", name, NULL);
    g_autofree char *to = g_build_filename(BUILD_ROOT, name, NULL);
    g_autofree char *target = g_file_read_link(from, NULL);

    if (target != NULL)
        return symlink(target, to) == 0 || err_errno(error, "link '%s'", to);
    if (!g_file_test(from, G_FILE_TEST_IS_DIR))
        return true;
    return make_dir(to, 0755, error) && tree_copy(from, to, skip_of_usr, NULL, error);
}

static bool
copy_host(GError **error)
{
    static const char *const tops[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"};
    static const char *const folders[] = {"etc",  "var/tmp", "var/lib", "var/log", "var/cache",
                                          "root", "home",    "opt",     "srv",     "mnt"};

    for (size_t i = 0; i < G_N_ELEMENTS(tops); i++) {
        if (!copy_top(tops[i], error))
            return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *path = g_build_filename(BUILD_ROOT, folders[i], NULL);

        if (!make_dir(path, strcmp(folders[i], "var/tmp") == 0 ? 01777 : 0755, error))
            return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(host_etc); i++) {
        if (!copy_etc_entry(host_etc[i], error))
            return false;
    }
    return put(BUILD_ROOT "/etc/passwd",
               "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/"
               "nologin\n",
               error) &&
           put(BUILD_ROOT "/etc/group", "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n", error) &&
           put(BUILD_ROOT "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n", error);
}

bool
step_copy(Build *b, GError **error)
{
    g_autofree char *folder = g_strdup_printf("/proc/self/fd/%d", b->folder_fd);

    report_step(&b->report, "copy", 2, 70);
    return strcmp(b->plan->root, "folder") == 0 ? tree_copy(folder, BUILD_ROOT, NULL, NULL, error)
                                                : copy_host(error);
}

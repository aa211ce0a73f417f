/* SPDX-License-Identifier: Apache-2.0 */
/* Where a repository may be imported from.
 *
 * A folder is one that somebody with the right to read this machine's files has named, and still
 * what is in it may be another's: a link or a file in the place of `.git` could lead to a
 * repository that was not meant.  So only a real folder is taken, and git, which is then confined
 * to it, finds nothing outside. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "forge/forge-private.h"

bool
repo_source_is_url(const char *source)
{
    return source[0] != '/';
}

void
repo_wipe(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    g_free(secret);
}

/* ---- folders ---- */

static bool
is_folder(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool
has(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    struct stat st;

    return lstat(path, &st) == 0;
}

static bool
is_git_folder(const char *path)
{
    g_autofree char *objects = g_build_filename(path, "objects", NULL);
    g_autofree char *refs = g_build_filename(path, "refs", NULL);

    return is_folder(objects) && is_folder(refs) && has(path, "HEAD");
}

static bool
check_git_folder(const char *path, GError **error)
{
    if (has(path, "commondir"))
        return err_set(error, ERR_INVALID, "'%s' is of a linked work tree: name the repository's own folder",
                       path);
    if (has(path, "shallow"))
        return err_set(error, ERR_INVALID, "'%s' has only a part of its history: run `git fetch --unshallow`",
                       path);
    if (has(path, "objects/info/alternates"))
        return err_set(error, ERR_INVALID,
                       "'%s' has objects in another folder: run `git repack -a -d` and remove "
                       "objects/info/alternates",
                       path);
    return true;
}

/* The folder git works with: `path` itself, or its `.git`. */
static char *
find_git_folder(const char *path, GError **error)
{
    g_autofree char *inner = g_build_filename(path, ".git", NULL);
    struct stat st;

    if (lstat(inner, &st) == 0 && !S_ISDIR(st.st_mode)) {
        err_set(error, ERR_INVALID, "'%s' is no folder but leads to one: name the repository it leads to",
                inner);
        return NULL;
    }
    if (is_git_folder(inner))
        return g_steal_pointer(&inner);
    if (is_git_folder(path))
        return g_strdup(path);
    if (access(path, R_OK | X_OK) < 0)
        err_errno(error, "read '%s' as the server's user", path);
    else
        err_set(error, ERR_INVALID, "'%s' is no git repository", path);
    return NULL;
}

char *
repo_source_find_folder(const char *path, GError **error)
{
    char real[PATH_MAX];

    if (realpath(path, real) == NULL) {
        err_errno(error, "look at '%s' as the server's user", path);
        return NULL;
    }
    g_autofree char *found = find_git_folder(real, error);

    return found != NULL && check_git_folder(found, error) ? g_steal_pointer(&found) : NULL;
}

/* ---- URLs ---- */

static bool
is_loopback(const char *host)
{
    struct in_addr v4;

    return g_ascii_strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           (inet_pton(AF_INET, host, &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127);
}

static bool
check_url(const RepoSpec *spec, char **ret_source, char **ret_credentials, GError **error)
{
    g_autoptr(GUri)
        uri = g_uri_parse(spec->source, G_URI_FLAGS_HAS_PASSWORD | G_URI_FLAGS_ENCODED_PATH, NULL);
    const char *host = uri != NULL ? g_uri_get_host(uri) : NULL;

    if (host == NULL || host[0] == '\0' || host[0] == '-')
        return err_set(error, ERR_INVALID, "the source is neither an absolute path nor a URL");
    const char *scheme = g_uri_get_scheme(uri);
    bool is_http = strcmp(scheme, "http") == 0;

    if (!is_http && strcmp(scheme, "https") != 0)
        return err_set(error, ERR_INVALID, "a repository is fetched by https, not by '%s'", scheme);
    if (is_http && !spec->insecure && !is_loopback(host))
        return err_set(error, ERR_INVALID,
                       "http to another machine can be read and changed on its way: use https, or say "
                       "that it may be insecure");
    if (g_uri_get_query(uri) != NULL || g_uri_get_fragment(uri) != NULL)
        return err_set(error, ERR_INVALID, "the URL of a repository has no '?' and no '#'");
    const char *user = g_uri_get_user(uri);
    const char *password = g_uri_get_password(uri);

    if (user != NULL)
        *ret_credentials = g_strdup_printf("%s:%s", user, password != NULL ? password : "");
    *ret_source = g_uri_join(G_URI_FLAGS_ENCODED_PATH, scheme, NULL, host, g_uri_get_port(uri),
                             g_uri_get_path(uri), NULL, NULL);
    return true;
}

bool
repo_source_check(const RepoSpec *spec, char **ret_source, char **ret_credentials, GError **error)
{
    size_t len = strlen(spec->source);

    if (len == 0 || len > REPO_SOURCE_MAX)
        return err_set(error, ERR_INVALID, "the source has 1 to %d bytes", REPO_SOURCE_MAX);
    for (size_t i = 0; i < len; i++) {
        if (g_ascii_iscntrl(spec->source[i]))
            return err_set(error, ERR_INVALID, "the source has control characters in it");
    }
    if (repo_source_is_url(spec->source))
        return check_url(spec, ret_source, ret_credentials, error);
    if (spec->mirror)
        return err_set(error, ERR_INVALID, "only what is at a URL can be mirrored");
    if (!path_is_normal(spec->source))
        return err_set(error, ERR_INVALID, "'%s' is no absolute path without '.', '..' and '//'",
                       spec->source);
    *ret_source = g_strdup(spec->source);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <archive.h>
#include <archive_entry.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "builder/build.h"

/* Go comes as the toolchain module that the go command itself would fetch, from the module
 * proxies that the host uses.  The sum in the recipe is the one of go.sum: the hash over the
 * sorted hashes and names of all files, whatever way they were packed. */

#define GO_TARGET BUILD_ROOT "/usr/local/go"
#define GO_SCRATCH BUILD_ROOT "/usr/local/.go"
enum { CONNECT_TIMEOUT_S = 20, SLOW_BYTES = 1024, SLOW_S = 60, FILES_MAX = 50000, PIECE = 64 * 1024 };
#define ZIP_MAX (G_GINT64_CONSTANT(512) << 20)
#define UNPACKED_MAX (G_GINT64_CONSTANT(2) << 30)

typedef struct Fetch {
    const char *url, *path;
} Fetch;

/* In a cell with network; says what went wrong on its output. */
static int
fetch_in_cell(void *data)
{
    const Fetch *f = data;
    char problem[CURL_ERROR_SIZE] = "";
    FILE *out = fopen(f->path, "wbe");
    CURL *curl = curl_easy_init();

    if (out == NULL || curl == NULL)
        return 1;
    curl_easy_setopt(curl, CURLOPT_URL, f->url);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http,file");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)ZIP_MAX);
    CURLcode code = curl_easy_perform(curl);
    bool closed = fclose(out) == 0;

    if (code != CURLE_OK)
        fprintf(stderr, "%s: %s\n", f->url, *problem != '\0' ? problem : curl_easy_strerror(code));
    return code == CURLE_OK && closed ? 0 : 1;
}

static bool
fetch(Build *b, const char *name, const char *path, GError **error)
{
    g_autofree char *partial = g_strconcat(path, ".partial", NULL);

    if (b->host->go_proxies[0] == NULL)
        return err_set(error, ERR_UNAVAILABLE,
                       "no Go module proxy is known: set GOPROXY, or install go on this machine");
    for (guint i = 0; b->host->go_proxies[i] != NULL; i++) {
        g_autofree char *url = g_strdup_printf("%s/golang.org/toolchain/@v/%s.zip", b->host->go_proxies[i],
                                               name);
        Fetch f = {url, partial};
        CellSpec cell = {.call = fetch_in_cell, .data = &f, .network = true};

        g_clear_error(error);
        if (cell_run(&cell, error))
            return rename(partial, path) == 0 || err_errno(error, "keep '%s'", path);
    }
    return false;
}

/* ---- without a sum in the recipe ---- */

/* The go of this machine fetches it and holds it against the checksum database; what it unpacks by
 * the way is not wanted. */
static const char download_script[] = "go mod download -json \"$1\"; code=$?\n"
                                      "rm -rf \"$GOMODCACHE/golang.org\"; exit $code\n";

static char **
download_env(Build *b)
{
    g_autofree char *proxies = g_strjoinv(",", b->host->go_proxies);
    char **env = g_strdupv(b->host->proxy_env);

    env = g_environ_setenv(env, "GOPROXY", proxies, TRUE);
    env = g_environ_setenv(env, "GOMODCACHE", BUILD_CACHE "/go/modules", TRUE);
    env = g_environ_setenv(env, "GOFLAGS", "-modcacherw", TRUE);
    env = g_environ_setenv(env, "GOTOOLCHAIN", "local", TRUE);
    env = g_environ_setenv(env, "HOME", "/tmp", TRUE);
    return g_environ_setenv(env, "PATH", g_getenv("PATH"), TRUE);
}

static bool
read_download(const GString *said, char **ret_zip, char **ret_sum, GError **error)
{
    const char *first = strchr(said->str, '{'), *last = strrchr(said->str, '}');
    g_autoptr(Json)
        told = first != NULL && last > first ? json_decode(first, (size_t)(last - first) + 1, NULL) : NULL;
    const char *zip = json_string_value(json_object_get(told, "Zip"));
    const char *sum = json_string_value(json_object_get(told, "Sum"));

    if (zip == NULL || sum == NULL || !g_str_has_prefix(zip, BUILD_CACHE "/go/"))
        return err_set(error, ERR_UNAVAILABLE, "go does not say what it has fetched");
    *ret_zip = g_strdup(zip);
    *ret_sum = g_strdup(sum);
    return true;
}

static bool
ask_go(Build *b, const char *name, char **ret_zip, char **ret_sum, GError **error)
{
    g_autofree char *module = g_strconcat("golang.org/toolchain@", name, NULL);
    g_autofree char *program = g_find_program_in_path("go");
    g_auto(GStrv) env = download_env(b);
    g_autoptr(GString) said = g_string_new(NULL);
    const char *const argv[] = {"sh", "-c", download_script, "sh", module, NULL};
    CellSpec cell = {
        .argv = argv, .env = (const char *const *)env, .cwd = "/tmp", .network = true, .output = said};

    if (program == NULL)
        return err_set(error, ERR_UNAVAILABLE,
                       "the recipe has no sum of Go %s for %s, so what is fetched could not be checked: "
                       "install go on this machine, which asks the checksum database, or add "
                       "'%s: h1:...' to 'go' in the recipe",
                       b->plan->go, b->host->architecture, b->host->architecture);
    return cell_run(&cell, error) && read_download(said, ret_zip, ret_sum, error);
}

/* ---- unpacking, in a cell without network ---- */

typedef struct Unpack {
    const char *zip, *prefix, *sum;
    GPtrArray *lines; /* "hash  name\n" of each file */
    gint64 bytes;
} Unpack;

/* Names below the module's own folder, of plain segments only. */
static const char *
name_below(const Unpack *u, const char *name)
{
    if (name == NULL || !g_str_has_prefix(name, u->prefix))
        return NULL;
    g_auto(GStrv) parts = g_strsplit(name + strlen(u->prefix), "/", -1);
    for (guint i = 0; parts[i] != NULL; i++) {
        if (*parts[i] == '\0' || strcmp(parts[i], ".") == 0 || strcmp(parts[i], "..") == 0)
            return NULL;
    }
    return name + strlen(u->prefix);
}

/* The module has no permissions: programs are where programs of Go are. */
static guint
mode_of(const char *below)
{
    return g_str_has_prefix(below, "bin/") || g_str_has_prefix(below, "pkg/tool/") ? 0755 : 0644;
}

static bool
unpack_file(Unpack *u, struct archive *a, const char *name, const char *below)
{
    g_autofree char *path = g_build_filename(GO_SCRATCH, below, NULL);
    g_autofree char *above = g_path_get_dirname(path);
    g_autoptr(GChecksum) hash = g_checksum_new(G_CHECKSUM_SHA256);
    char bytes[PIECE];
    la_ssize_t n;

    if (g_mkdir_with_parents(above, 0755) < 0)
        return false;
    autofd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_of(below));
    if (fd < 0)
        return false;
    while ((n = archive_read_data(a, bytes, sizeof bytes)) > 0) {
        u->bytes += n;
        g_checksum_update(hash, (const guchar *)bytes, n);
        if (u->bytes > UNPACKED_MAX || !io_write_all(fd, bytes, (size_t)n))
            return false;
    }
    g_ptr_array_add(u->lines, g_strdup_printf("%s  %s\n", g_checksum_get_string(hash), name));
    return n == 0 && u->lines->len <= FILES_MAX;
}

/* go.sum sorts by name, which is behind the 64 digits of the hash. */
static gint
by_name(gconstpointer a, gconstpointer b)
{
    enum { HASH = 64 };

    return strcmp(*(const char *const *)a + HASH, *(const char *const *)b + HASH);
}

static char *
module_sum(GPtrArray *lines)
{
    g_autoptr(GChecksum) all = g_checksum_new(G_CHECKSUM_SHA256);
    guint8 digest[32];
    gsize n = sizeof digest;

    g_ptr_array_sort(lines, by_name);
    for (guint i = 0; i < lines->len; i++)
        g_checksum_update(all, lines->pdata[i], -1);
    g_checksum_get_digest(all, digest, &n);
    g_autofree char *text = g_base64_encode(digest, n);
    return g_strconcat("h1:", text, NULL);
}

static bool
unpack_all(Unpack *u, struct archive *a)
{
    struct archive_entry *entry;
    int code;

    while ((code = archive_read_next_header(a, &entry)) == ARCHIVE_OK) {
        const char *name = archive_entry_pathname(entry);
        const char *below = name_below(u, name);

        if (below == NULL || archive_entry_filetype(entry) != AE_IFREG || !unpack_file(u, a, name, below)) {
            fprintf(stderr, "'%s' cannot be unpacked\n", name != NULL ? name : "");
            return false;
        }
    }
    if (code != ARCHIVE_EOF)
        fprintf(stderr, "%s\n", archive_error_string(a));
    return code == ARCHIVE_EOF;
}

static int
unpack_in_cell(void *data)
{
    Unpack *u = data;
    struct archive *a = archive_read_new();

    u->lines = g_ptr_array_new_with_free_func(g_free);
    archive_read_support_format_zip(a);
    bool ok = archive_read_open_filename(a, u->zip, PIECE) == ARCHIVE_OK && unpack_all(u, a);
    g_autofree char *sum = module_sum(u->lines);

    archive_read_free(a);
    g_ptr_array_unref(u->lines);
    if (ok && strcmp(sum, u->sum) != 0) {
        fprintf(stderr, "the module hashes to %s, the recipe says %s\n", sum, u->sum);
        return 1;
    }
    return ok ? 0 : 1;
}

bool
step_go(Build *b, GError **error)
{
    if (b->plan->go == NULL)
        return true;
    g_autofree char *name = g_strdup_printf("v0.0.1-go%s.linux-%s", b->plan->go, b->host->architecture);
    g_autofree char *zip = g_strdup_printf(BUILD_CACHE "/go/%s.zip", name);
    g_autofree char *prefix = g_strdup_printf("golang.org/toolchain@%s/", name);
    g_autofree char *sum = g_strdup(b->plan->go_sum);

    report_step(&b->report, "go", 50, 80);
    if (!build_mount_cache(b, "go", error))
        return false;
    if (sum == NULL) {
        g_clear_pointer(&zip, g_free);
        if (!ask_go(b, name, &zip, &sum, error))
            return false;
    } else if (access(zip, R_OK) < 0 && !fetch(b, name, zip, error)) {
        return false;
    }
    Unpack unpack = {.zip = zip, .prefix = prefix, .sum = sum};
    CellSpec cell = {.call = unpack_in_cell, .data = &unpack};
    report_part(&b->report, 0.5);
    if (!cell_run(&cell, error)) {
        (void)unlink(zip); /* the next build fetches it again */
        return false;
    }
    return rename(GO_SCRATCH, GO_TARGET) == 0 || err_errno(error, "put Go in place");
}

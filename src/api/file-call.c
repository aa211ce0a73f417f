/* SPDX-License-Identifier: Apache-2.0 */
#include "api/file-call.h"

#include <string.h>
#include <sys/stat.h>

#include "api/call-box.h"
#include "base/clock.h"
#include "base/err.h"
#include "http/url.h"

enum { MODE_MAX = 07777, MODE_DIGITS_MAX = 6 };

FileCall *
file_call_new(ApiCall *call, const char *path)
{
    Box *box = call_box(call);

    if (box == NULL)
        return NULL;
    FileCall *f = g_new0(FileCall, 1);
    http_request_ref(call->request);
    f->call = call;
    f->spec.box = box_ref(box);
    f->spec.actor = call->caller.actor;
    f->path = g_strdup(path);
    return f;
}

FileCall *
file_call_from_query(ApiCall *call, const char *const *names)
{
    const char *query = http_request_query(call->request);
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;
    bool ok = url_query_only(query, names, &error) && url_query_get_bytes(query, "path", &path, &error);

    if (ok && (path == NULL || path[0] == '\0'))
        ok = err_set(&error, ERR_INVALID, "'path' is missing");
    if (ok)
        return file_call_new(call, path);
    call_respond_error(call, error);
    return NULL;
}

void
file_call_free(FileCall *file)
{
    if (file == NULL)
        return;
    box_unref(file->spec.box);
    g_free(file->path);
    http_request_unref(file->call->request);
    g_free(file);
}

bool
file_mode_parse(const char *text, guint *ret_mode, GError **error)
{
    size_t n = strspn(text, "01234567");
    guint64 mode = n > 0 && n <= MODE_DIGITS_MAX ? g_ascii_strtoull(text, NULL, 8) : G_MAXUINT64;

    if (text[n] != '\0' || mode > MODE_MAX)
        return err_set(error, ERR_INVALID, "'mode' must be octal, like 0644");
    *ret_mode = (guint)mode;
    return true;
}

/* ---- out ---- */

static const char *
type_name(guint32 mode)
{
    if (S_ISREG(mode))
        return "file";
    if (S_ISDIR(mode))
        return "directory";
    return S_ISLNK(mode) ? "link" : "other";
}

static Json *
text_json(const char *bytes)
{
    g_autofree char *valid = g_utf8_make_valid(bytes, -1);

    return json_string(valid);
}

Json *
file_entry_json(const BoxEntry *entry, const char *path)
{
    char mtime[CLOCK_ISO_LEN + 1], mode[8];

    clock_format_iso(entry->mtime_ns / 1000, mtime);
    g_snprintf(mode, sizeof mode, "%04o", entry->mode & MODE_MAX);
    Json *json = json_pack("{s:o, s:o, s:s, s:I, s:s, s:I, s:I, s:s}", "name", text_json(entry->name), "path",
                           text_json(path), "type", type_name(entry->mode), "size",
                           (json_int_t)MIN(entry->size, (guint64)G_MAXINT64), "mode", mode, "uid",
                           (json_int_t)entry->uid, "gid", (json_int_t)entry->gid, "mtime", mtime);
    if (entry->target != NULL)
        json_object_set_new(json, "target", text_json(entry->target));
    if (!g_utf8_validate(path, -1, NULL)) {
        g_autofree char *encoded = url_encode_path(path);

        json_object_set_new(json, "encoded", json_string(encoded));
    }
    return json;
}

void
file_download_headers(HttpRequest *request, const char *path, const char *suffix)
{
    const char *slash = strrchr(path, '/');
    const char *last = slash != NULL ? slash + 1 : path;
    g_autofree char *name = g_strconcat(last[0] != '\0' ? last : "files", suffix, NULL);
    g_autofree char *encoded = url_encode_path(name);
    g_autofree char *disposition = g_strdup_printf("attachment; filename*=UTF-8''%s", encoded);

    http_response_header(request, "Content-Disposition", disposition);
    http_response_header(request, "Content-Security-Policy", "default-src 'none'; sandbox");
    http_response_header(request, "Cross-Origin-Resource-Policy", "same-origin");
    http_response_header(request, "Cache-Control", "no-store");
}

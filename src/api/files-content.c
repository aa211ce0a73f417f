/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of one file.  A range is read in two steps, because what it means follows from the
 * size, and a link to the file is followed by a read but not by a stat. */
#include <string.h>

#include "api/file-receive.h"
#include "api/file-send.h"
#include "api/routes.h"
#include "base/err.h"
#include "http/range.h"
#include "http/url.h"

/* ---- the second step, or the only one ---- */

static void
put_range(HttpRequest *request, const FileSend *s, guint64 size)
{
    g_autofree char *where = g_strdup_printf(
        "bytes %" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT, s->first, s->last, size);

    http_response_header(request, "Content-Range", where);
}

static void
on_entry(BoxRead *read, const BoxEntry *entry, void *ctx)
{
    FileSend *s = ctx;
    HttpRequest *request = s->file->call->request;

    if (s->ranged && entry->size <= s->last) {
        g_autoptr(GError) error = NULL;

        err_set(&error, ERR_CONFLICT, "the file became shorter while it was read");
        file_send_refuse(s, error);
        return;
    }
    if (s->ranged)
        put_range(request, s, entry->size);
    http_response_header(request, "Accept-Ranges", "bytes");
    file_download_headers(request, s->file->path, "");
    guint64 length = s->ranged ? s->last - s->first + 1 : entry->size;
    file_send_answer(s, s->ranged ? 206 : 200, "application/octet-stream",
                     (gint64)MIN(length, (guint64)G_MAXINT64));
}

static void
on_ready(BoxRead *read, void *ctx)
{
    file_send_ready(ctx);
}

static void
on_end(BoxRead *read, const GError *error, void *ctx)
{
    FileSend *s = ctx;
    g_autoptr(GError) nothing = NULL;

    if (s->answered) {
        file_send_end(s, error);
        return;
    }
    if (error == NULL)
        err_set(&nothing, ERR_UNAVAILABLE, "the box ended before the file was read");
    s->read = NULL;
    file_send_refuse(s, error != NULL ? error : nothing);
}

static void
open_file(FileSend *s, guint64 offset, gint64 length)
{
    static const BoxReadEvents events = {.entry = on_entry, .ready = on_ready, .end = on_end};
    g_autoptr(GError) error = NULL;

    s->read = box_file_read(&s->file->spec, s->file->path, offset, length, &events, s, &error);
    if (s->read == NULL)
        file_send_refuse(s, error);
}

/* ---- the first step of a range ---- */

typedef struct Look {
    FileCall *file; /* owned */
    BoxRead *read;
    guint64 size;
} Look;

static void
on_look_gone(HttpRequest *request, void *data)
{
    Look *look = data;

    box_read_cancel(look->read);
    file_call_free(look->file);
    g_free(look);
}

static void
on_look_entry(BoxRead *read, const BoxEntry *entry, void *ctx)
{
    Look *look = ctx;

    look->size = entry->size;
}

static void
read_part(FileCall *file, guint64 size)
{
    HttpRequest *request = file->call->request;
    FileSend *s = file_send_new(file);
    RangeResult range = range_parse(http_request_header(request, "Range"), size, &s->first, &s->last);

    s->ranged = range == RANGE_ONE;
    if (range == RANGE_ONE) {
        open_file(s, s->first, (gint64)(s->last - s->first + 1));
    } else if (range == RANGE_NONE) {
        open_file(s, 0, -1);
    } else {
        g_autofree char *all = g_strdup_printf("bytes */%" G_GUINT64_FORMAT, size);

        http_response_header(request, "Content-Range", all);
        http_request_ref(request);
        file_send_refuse(s, NULL);
        respond_error(request, 416, "the file is shorter than that");
        http_request_unref(request);
    }
}

static void
on_look_end(BoxRead *read, const GError *error, void *ctx)
{
    g_autofree Look *look = ctx;

    http_request_on_gone(look->file->call->request, NULL, NULL);
    if (error == NULL) {
        read_part(look->file, look->size);
        return;
    }
    call_respond_error(look->file->call, error);
    file_call_free(look->file);
}

static void
look(FileCall *file)
{
    static const BoxReadEvents events = {.entry = on_look_entry, .end = on_look_end};
    g_autoptr(GError) error = NULL;
    Look *l = g_new0(Look, 1);

    l->file = file;
    l->read = box_file_read(&file->spec, file->path, 0, 0, &events, l, &error);
    if (l->read != NULL) {
        http_request_on_gone(file->call->request, on_look_gone, l);
        return;
    }
    call_respond_error(file->call, error);
    file_call_free(file);
    g_free(l);
}

/* Without a tag nobody can say of which version a range was; of several none is taken. */
static bool
is_ranged(HttpRequest *request)
{
    return strcmp(http_request_method(request), "GET") == 0 &&
           http_request_header_count(request, "Range") == 1 &&
           http_request_header(request, "If-Range") == NULL;
}

static void
get_content(ApiCall *call)
{
    static const char *const names[] = {"path", NULL};
    FileCall *f = file_call_from_query(call, names);

    if (f == NULL)
        return;
    if (is_ranged(call->request))
        look(f);
    else
        open_file(file_send_new(f), 0, strcmp(http_request_method(call->request), "HEAD") == 0 ? 0 : -1);
}

/* ---- in ---- */

static bool
read_mode(HttpRequest *request, int *ret_mode, GError **error)
{
    g_autofree char *text = NULL;
    guint mode;

    *ret_mode = -1;
    if (!url_query_get(http_request_query(request), "mode", &text, error))
        return false;
    if (text == NULL)
        return true;
    if (!file_mode_parse(text, &mode, error))
        return false;
    *ret_mode = (int)mode;
    return true;
}

typedef struct Put {
    FileCall *file; /* owned */
    int mode;
} Put;

static void
on_parents_made(const GError *error, void *data)
{
    g_autofree Put *put = data;

    if (error == NULL) {
        file_receive(put->file, put->mode);
        return;
    }
    call_respond_error(put->file->call, error);
    file_call_free(put->file);
}

/* The body waits for it. */
static void
make_parents(FileCall *file, int mode)
{
    g_autofree char *parent = g_path_get_dirname(file->path);
    Put *put = g_new0(Put, 1);

    put->file = file;
    put->mode = mode;
    box_file_mkdir(&file->spec, parent, FILE_FOLDER_MODE, on_parents_made, put);
}

static void
put_content(ApiCall *call)
{
    static const char *const names[] = {"path", "mode", "parents", NULL};
    g_autoptr(GError) error = NULL;
    gint64 parents = 0;
    int mode;

    if (!read_mode(call->request, &mode, &error) ||
        !url_query_get_int(http_request_query(call->request), "parents", 0, 1, &parents, &error)) {
        call_respond_error(call, error);
        return;
    }
    FileCall *f = file_call_from_query(call, names);
    if (f == NULL)
        return;
    if (parents != 0)
        make_parents(f, mode);
    else
        file_receive(f, mode);
}

const ApiRoute files_content_routes[] = {
    {"GET", "/api/v1/sandboxes/{id}/files", SCOPE_READ, 0, get_content},
    {"PUT", "/api/v1/sandboxes/{id}/files", SCOPE_BOX, 0, put_content},
    {NULL},
};

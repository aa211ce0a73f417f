/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a box by name: what there is, and making, moving, removing.  Their bytes are in
 * files-content.c, whole trees in files-tree.c. */
#include "api/file-call.h"
#include "api/routes.h"
#include "base/err.h"
#include "http/url.h"

enum { LIST_DEFAULT = 1000, PATH_BYTES_MAX = FRAME_PATH_MAX };

/* ---- what there is ---- */

static void
on_stat(const BoxEntry *entry, const GError *error, void *data)
{
    g_autoptr(FileCall) f = data;

    if (error != NULL)
        call_respond_error(f->call, error);
    else
        call_respond_json(f->call, 200, file_entry_json(entry, f->path));
}

static void
get_stat(ApiCall *call)
{
    static const char *const names[] = {"path", NULL};
    FileCall *f = file_call_from_query(call, names);

    if (f != NULL)
        box_file_stat(&f->spec, f->path, on_stat, f);
}

static char *
join(const char *folder, const char *name)
{
    return g_str_has_suffix(folder, "/") ? g_strconcat(folder, name, NULL)
                                         : g_strconcat(folder, "/", name, NULL);
}

static void
on_list(const BoxEntry *entries, size_t n, guint64 next, const GError *error, void *data)
{
    g_autoptr(FileCall) f = data;
    char cursor[24];

    if (error != NULL) {
        call_respond_error(f->call, error);
        return;
    }
    Json *list = json_array();
    for (size_t i = 0; i < n; i++) {
        g_autofree char *path = join(f->path, entries[i].name);

        json_array_append_new(list, file_entry_json(&entries[i], path));
    }
    /* Text: a cursor uses all of its 64 bits, and a browser's numbers have 53. */
    g_snprintf(cursor, sizeof cursor, "%" G_GUINT64_FORMAT, next);
    call_respond_json(f->call, 200,
                      json_pack("{s:o, s:o}", "entries", list, "next_cursor",
                                next != 0 ? json_string(cursor) : json_null()));
}

static bool
read_page(HttpRequest *request, guint64 *ret_cursor, gint64 *max, GError **error)
{
    const char *query = http_request_query(request);
    g_autofree char *cursor = NULL;

    *ret_cursor = 0;
    if (!url_query_get(query, "cursor", &cursor, error) ||
        !url_query_get_int(query, "max", 1, BUILTIN_LIST_MAX, max, error))
        return false;
    if (cursor != NULL && !g_ascii_string_to_unsigned(cursor, 10, 0, G_MAXINT64, ret_cursor, NULL))
        return err_set(error, ERR_INVALID, "'cursor' must be one that came as next_cursor");
    return true;
}

static void
get_list(ApiCall *call)
{
    static const char *const names[] = {"path", "cursor", "max", NULL};
    g_autoptr(GError) error = NULL;
    guint64 cursor;
    gint64 max = LIST_DEFAULT;

    if (!read_page(call->request, &cursor, &max, &error)) {
        call_respond_error(call, error);
        return;
    }
    FileCall *f = file_call_from_query(call, names);
    if (f != NULL)
        box_file_list(&f->spec, f->path, cursor, (guint)max, on_list, f);
}

/* ---- changes ---- */

static void
on_done(const GError *error, void *data)
{
    g_autoptr(FileCall) f = data;

    if (error != NULL)
        call_respond_error(f->call, error);
    else
        call_respond_empty(f->call);
}

static void
on_folder_made(const GError *error, void *data)
{
    g_autoptr(FileCall) f = data;

    if (error != NULL)
        call_respond_error(f->call, error);
    else
        call_respond_json(f->call, 201, json_pack("{s:s}", "path", f->path));
}

static bool
read_path_and_mode(ApiCall *call, Json *body, const char **ret_path, guint *mode, bool needs_mode)
{
    const char *text = NULL;
    const JsonField fields[] = {
        {.name = "path",
         .kind = JSON_KIND_STRING,
         .ret = (void *)ret_path,
         .required = true,
         .min = 1,
         .max = PATH_BYTES_MAX},
        {.name = "mode", .kind = JSON_KIND_STRING, .ret = &text, .required = needs_mode, .min = 1, .max = 8},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (json_read(body, fields, &error) && (text == NULL || file_mode_parse(text, mode, &error)))
        return true;
    call_respond_error(call, error);
    return false;
}

static void
make_folder(ApiCall *call, Json *body, void *data)
{
    const char *path;
    guint mode = FILE_FOLDER_MODE;

    if (!read_path_and_mode(call, body, &path, &mode, false))
        return;
    FileCall *f = file_call_new(call, path);
    if (f != NULL)
        box_file_mkdir(&f->spec, f->path, mode, on_folder_made, f);
}

static void
post_mkdir(ApiCall *call)
{
    call_read_json(call, make_folder, NULL);
}

static void
change_mode(ApiCall *call, Json *body, void *data)
{
    const char *path;
    guint mode = 0;

    if (!read_path_and_mode(call, body, &path, &mode, true))
        return;
    FileCall *f = file_call_new(call, path);
    if (f != NULL)
        box_file_chmod(&f->spec, f->path, mode, on_done, f);
}

static void
post_chmod(ApiCall *call)
{
    call_read_json(call, change_mode, NULL);
}

static void
move_file(ApiCall *call, Json *body, void *data)
{
    const char *from, *to;
    bool replace = false;
    const JsonField fields[] = {
        {.name = "from",
         .kind = JSON_KIND_STRING,
         .ret = &from,
         .required = true,
         .min = 1,
         .max = PATH_BYTES_MAX},
        {.name = "to",
         .kind = JSON_KIND_STRING,
         .ret = &to,
         .required = true,
         .min = 1,
         .max = PATH_BYTES_MAX},
        {.name = "replace", .kind = JSON_KIND_BOOL, .ret = &replace},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    FileCall *f = file_call_new(call, from);
    if (f != NULL)
        box_file_move(&f->spec, f->path, to, replace, on_done, f);
}

static void
post_move(ApiCall *call)
{
    call_read_json(call, move_file, NULL);
}

static void
delete_file(ApiCall *call)
{
    static const char *const names[] = {"path", "tree", NULL};
    g_autoptr(GError) error = NULL;
    gint64 tree = 0;

    if (!url_query_get_int(http_request_query(call->request), "tree", 0, 1, &tree, &error)) {
        call_respond_error(call, error);
        return;
    }
    FileCall *f = file_call_from_query(call, names);
    if (f != NULL)
        box_file_remove(&f->spec, f->path, tree != 0, on_done, f);
}

const ApiRoute files_routes[] = {
    {"GET", "/api/v1/sandboxes/{id}/files/stat", SCOPE_READ, 0, get_stat},
    {"GET", "/api/v1/sandboxes/{id}/files/list", SCOPE_READ, 0, get_list},
    {"POST", "/api/v1/sandboxes/{id}/files/mkdir", SCOPE_BOX, 0, post_mkdir},
    {"POST", "/api/v1/sandboxes/{id}/files/move", SCOPE_BOX, 0, post_move},
    {"POST", "/api/v1/sandboxes/{id}/files/chmod", SCOPE_BOX, 0, post_chmod},
    {"DELETE", "/api/v1/sandboxes/{id}/files", SCOPE_BOX, 0, delete_file},
    {NULL},
};

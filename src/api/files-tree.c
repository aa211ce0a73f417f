/* SPDX-License-Identifier: Apache-2.0 */
/* Whole trees, as tar. */
#include "api/file-receive.h"
#include "api/file-send.h"
#include "api/routes.h"

static void
answer(FileSend *s)
{
    file_download_headers(s->file->call->request, s->file->path, ".tar");
    file_send_answer(s, 200, "application/x-tar", -1);
}

/* The head waits for the first bytes, so that a folder that cannot be read is an error. */
static void
on_ready(BoxRead *read, void *ctx)
{
    FileSend *s = ctx;

    if (s->answered)
        file_send_ready(s);
    else
        answer(s);
}

static void
on_end(BoxRead *read, const GError *error, void *ctx)
{
    FileSend *s = ctx;

    s->read = NULL;
    if (s->answered)
        file_send_end(s, error);
    else if (error != NULL)
        file_send_refuse(s, error);
    else
        answer(s);
}

static void
get_archive(ApiCall *call)
{
    static const char *const names[] = {"path", NULL};
    static const BoxReadEvents events = {.ready = on_ready, .end = on_end};
    g_autoptr(GError) error = NULL;
    FileCall *f = file_call_from_query(call, names);

    if (f == NULL)
        return;
    FileSend *s = file_send_new(f);
    s->read = box_tree_read(&f->spec, f->path, &events, s, &error);
    if (s->read == NULL)
        file_send_refuse(s, error);
}

static void
put_archive(ApiCall *call)
{
    static const char *const names[] = {"path", NULL};
    FileCall *f = file_call_from_query(call, names);

    if (f != NULL)
        file_receive_tree(f);
}

const ApiRoute files_tree_routes[] = {
    {"GET", "/api/v1/sandboxes/{id}/archive", SCOPE_READ, 0, get_archive},
    {"PUT", "/api/v1/sandboxes/{id}/archive", SCOPE_BOX, 0, put_archive},
    {NULL},
};

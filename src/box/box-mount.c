/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "box/box-private.h"
#include "box/host-private.h"

typedef struct Attach {
    Box *box;
    BoxFunc done;
    void *data;
    GError *error;
} Attach;

static void
finish(Attach *attach, const GError *error)
{
    attach->done(attach->box, error, attach->data);
    box_unref(attach->box);
    g_clear_error(&attach->error);
    g_free(attach);
}

static void
on_refused(void *data)
{
    Attach *attach = data;

    finish(attach, attach->error);
}

static void
on_answer(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    finish(data, error);
}

static void
call(Box *box, KeeperVerb verb, const char *generation, BoxFunc done, void *data)
{
    KeeperRequest request = {.verb = verb, .n_layers = 1};
    Attach *attach = g_new0(Attach, 1);

    *attach = (Attach){.box = box_ref(box), .done = done, .data = data};
    if ((box->row.state != BOX_READY && box->row.state != BOX_CREATING) || box->host->keeper == NULL) {
        attach->error = g_error_new_literal(ERR_DOMAIN, ERR_CONFLICT, "the box is not ready, or has ended");
        host_later(box->host, on_refused, attach);
        return;
    }
    g_strlcpy(request.box, box->row.id, sizeof request.box);
    g_strlcpy(request.layers[0], generation, sizeof request.layers[0]);
    keeper_client_call(box->host->keeper, &request, on_answer, attach);
}

void
box_mount(Box *box, const char *generation, BoxFunc done, void *data)
{
    call(box, KEEPER_ATTACH, generation, done, data);
}

void
box_unmount(Box *box, const char *generation, BoxFunc done, void *data)
{
    call(box, KEEPER_DETACH, generation, done, data);
}

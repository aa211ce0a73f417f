/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/commands */
#include "api/call-box.h"
#include "api/command-answer.h"
#include "api/command-form.h"
#include "api/routes.h"

static void
start(ApiCall *call, Json *body, void *data)
{
    Box *box = call_box(call);
    g_autoptr(GError) error = NULL;
    g_autoptr(Run) run = NULL;

    if (box == NULL)
        return;
    g_autoptr(CommandForm) form = command_form_read(body, &error);

    if (form != NULL)
        run = command_form_start(form, box, call->caller.actor, &error);
    if (run == NULL) {
        call_respond_error(call, error);
        return;
    }
    bool wait = command_form_waits(form);

    command_answer_give(command_answer_new(call, box, run, wait), wait ? 200 : 201, NULL);
}

static void
post_command(ApiCall *call)
{
    call_read_json(call, start, NULL);
}

const ApiRoute command_start_routes[] = {
    {"POST", "/api/v1/sandboxes/{id}/commands", SCOPE_BOX, ROUTE_STREAM, post_command},
    {NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "api/command-find.h"
#include "api/form.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http/url.h"

enum { LIST_DEFAULT = 100, LIST_MAX = 1000, SIDE_MAX = 4096 };

/* ---- looking ---- */

static void
show_list(ApiCall *call, Json *list)
{
    call_respond_json(call, 200, json_pack("{s:O}", "commands", list));
}

static void
list_commands(ApiCall *call)
{
    static const char *const names[] = {"limit", NULL};
    const char *query = http_request_query(call->request);
    gint64 limit = LIST_DEFAULT;
    g_autoptr(GError) error = NULL;

    if (url_query_only(query, names, &error) &&
        url_query_get_int(query, "limit", 1, LIST_MAX, &limit, &error))
        call_commands(call, (guint)limit, show_list);
    else
        call_respond_error(call, error);
}

static void
show(ApiCall *call, const CommandPlace *place)
{
    call_respond_json(call, 200, json_incref(place->object));
}

static void
get_command(ApiCall *call)
{
    call_command(call, show);
}

/* ---- doing something to one ---- */

static void
send_signal(ApiCall *call, Json *body, void *data)
{
    Json *value = json_object_get(body, "signal");
    int number = 0;
    g_autoptr(GError) error = NULL;

    if (!json_is_object(body) || json_object_size(body) != 1 || value == NULL) {
        respond_error(call->request, 400, "the body must be an object with the one member 'signal'");
        return;
    }
    if (!form_read_signal(value, &number, &error)) {
        call_respond_error(call, error);
        return;
    }
    Run *run = call_live_run(call, NULL);
    if (run == NULL)
        return;
    run_signal(run, number);
    call_respond_empty(call);
}

static void
post_signal(ApiCall *call)
{
    call_read_json(call, send_signal, NULL);
}

static void
resize(ApiCall *call, Json *body, void *data)
{
    gint64 rows = 0, columns = 0;
    g_autoptr(GError) error = NULL;
    const JsonField fields[] = {
        {"rows", JSON_KIND_INT, &rows, true, 1, SIDE_MAX},
        {"columns", JSON_KIND_INT, &columns, true, 1, SIDE_MAX},
        {NULL},
    };

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    Run *run = call_live_run(call, NULL);
    if (run == NULL)
        return;
    if (!run_is_terminal(run)) {
        respond_error(call->request, 409, "the command has no terminal");
        return;
    }
    run_resize(run, (guint16)rows, (guint16)columns);
    call_respond_empty(call);
}

static void
post_resize(ApiCall *call)
{
    call_read_json(call, resize, NULL);
}

static void
delete_command(ApiCall *call)
{
    Run *run = call_live_run(call, NULL);

    if (run == NULL)
        return;
    run_signal(run, SIGKILL);
    call_respond_empty(call);
}

#define COMMANDS "/api/v1/sandboxes/{id}/commands"

const ApiRoute commands_routes[] = {
    {"GET", COMMANDS, SCOPE_READ, 0, list_commands},
    {"GET", COMMANDS "/{command}", SCOPE_READ, 0, get_command},
    {"DELETE", COMMANDS "/{command}", SCOPE_BOX, 0, delete_command},
    {"POST", COMMANDS "/{command}/signal", SCOPE_BOX, 0, post_signal},
    {"POST", COMMANDS "/{command}/resize", SCOPE_BOX, 0, post_resize},
    {NULL},
};

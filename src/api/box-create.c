/* SPDX-License-Identifier: Apache-2.0 */
#include "api/box-create.h"

#include <string.h>

#include "api/box-json.h"
#include "api/call-box.h"
#include "api/command-answer.h"
#include "api/form.h"
#include "api/state.h"
#include "base/err.h"

typedef struct Creation {
    ApiCall *call; /* with a reference to its request */
    BoxAnswerFunc answer;
    CommandForm *first;     /* NULL: none */
    CommandAnswer *started; /* NULL: not yet */
    GError *error;          /* why it could not be */
    bool leased;            /* somebody can find it again */
    bool repeated;          /* by an Idempotency-Key: the second answer is as the first */
} Creation;

static void
creation_free(Creation *c)
{
    HttpRequest *request = c->call->request;

    command_answer_free(c->started);
    command_form_free(c->first);
    g_clear_error(&c->error);
    g_free(c);
    http_request_unref(request);
}

static void
start_first(Box *box, void *data)
{
    Creation *c = data;
    g_autoptr(Run) run = command_form_start(c->first, box, c->call->caller.actor, &c->error);

    if (run != NULL)
        c->started = command_answer_new(c->call, box, run, command_form_waits(c->first));
}

static void
answer_first(Creation *c, Box *box, bool is_new)
{
    if (c->started == NULL && c->error == NULL)
        start_first(box, c);
    if (c->started != NULL)
        command_answer_give(g_steal_pointer(&c->started), is_new ? 201 : 200, box);
    else
        call_respond_error(c->call, c->error);
}

static void
on_created(Box *box, bool created, const GError *error, void *data)
{
    Creation *c = data;
    ApiCall *call = c->call;
    bool gone = http_request_is_gone(call->request);

    if (error != NULL)
        call_respond_error_after(
            call, error,
            err_kind(error) == ERR_LIMIT ? box_host_room_s(call->api->boxes, call->caller.key_id) : 0);
    else if (!gone && c->first != NULL)
        answer_first(c, box, created);
    else if (!gone)
        c->answer(call, box, created || c->repeated);
    if (created && !c->leased && (gone || c->error != NULL))
        box_kill(box, "abandoned", call->caller.actor, NULL, NULL);
    creation_free(c);
}

static bool
check_text(const char *name, const char *text, GError **error)
{
    if (text == NULL || text_is_printable(text))
        return true;
    return err_set(error, ERR_INVALID, "'%s' has characters that do not print", name);
}

bool
box_spec_check(const BoxSpec *spec, GError **error)
{
    if (spec->lease != NULL && g_str_has_prefix(spec->lease, LEASE_OF_CALL))
        return err_set(error, ERR_INVALID, "'lease' must not begin with '" LEASE_OF_CALL "'");
    return check_text("lease", spec->lease, error) && check_text("name", spec->name, error) &&
           check_text("template", spec->template, error) && check_text("agent_id", spec->agent_id, error) &&
           check_text("task_id", spec->task_id, error) && check_text("squad_id", spec->squad_id, error) &&
           check_text("repo_url", spec->repo_url, error);
}

/* A squad brings rules and budgets along, and no row says yet who belongs to it. */
static bool
check_squad(const ApiCall *call, const BoxSpec *spec, GError **error)
{
    return spec->squad_id == NULL || call_is_admin(call) ||
           err_set(error, ERR_DENIED, "only an admin may put a box into a squad ('squad_id')");
}

static bool
read_call_key(ApiCall *call, bool once, const char **ret_key, GError **error)
{
    const char *key = http_request_header(call->request, "Idempotency-Key");

    if (key != NULL && (key[0] == '\0' || strlen(key) > LEASE_MAX || !g_utf8_validate(key, -1, NULL) ||
                        !text_is_printable(key)))
        return err_set(error, ERR_INVALID, "Idempotency-Key must have 1 to %d characters that print",
                       LEASE_MAX);
    if (key != NULL && once)
        return err_set(error, ERR_INVALID,
                       "a create with a 'command' is not repeated: leave one or the Idempotency-Key out");
    *ret_key = key;
    return true;
}

void
call_create_box(ApiCall *call, BoxSpec *spec, CommandForm *first, BoxAnswerFunc answer)
{
    g_autoptr(CommandForm) owned = first;
    g_autoptr(GError) error = NULL;
    g_autofree char *lease = NULL;
    const char *key = NULL;

    if (!call_has_boxes(call))
        return;
    if (!box_spec_check(spec, &error) || !check_squad(call, spec, &error) ||
        !read_call_key(call, first != NULL, &key, &error)) {
        call_respond_error(call, error);
        return;
    }
    Creation *c = g_new0(Creation, 1);
    *c = (Creation){.call = call, .answer = answer, .first = g_steal_pointer(&owned)};
    if (key != NULL && spec->lease == NULL) {
        spec->lease = lease = g_strconcat(LEASE_OF_CALL, key, NULL);
        c->repeated = true;
    }
    c->leased = spec->lease != NULL;
    spec->owner = call->caller.key_id;
    spec->actor = call->caller.actor;
    spec->usable = first != NULL ? start_first : NULL;
    http_request_ref(call->request);
    box_host_create(call->api->boxes, spec, on_created, c);
}

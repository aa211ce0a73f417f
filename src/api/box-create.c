/* SPDX-License-Identifier: Apache-2.0 */
#include "api/box-create.h"

#include <string.h>

#include "api/box-json.h"
#include "api/call-box.h"
#include "api/form.h"
#include "api/state.h"
#include "base/err.h"

typedef struct Creation {
    ApiCall *call; /* with a reference to its request */
    BoxAnswerFunc answer;
    bool leased;   /* somebody can find it again */
    bool repeated; /* by an Idempotency-Key: the second answer is as the first */
} Creation;

static void
on_created(Box *box, bool created, const GError *error, void *data)
{
    g_autofree Creation *c = data;
    ApiCall *call = c->call;

    if (error != NULL) {
        call_respond_error(call, error);
    } else if (http_request_is_gone(call->request)) {
        if (created && !c->leased)
            box_kill(box, "abandoned", call->caller.actor, NULL, NULL);
    } else {
        c->answer(call, box, created || c->repeated);
    }
    http_request_unref(call->request);
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
           check_text("task_id", spec->task_id, error) && check_text("repo_url", spec->repo_url, error);
}

static bool
read_call_key(ApiCall *call, const char **ret_key, GError **error)
{
    const char *key = http_request_header(call->request, "Idempotency-Key");

    if (key != NULL && (key[0] == '\0' || strlen(key) > LEASE_MAX || !g_utf8_validate(key, -1, NULL) ||
                        !text_is_printable(key)))
        return err_set(error, ERR_INVALID, "Idempotency-Key must have 1 to %d characters that print",
                       LEASE_MAX);
    *ret_key = key;
    return true;
}

void
call_create_box(ApiCall *call, BoxSpec *spec, BoxAnswerFunc answer)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *lease = NULL;
    const char *key = NULL;

    if (!call_has_boxes(call))
        return;
    if (!box_spec_check(spec, &error) || !read_call_key(call, &key, &error)) {
        call_respond_error(call, error);
        return;
    }
    Creation *c = g_new0(Creation, 1);
    *c = (Creation){.call = call, .answer = answer};
    if (key != NULL && spec->lease == NULL) {
        spec->lease = lease = g_strconcat(LEASE_OF_CALL, key, NULL);
        c->repeated = true;
    }
    c->leased = spec->lease != NULL;
    spec->owner = call->caller.key_id;
    spec->actor = call->caller.actor;
    http_request_ref(call->request);
    box_host_create(call->api->boxes, spec, on_created, c);
}

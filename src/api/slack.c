/* SPDX-License-Identifier: Apache-2.0 */
/* A slash command of Slack becomes a task.  Nobody is known before the signature is: the bytes are held,
 * bounded, judged as they came with the time they carry, and only then read.  Slack waits three seconds for
 * an answer, and gets one earlier whatever the disk does. */
#include <sodium.h>
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "api/team-call.h"
#include "base/clock.h"
#include "forge/row.h"
#include "http/url.h"
#include "team/task.h"

enum {
    BODY_MAX = 64 * 1024,
    OLDEST_S = 5 * 60, /* of a request: an older one may be sent again by somebody else */
    ANSWER_MS = 2500,
    NAME_MAX_BYTES = 60,
    ACTOR_SIZE = 100,
};

typedef struct Order {
    LoopTimer late; /* first: the timer hands back its address */
    ApiCall *call;  /* with a reference to its request; NULL: answered */
    guint refs;
} Order;

/* ---- whose it is ---- */

static bool
is_recent(const char *stamp)
{
    guint64 at;

    return stamp != NULL &&
           g_ascii_string_to_unsigned(stamp, 10, 0, G_MAXINT64 / G_USEC_PER_SEC, &at, NULL) &&
           ABS(clock_wall_us() / G_USEC_PER_SEC - (gint64)at) <= OLDEST_S;
}

static bool
slack_is_signed(const char *secret, const char *stamp, const char *signature, const void *body, size_t n)
{
    static const char hash_prefix[] = "sha256=", prefix[] = "v0=";
    g_autoptr(GString) base = g_string_new(NULL);

    if (!is_recent(stamp) || signature == NULL)
        return false;
    g_string_append_printf(base, "v0:%s:", stamp);
    g_string_append_len(base, body, (gssize)n);
    g_autofree char *hash = hook_sign(secret, strlen(secret), base->str, base->len);
    g_autofree char *ours = g_strconcat(prefix, hash + strlen(hash_prefix), NULL);

    return strlen(signature) == strlen(ours) && sodium_memcmp(signature, ours, strlen(ours)) == 0;
}

/* ---- answers ---- */

static void
say(ApiCall *call, const char *where, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);

    call_respond_json(call, 200, json_pack("{s:s, s:s}", "response_type", where, "text", valid));
}

static void
order_end(Order *o, const char *where, const char *text)
{
    ApiCall *call = g_steal_pointer(&o->call);

    if (call == NULL)
        return;
    loop_timer_cancel(call->api->loop, &o->late);
    say(call, where, text);
    http_request_unref(call->request);
}

static void
order_unref(Order *o)
{
    if (--o->refs == 0)
        g_free(o);
}

static void
on_late(LoopTimer *timer)
{
    order_end((Order *)timer, "ephemeral", "Taken; it is being written down. `coop task ls` shows it.");
}

static void
on_made(Json *task, const GError *error, void *data)
{
    Order *o = data;
    g_autofree char *text = NULL;

    if (error != NULL)
        text = g_strdup_printf("That did not work: %s", error->message);
    else
        text = g_strdup_printf("Task #%" G_GINT64_FORMAT ": %s%s%s", row_int(task, "number"),
                               row_text(task, "title"),
                               row_text(task, "branch") != NULL ? ", on the branch " : "",
                               row_text(task, "branch") != NULL ? row_text(task, "branch") : "");
    order_end(o, error != NULL ? "ephemeral" : "in_channel", text);
    order_unref(o);
}

/* ---- the order ---- */

static void
take(ApiCall *call, const char *text, const char *user, const char *trigger)
{
    g_autofree char *actor = g_strdup_printf("slack:%.*s", NAME_MAX_BYTES, user != NULL ? user : "");
    g_autofree char *dedupe = trigger != NULL ? g_strdup_printf("slack:%s", trigger) : NULL;
    Order *o = g_new0(Order, 1);

    *o = (Order){.call = call, .refs = 1, .late.expired = on_late};
    http_request_ref(call->request);
    loop_timer_set(call->api->loop, &o->late, ANSWER_MS);
    task_create(
        call->api->team,
        &(TaskSpec){.actor = actor, .owner = "", .source = "slack", .request = text, .dedupe = dedupe},
        on_made, o);
}

static void
obey(ApiCall *call, const char *form)
{
    g_autofree char *text = NULL, *user = NULL, *trigger = NULL, *command = NULL;
    g_autoptr(GError) error = NULL;

    if (!url_query_get(form, "text", &text, &error) || !url_query_get(form, "user_id", &user, &error) ||
        !url_query_get(form, "command", &command, &error) ||
        !url_query_get(form, "trigger_id", &trigger, &error)) {
        call_respond_error(call, error);
        return;
    }
    if (text == NULL || g_strstrip(text)[0] == '\0')
        say(call, "ephemeral", "Say what shall be built: `/code-team build a todo app`");
    else
        take(call, text, user, trigger);
}

static void
on_body(HttpRequest *request, const guint8 *body, size_t n, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL) {
        call_respond_body_error(call, error);
        return;
    }
    if (!slack_is_signed(call->api->slack_secret, http_request_header(request, "X-Slack-Request-Timestamp"),
                         http_request_header(request, "X-Slack-Signature"), body, n)) {
        respond_error(request, 401, "X-Slack-Signature is missing, too old, or made with another secret");
        return;
    }
    g_autofree char *form = g_strndup((const char *)body, n);

    obey(call, form);
}

static void
post_command(ApiCall *call)
{
    if (call->api->slack_secret == NULL)
        respond_error(call->request, 404, "Slack is not set up here: see slack.signing_secret");
    else if (call_team(call) != NULL)
        http_request_read_all(call->request, BODY_MAX, on_body, call);
}

const ApiRoute slack_routes[] = {
    {"POST", "/slack/commands", 0, ROUTE_PUBLIC, post_command},
    {NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* A slash command of Slack becomes a task, or asks for one that did.  Nobody is known before the signature
 * is: the bytes are held, bounded, judged as they came with the time they carry, and only then read.  Slack
 * waits three seconds for an answer, and gets one earlier whatever the disk does. */
#include <sodium.h>
#include <string.h>

#include "api/routes.h"
#include "api/slack-words.h"
#include "api/state.h"
#include "api/team-call.h"
#include "base/clock.h"
#include "base/log.h"
#include "forge/row.h"
#include "http/url.h"
#include "team/task.h"

enum {
    BODY_MAX = 64 * 1024,
    OLDEST_S = 5 * 60, /* of a request: an older one may be sent again by somebody else */
    ANSWER_MS = 2500,
    NAME_MAX_BYTES = 60,
};

typedef struct Order {
    LoopTimer late; /* first: the timer hands back its address */
    ApiCall *call;  /* with a reference to its request; NULL: answered */
    Team *team;
    const struct Verb *verb; /* NULL: a new task */
    char *actor, *id, *words;
} Order;

typedef struct SlackForm {
    char *text, *user, *trigger, *reply;
} SlackForm;

/* "status 12": what is asked of a task that came from Slack. */
typedef struct Verb {
    const char *name;
    bool wants_words;
    void (*act)(Order *o, const TaskRef *ref, TeamJsonFunc done);
    const char *said; /* in the place of the task's state; NULL: that */
} Verb;

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
order_free(Order *o)
{
    g_free(o->actor);
    g_free(o->id);
    g_free(o->words);
    g_free(o);
}

static void
on_late(LoopTimer *timer)
{
    order_end((Order *)timer, "ephemeral", "Taken; it is being written down. `coop task ls` shows it.");
}

static Order *
order_new(ApiCall *call, const char *user)
{
    Order *o = g_new0(Order, 1);

    *o = (Order){.late.expired = on_late,
                 .call = call,
                 .team = call->api->team,
                 .actor = g_strdup_printf("slack:%.*s", NAME_MAX_BYTES, user != NULL ? user : "")};
    http_request_ref(call->request);
    loop_timer_set(call->api->loop, &o->late, ANSWER_MS);
    return o;
}

static void
order_fail(Order *o, const char *why)
{
    g_autofree char *words = slack_escape(why);
    g_autofree char *text = g_strdup_printf("That did not work: %s", words);

    order_end(o, "ephemeral", text);
    order_free(o);
}

/* ---- a new task ---- */

static void
on_made(Json *task, const GError *error, void *data)
{
    Order *o = data;

    if (error != NULL) {
        order_fail(o, error->message);
        return;
    }
    g_autofree char *title = slack_escape(row_text(task, "title"));
    const char *branch = row_text(task, "branch");
    g_autofree char *text = g_strdup_printf("Task #%" G_GINT64_FORMAT ": %s%s%s", row_int(task, "number"),
                                            title, branch != NULL ? ", on the branch " : "",
                                            branch != NULL ? branch : "");

    order_end(o, "in_channel", text);
    order_free(o);
}

/* Only to Slack, and encrypted: a signature says who asks, not that every address in it is theirs. */
static bool
is_origin(Api *api, const char *url)
{
    g_autoptr(GUri) uri = g_uri_parse(url, G_URI_FLAGS_NONE, NULL);
    const char *host = uri != NULL ? g_uri_get_host(uri) : NULL;

    if (host == NULL || g_uri_get_userinfo(uri) != NULL || api->slack_origins == NULL)
        return false;
    g_autofree char *port = g_uri_get_port(uri) >= 0 ? g_strdup_printf(":%d", g_uri_get_port(uri)) : NULL;
    g_autofree char *origin = g_strdup_printf("%s://%s%s", g_uri_get_scheme(uri), host,
                                              port != NULL ? port : "");
    g_autofree char *lower = g_ascii_strdown(origin, -1);

    return g_strv_contains((const char *const *)api->slack_origins, lower);
}

static void
make(ApiCall *call, const SlackForm *form)
{
    g_autofree char *dedupe = form->trigger != NULL ? g_strdup_printf("slack:%s", form->trigger) : NULL;
    const char *reply = form->reply;
    Order *o = order_new(call, form->user);

    if (reply != NULL &&
        (call->api->hooks == NULL || strlen(reply) > HOOK_URL_MAX || !is_origin(call->api, reply))) {
        log_warn("slack", "progress is not posted to an address that slack.reply_origins does not name");
        reply = NULL;
    }
    task_create(o->team,
                &(TaskSpec){.actor = o->actor,
                            .owner = "",
                            .source = "slack",
                            .request = form->text,
                            .dedupe = dedupe,
                            .reply = reply,
                            .seal = reply != NULL ? hooks_seal(call->api->hooks) : NULL},
                on_made, o);
}

/* ---- one that is there ---- */

static void
act_stop(Order *o, const TaskRef *ref, TeamJsonFunc done)
{
    task_stop(o->team, ref, "stopped from Slack", done, o);
}

static void
act_retry(Order *o, const TaskRef *ref, TeamJsonFunc done)
{
    task_retry(o->team, ref, done, o);
}

static void
act_answer(Order *o, const TaskRef *ref, TeamJsonFunc done)
{
    task_answer(o->team, ref, NULL, o->words, done, o);
}

static const Verb verbs[] = {
    {"answer", true, act_answer, "The answer is given."},
    {"retry", false, act_retry, NULL},
    {"status", false, NULL, NULL},
    {"stop", false, act_stop, NULL},
};

static void
on_acted(Json *task, const GError *error, void *data)
{
    Order *o = data;

    if (error != NULL) {
        order_fail(o, error->message);
        return;
    }
    g_autofree char *text = o->verb->said != NULL ? g_strdup(o->verb->said) : slack_status(task);

    order_end(o, "ephemeral", text);
    order_free(o);
}

/* Who may speak in the workspace may speak of what came from there, and of nothing else. */
static void
on_task(Json *task, const GError *error, void *data)
{
    Order *o = data;
    TaskRef ref = {.id = row_text(task, "id"), .owner = "", .actor = o->actor};

    if (error != NULL)
        order_fail(o, error->message);
    else if (g_strcmp0(row_text(task, "source"), "slack") != 0)
        order_fail(o, "that task did not come from Slack");
    else if (o->verb->act == NULL)
        on_acted(task, NULL, o);
    else
        o->verb->act(o, &ref, on_acted);
}

/* NULL: it is a request, whatever its first word is. */
static const Verb *
find_verb(char *const *parts)
{
    guint n = g_strv_length((char **)(guintptr)parts);

    for (size_t i = 0; n >= 2 && i < G_N_ELEMENTS(verbs); i++) {
        const char *number = parts[1] + (parts[1][0] == '#');

        if (strcmp(verbs[i].name, parts[0]) == 0 && number[0] != '\0' &&
            number[strspn(number, "0123456789")] == '\0' && (n > 2) == verbs[i].wants_words)
            return &verbs[i];
    }
    return NULL;
}

static void
obey(ApiCall *call, const SlackForm *form)
{
    g_auto(GStrv) parts = g_strsplit(form->text, " ", 3);
    const Verb *verb = find_verb(parts);

    if (verb == NULL) {
        make(call, form);
        return;
    }
    Order *o = order_new(call, form->user);

    o->verb = verb;
    o->id = g_strdup(parts[1]);
    o->words = g_strdup(parts[2]);
    task_get(o->team, &(TaskRef){.id = o->id, .owner = "", .actor = o->actor}, on_task, o);
}

/* ---- the command ---- */

static void
slack_form_clear(SlackForm *form)
{
    g_free(form->text);
    g_free(form->user);
    g_free(form->trigger);
    g_free(form->reply);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SlackForm, slack_form_clear)

static void
read_form(ApiCall *call, const char *body)
{
    g_auto(SlackForm) form = {0};
    g_autoptr(GError) error = NULL;

    if (!url_query_get(body, "text", &form.text, &error) ||
        !url_query_get(body, "user_id", &form.user, &error) ||
        !url_query_get(body, "trigger_id", &form.trigger, &error) ||
        !url_query_get(body, "response_url", &form.reply, &error)) {
        call_respond_error(call, error);
        return;
    }
    if (form.text == NULL || g_strstrip(form.text)[0] == '\0')
        say(call, "ephemeral",
            "Say what shall be built: `/code-team build a todo app`. Then `/code-team status 12`, `stop 12`, "
            "`retry 12`, `answer 12 …`.");
    else
        obey(call, &form);
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

    read_form(call, form);
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

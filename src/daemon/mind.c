/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mind.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/listen.h"
#include "daemon/mind-words.h"
#include "door/rules.h"
#include "http/client.h"

G_STATIC_ASSERT((int)MIND_BOXES_MAX > (int)MIND_AT_ONCE);

typedef struct MindBox {
    char id[16]; /* "mind-63" */
    char *socket;
    char *who; /* agent, task and squad, a line each */
    guint users;
    guint64 used; /* a count that grows, for the one that was not used for the longest time */
} MindBox;

typedef struct Question {
    ServeMind *mind;
    guint id;
    MindBox *box; /* NULL: none could be made */
    ProviderKind kind;
    HttpCall *call; /* NULL: it ended, or could not be made */
    GByteArray *body;
    LoopTimer patience; /* until the door must be there; with `failed`, until that can be told */
    GError *failed;
    gint64 began_us;
    MindFunc done;
    void *data;
} Question;

struct ServeMind {
    Loop *loop;
    DoorService *door;
    HttpClient *client;
    char *run;
    Json *policy;
    MindBox *boxes[MIND_BOXES_MAX]; /* NULL: free */
    guint64 uses;
    GHashTable *questions; /* id -> Question* */
    guint last_id;
};

/* ---- boxes ---- */

static void
drop_box(ServeMind *m, guint i)
{
    MindBox *box = g_steal_pointer(&m->boxes[i]);

    door_link_remove_box(door_service_link(m->door), box->id);
    (void)unlink(box->socket); /* the next one of this name does it else */
    g_free(box->socket);
    g_free(box->who);
    g_free(box);
}

static guint
choose_place(ServeMind *m)
{
    guint oldest = MIND_BOXES_MAX;

    for (guint i = 0; i < MIND_BOXES_MAX; i++) {
        const MindBox *box = m->boxes[i];

        if (box == NULL)
            return i;
        if (box->users == 0 && (oldest == MIND_BOXES_MAX || box->used < m->boxes[oldest]->used))
            oldest = i;
    }
    drop_box(m, oldest);
    return oldest;
}

static MindBox *
make_box(ServeMind *m, const MindAsk *ask, const char *who, GError **error)
{
    guint i = choose_place(m);
    g_autofree char *socket = g_strdup_printf("%s/mind-%u", m->run, i);
    g_autofree char *policy_name = door_policy_name(m->policy);
    int fd = listen_unix(socket, error);

    if (fd < 0)
        return NULL;
    MindBox *box = m->boxes[i] = g_new0(MindBox, 1);
    DoorLinkBox spec = {.id = box->id,
                        .policy_name = policy_name,
                        .policy = m->policy,
                        .labels = {.agent = ask->agent, .task = ask->task_id, .squad = ask->squad_id}};

    g_snprintf(box->id, sizeof box->id, "mind-%u", i);
    box->socket = g_steal_pointer(&socket);
    box->who = g_strdup(who);
    door_link_add_box(door_service_link(m->door), fd, &spec);
    return box;
}

static MindBox *
use_box(ServeMind *m, const MindAsk *ask, GError **error)
{
    g_autofree char *who = g_strdup_printf("%s\n%s\n%s", ask->agent, ask->task_id != NULL ? ask->task_id : "",
                                           ask->squad_id != NULL ? ask->squad_id : "");
    MindBox *box = NULL;

    for (guint i = 0; i < MIND_BOXES_MAX && box == NULL; i++) {
        if (m->boxes[i] != NULL && strcmp(m->boxes[i]->who, who) == 0)
            box = m->boxes[i];
    }
    if (box == NULL)
        box = make_box(m, ask, who, error);
    if (box != NULL) {
        box->users++;
        box->used = ++m->uses;
    }
    return box;
}

/* ---- one question ---- */

static void
question_free(gpointer data)
{
    Question *q = data;

    loop_timer_cancel(q->mind->loop, &q->patience);
    if (q->call != NULL)
        http_call_cancel(q->call);
    if (q->box != NULL)
        q->box->users--;
    g_byte_array_unref(q->body);
    g_clear_error(&q->failed);
    g_free(q);
}

/* The question is gone before its asker hears: whatever he does then, it is not in the way. */
static void
finish(Question *q, const MindAnswer *answer, const GError *error)
{
    MindFunc done = q->done;
    void *data = q->data;
    g_autoptr(GError) copy = error != NULL ? g_error_copy(error) : NULL;

    g_hash_table_remove(q->mind->questions, GUINT_TO_POINTER(q->id));
    done(answer, copy, data);
}

static void
answer(Question *q, int status)
{
    const char *bytes = (const char *)q->body->data;
    size_t n = q->body->len;
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) body = NULL;
    MindAnswer a = {.duration_us = clock_mono_us() - q->began_us};
    bool ok = status == 200 ? mind_decode(q->kind, bytes, n, &body, &a, &error)
                            : mind_refused(status, bytes, n, &error);

    finish(q, ok ? &a : NULL, error);
}

/* A door that went away in the middle may be asked again, as one that never was there. */
static void
on_done(HttpCall *call, int status, const GError *error, void *ctx)
{
    Question *q = ctx;
    g_autoptr(GError) lost = NULL;

    q->call = NULL;
    if (error == NULL) {
        answer(q, status);
        return;
    }
    lost = g_error_new(ERR_DOMAIN, err_kind(error) == ERR_TIMEOUT ? ERR_TIMEOUT : ERR_UNAVAILABLE, "%s",
                       err_kind(error) == ERR_TIMEOUT ? "the model did not answer in time"
                                                      : "the door ended before the model answered");
    finish(q, NULL, lost);
}

static bool
on_data(HttpCall *call, const guint8 *bytes, size_t n, void *ctx)
{
    Question *q = ctx;

    if (q->body->len + n <= MIND_BODY_MAX) {
        g_byte_array_append(q->body, bytes, (guint)n);
        return true;
    }
    g_autoptr(GError) error = g_error_new(ERR_DOMAIN, ERR_INVALID,
                                          "the model's answer is longer than %d bytes", MIND_BODY_MAX);

    finish(q, NULL, error);
    return false;
}

static void
on_impatient(LoopTimer *timer)
{
    Question *q = (Question *)(void *)((char *)timer - offsetof(Question, patience));
    g_autoptr(GError) away = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, "the door is away");

    if (q->failed != NULL)
        finish(q, NULL, q->failed);
    else if (!door_link_is_up(door_service_link(q->mind->door)))
        finish(q, NULL, away);
}

static bool
begin(Question *q, const MindAsk *ask, GError **error)
{
    static const char *const headers[] = {"Content-Type: application/json", "Connection: close", NULL};
    static const HttpCallHandler handler = {.data = on_data, .done = on_done};
    ServeMind *m = q->mind;
    DoorLink *link = door_service_link(m->door);
    g_autoptr(Json) providers = door_models_providers(door_service_models(m->door));

    if (g_hash_table_size(m->questions) >= MIND_AT_ONCE)
        return err_set(error, ERR_UNAVAILABLE, "%d questions are under way", MIND_AT_ONCE);
    if (strlen(ask->prompt) > MIND_PROMPT_MAX ||
        (ask->system != NULL && strlen(ask->system) > MIND_PROMPT_MAX))
        return err_set(error, ERR_INVALID, "a question is longer than %d bytes", MIND_PROMPT_MAX);
    q->box = use_box(m, ask, error);
    if (q->box == NULL)
        return false;
    q->kind = mind_kind(providers, door_link_own_providers(link), ask);
    g_autofree char *url = g_strconcat("http://door", mind_path(q->kind), NULL);
    g_autofree char *body = mind_encode(q->kind, ask);
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    spec.method = "POST";
    spec.url = url;
    spec.unix_socket = q->box->socket;
    spec.headers = headers;
    spec.body = body;
    spec.body_len = strlen(body);
    spec.total_ms = ask->timeout_ms;
    q->call = http_client_call(m->client, &spec, &handler, q, error);
    return q->call != NULL;
}

static guint
ask_model(void *ctx, const MindAsk *ask, MindFunc done, void *data)
{
    ServeMind *m = ctx;
    Question *q = g_new0(Question, 1);

    *q = (Question){.mind = m,
                    .body = g_byte_array_new(),
                    .patience = {.expired = on_impatient},
                    .began_us = clock_mono_us(),
                    .done = done,
                    .data = data};
    if (!begin(q, ask, &q->failed))
        loop_timer_set(m->loop, &q->patience, 0);
    else if (!door_link_is_up(door_service_link(m->door)))
        loop_timer_set(m->loop, &q->patience, MIND_DOOR_MS);
    do {
        q->id = ++m->last_id;
    } while (q->id == 0 || g_hash_table_contains(m->questions, GUINT_TO_POINTER(q->id)));
    g_hash_table_insert(m->questions, GUINT_TO_POINTER(q->id), q);
    return q->id;
}

static void
cancel(void *ctx, guint id)
{
    ServeMind *m = ctx;

    g_hash_table_remove(m->questions, GUINT_TO_POINTER(id));
}

/* ---- its life ---- */

ServeMind *
serve_mind_new(Loop *loop, DoorService *door, const char *run)
{
    ServeMind *m = g_new0(ServeMind, 1);

    m->loop = loop;
    m->door = door;
    m->client = http_client_new(NULL);
    m->run = g_strdup(run);
    m->policy = json_pack("{s:s, s:[]}", "mode", "deny", "rules");
    m->questions = g_hash_table_new_full(NULL, NULL, NULL, question_free);
    return m;
}

void
serve_mind_free(ServeMind *m)
{
    if (m == NULL)
        return;
    g_hash_table_unref(m->questions);
    for (guint i = 0; i < MIND_BOXES_MAX; i++) {
        if (m->boxes[i] != NULL)
            drop_box(m, i);
    }
    http_client_free(m->client);
    json_decref(m->policy);
    g_free(m->run);
    g_free(m);
}

Mind
serve_mind_face(ServeMind *m)
{
    return (Mind){.ask = ask_model, .cancel = cancel, .ctx = m};
}

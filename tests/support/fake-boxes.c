/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake-boxes.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "box/link.h"

typedef struct FakeCall {
    KeeperRequest request;
    KeeperFunc func;
    void *data;
} FakeCall;

struct KeeperClient {
    KeeperEvents events;
    void *ctx;
    bool ready;
    GQueue calls; /* FakeCall* */
    guint source;
};

static struct {
    KeeperClient *client;
    GHashTable *boxes; /* char* -> NULL */
    GHashTable *links; /* char* -> BoxLink* */
    bool held[KEEPER_LISTED + 1];
    int fail[KEEPER_LISTED + 1]; /* ErrKind + 1 */
    guint n_calls[KEEPER_LISTED + 1];
    KeeperRequest last[KEEPER_LISTED + 1];
    guint oom_kills;
    bool away, probe_dead;
    GPtrArray *gone; /* KeeperAnswer*: nobody was told */
    char **last_env;
    char *last_user, *last_cwd;
    guint n_stopped, n_streamed;
} world;

static const int no_fds[KEEPER_FDS] = {-1, -1, -1};

void
fake_boxes_reset(void)
{
    g_clear_pointer(&world.boxes, g_hash_table_unref);
    g_clear_pointer(&world.links, g_hash_table_unref);
    g_clear_pointer(&world.gone, g_ptr_array_unref);
    g_clear_pointer(&world.last_env, g_strfreev);
    g_clear_pointer(&world.last_user, g_free);
    g_clear_pointer(&world.last_cwd, g_free);
    memset(&world, 0, sizeof world);
    fake_templates_reset();
    world.boxes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    world.links = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    world.gone = g_ptr_array_new_with_free_func(g_free);
}

/* ---- the keeper ---- */

static KeeperAnswer
answer_for(const char *id, KeeperVerb verb)
{
    KeeperAnswer answer = {.verb = verb, .version = KEEPER_VERSION};

    if (id != NULL)
        g_strlcpy(answer.box, id, sizeof answer.box);
    return answer;
}

static void
make_fds(int ret_fds[KEEPER_FDS])
{
    int pair[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
    ret_fds[KEEPER_FD_CHANNEL] = pair[0];
    ret_fds[KEEPER_FD_PIDFD] = pair[1];
    ret_fds[KEEPER_FD_DOOR] = -1;
}

static void
answer_call(FakeCall *call)
{
    static const KeeperVerb answers[] = {
        [KEEPER_CREATE] = KEEPER_BOX, [KEEPER_KILL] = KEEPER_GONE,  [KEEPER_FREEZE] = KEEPER_OK,
        [KEEPER_THAW] = KEEPER_OK,    [KEEPER_STAT] = KEEPER_STATS, [KEEPER_PREPARE] = KEEPER_OK};
    guint verb = call->request.verb;
    KeeperAnswer answer = answer_for(call->request.box, answers[verb]);
    int fds[KEEPER_FDS] = {-1, -1, -1};

    answer.oom_kills = world.oom_kills;
    if (verb == KEEPER_KILL) {
        g_hash_table_remove(world.boxes, call->request.box);
        answer.exit_code = 137;
    }
    if (verb == KEEPER_CREATE) {
        g_hash_table_add(world.boxes, g_strdup(call->request.box));
        make_fds(fds);
    }
    if (call->func != NULL)
        call->func(&answer, fds, NULL, call->data);
    g_free(call);
}

static void
fail_call(FakeCall *call, ErrKind kind)
{
    g_autoptr(GError) error = g_error_new(ERR_DOMAIN, (gint)kind, "the fake says %s", err_kind_name(kind));

    if (call->func != NULL)
        call->func(NULL, no_fds, error, call->data);
    g_free(call);
}

static void
list(KeeperClient *client)
{
    g_autoptr(GList) ids = g_hash_table_get_keys(world.boxes);
    KeeperAnswer hello = answer_for(NULL, KEEPER_OK);

    for (guint i = 0; i < world.gone->len; i++)
        client->events.gone(world.gone->pdata[i], client->ctx);
    g_ptr_array_set_size(world.gone, 0);
    for (GList *l = ids; l != NULL; l = l->next) {
        KeeperAnswer answer = answer_for(l->data, KEEPER_BOX);
        int fds[KEEPER_FDS];

        make_fds(fds);
        client->events.box(&answer, fds, client->ctx);
    }
    client->ready = true;
    client->events.listed(&hello, client->ctx);
}

static FakeCall *
next_call(KeeperClient *client)
{
    for (GList *l = client->calls.head; l != NULL; l = l->next) {
        FakeCall *call = l->data;

        if (!world.held[call->request.verb] || !client->ready) {
            g_queue_delete_link(&client->calls, l);
            return call;
        }
    }
    return NULL;
}

static gboolean
on_turn(gpointer data)
{
    KeeperClient *client = data;

    client->source = 0;
    if (!client->ready && !world.away)
        list(client);
    for (FakeCall *call; world.client == client && (call = next_call(client)) != NULL;) {
        guint verb = call->request.verb;
        int fail = world.fail[verb];

        world.fail[verb] = 0;
        if (!client->ready || fail != 0)
            fail_call(call, client->ready ? (ErrKind)(fail - 1) : ERR_UNAVAILABLE);
        else
            answer_call(call);
    }
    return G_SOURCE_REMOVE;
}

static void
wake(void)
{
    if (world.client != NULL && world.client->source == 0)
        world.client->source = g_idle_add_full(G_PRIORITY_DEFAULT, on_turn, world.client, NULL);
}

KeeperClient *
keeper_client_new(const KeeperClientSpec *spec)
{
    KeeperClient *client = g_new0(KeeperClient, 1);

    *client = (KeeperClient){.events = spec->events, .ctx = spec->ctx};
    world.client = client;
    wake();
    if (world.away)
        client->events.lost(client->ctx);
    return client;
}

void
keeper_client_free(KeeperClient *client)
{
    FakeCall *call;

    if (client == NULL)
        return;
    world.client = NULL;
    if (client->source != 0)
        g_source_remove(client->source);
    while ((call = g_queue_pop_head(&client->calls)) != NULL)
        fail_call(call, ERR_CANCELLED);
    g_free(client);
}

bool
keeper_client_is_ready(const KeeperClient *client)
{
    return client->ready;
}

void
keeper_client_call(KeeperClient *client, const KeeperRequest *request, KeeperFunc func, void *data)
{
    FakeCall *call = g_new(FakeCall, 1);

    g_assert_true(keeper_request_check(request));
    *call = (FakeCall){.request = *request, .func = func, .data = data};
    world.n_calls[request->verb]++;
    world.last[request->verb] = *request;
    g_queue_push_tail(&client->calls, call);
    wake();
}

void
keeper_client_call_fd(KeeperClient *client, const KeeperRequest *request, int fd, KeeperFunc func, void *data)
{
    keeper_client_call(client, request, func, data);
}

void
fake_keeper_hold(KeeperVerb verb)
{
    world.held[verb] = true;
}

void
fake_keeper_release(KeeperVerb verb)
{
    world.held[verb] = false;
    wake();
}

void
fake_keeper_fail(KeeperVerb verb, ErrKind kind)
{
    world.fail[verb] = (int)kind + 1;
}

guint
fake_keeper_calls(KeeperVerb verb)
{
    return world.n_calls[verb];
}

const KeeperRequest *
fake_keeper_last(KeeperVerb verb)
{
    return &world.last[verb];
}

bool
fake_keeper_has(const char *id)
{
    return g_hash_table_contains(world.boxes, id);
}

guint
fake_keeper_live(void)
{
    return g_hash_table_size(world.boxes);
}

void
fake_keeper_add(const char *id)
{
    g_hash_table_add(world.boxes, g_strdup(id));
}

void
fake_keeper_forget(const char *id)
{
    g_assert_true(g_hash_table_remove(world.boxes, id));
}

void
fake_keeper_gone(const char *id, int exit_code, guint oom_kills)
{
    KeeperAnswer *answer = g_new(KeeperAnswer, 1);

    *answer = answer_for(id, KEEPER_GONE);
    answer->exit_code = exit_code;
    answer->oom_kills = oom_kills;
    fake_keeper_forget(answer->box);
    if (world.client != NULL && world.client->ready) {
        world.client->events.gone(answer, world.client->ctx);
        g_free(answer);
    } else {
        g_ptr_array_add(world.gone, answer);
    }
}

void
fake_keeper_set_oom(guint kills)
{
    world.oom_kills = kills;
}

void
fake_keeper_tell(const KeeperAnswer *answer)
{
    world.client->events.told(answer, world.client->ctx);
}

void
fake_keeper_lose(bool away)
{
    KeeperClient *client = world.client;
    FakeCall *call;

    client->ready = false;
    world.away = away;
    while ((call = g_queue_pop_head(&client->calls)) != NULL)
        fail_call(call, ERR_UNAVAILABLE);
    client->events.lost(client->ctx);
    wake();
}

void
fake_keeper_return(void)
{
    world.away = false;
    wake();
}

/* ---- channels ---- */

struct Run {
    guint refs;
    guint32 id;
    bool ended, tty, oom, forgotten;
    RunEnd end;
    gint64 started_us;
};

struct BoxLink {
    BoxLinkEvents events;
    void *ctx;
    char *name;
    GPtrArray *runs; /* Run* */
    guint32 last;
    bool stopped, closed;
};

Run *
run_ref(Run *run)
{
    run->refs++;
    return run;
}

void
run_unref(Run *run)
{
    if (--run->refs == 0)
        g_free(run);
}

static Run *
add_run(BoxLink *link, guint32 id, bool tty)
{
    Run *run = g_new0(Run, 1);

    *run = (Run){.refs = 1, .id = id, .tty = tty, .started_us = clock_wall_us()};
    g_ptr_array_add(link->runs, run);
    return run;
}

BoxLink *
box_link_new(const BoxLinkSpec *spec, GError **error)
{
    BoxLink *link = g_new0(BoxLink, 1);

    *link = (BoxLink){.events = spec->events, .ctx = spec->ctx, .last = spec->last_run};
    link->name = g_path_get_basename(spec->folder);
    link->runs = g_ptr_array_new_with_free_func((GDestroyNotify)run_unref);
    for (size_t i = 0; i < spec->n_runs; i++)
        add_run(link, spec->runs[i].run, spec->runs[i].terminal);
    close(spec->fd);
    g_hash_table_replace(world.links, g_strdup(link->name), link);
    return link;
}

void
box_link_free(BoxLink *link)
{
    if (link == NULL)
        return;
    if (g_hash_table_lookup(world.links, link->name) == link)
        g_hash_table_remove(world.links, link->name);
    g_ptr_array_unref(link->runs);
    g_free(link->name);
    g_free(link);
}

Run *
box_link_start(BoxLink *link, const RunSpec *spec, GError **error)
{
    if (spec->sink != NULL) {
        Run *run = g_new0(Run, 1);

        world.n_streamed++;
        run->refs = 1;
        return run;
    }
    g_strfreev(world.last_env);
    g_free(world.last_user);
    g_free(world.last_cwd);
    world.last_env = g_new0(char *, 1);
    for (size_t i = 0; spec->env[i] != NULL; i++) {
        world.last_env = g_renew(char *, world.last_env, i + 2);
        world.last_env[i] = g_strdup(spec->env[i]);
        world.last_env[i + 1] = NULL;
    }
    world.last_user = g_strdup(spec->user);
    world.last_cwd = g_strdup(spec->cwd);
    return run_ref(add_run(link, ++link->last, (spec->flags & START_TTY) != 0));
}

Run *
box_link_find(BoxLink *link, guint32 id)
{
    for (guint i = 0; i < link->runs->len; i++) {
        Run *run = link->runs->pdata[i];

        if (run->id == id && !run->forgotten)
            return run;
    }
    return NULL;
}

void
box_link_each(BoxLink *link, void (*func)(Run *run, void *data), void *data)
{
    for (guint i = 0; i < link->runs->len; i++) {
        if (!((Run *)link->runs->pdata[i])->forgotten)
            func(link->runs->pdata[i], data);
    }
}

guint
box_link_live(const BoxLink *link)
{
    guint n = 0;

    for (guint i = 0; i < link->runs->len; i++)
        n += !((Run *)link->runs->pdata[i])->ended;
    return n;
}

void
box_link_forget(BoxLink *link, Run *run)
{
    g_assert_true(run->ended);
    run->forgotten = true;
}

void
box_link_set_oom(BoxLink *link, Run *run, bool oom)
{
    run->oom = oom;
    fake_run_end(link, run->id, oom ? RUN_OOM : RUN_SIGNAL, 9);
}

void
box_link_connect(BoxLink *link, guint16 port, BoxConnectFunc func, void *data)
{
    func(-1, NULL, data);
}

typedef struct Probe {
    void (*func)(bool alive, void *data);
    void *data;
} Probe;

static gboolean
on_probe(gpointer data)
{
    Probe *probe = data;

    probe->func(!world.probe_dead, probe->data);
    g_free(probe);
    return G_SOURCE_REMOVE;
}

void
box_link_probe(BoxLink *link, void (*func)(bool alive, void *data), void *data)
{
    Probe *probe = g_new(Probe, 1);

    *probe = (Probe){func, data};
    g_idle_add(on_probe, probe);
}

void
box_link_stop(BoxLink *link)
{
    link->stopped = true;
    world.n_stopped++;
}

BoxLink *
fake_link_of(const char *box_id)
{
    return g_hash_table_lookup(world.links, box_id);
}

Run *
fake_link_run(BoxLink *link, guint32 id)
{
    return box_link_find(link, id);
}

void
fake_link_find(BoxLink *link, guint32 id)
{
    link->events.found(link, add_run(link, id, false), link->ctx);
}

void
fake_run_end(BoxLink *link, guint32 id, RunReason reason, int code)
{
    Run *run = box_link_find(link, id);

    g_assert_nonnull(run);
    run->ended = true;
    run->end = (RunEnd){.reason = reason, .code = code, .out_bytes = 5, .duration_us = 7000};
    link->events.ended(link, run, link->ctx);
}

void
fake_run_ask_oom(BoxLink *link, guint32 id)
{
    link->events.ask_oom(link, box_link_find(link, id), link->ctx);
}

bool
fake_run_is_oom(BoxLink *link, guint32 id)
{
    for (guint i = 0; i < link->runs->len; i++) {
        const Run *run = link->runs->pdata[i];

        if (run->id == id)
            return run->oom;
    }
    g_assert_not_reached();
}

void
fake_link_close(BoxLink *link)
{
    link->closed = true;
    link->events.closed(link, NULL, link->ctx);
}

void
fake_link_active(BoxLink *link)
{
    link->events.active(link, link->ctx);
}

void
fake_link_set_alive(bool alive)
{
    world.probe_dead = !alive;
}

char *
fake_link_dup_last_env(void)
{
    return g_strjoinv(" ", world.last_env);
}

const char *
fake_link_last_user(void)
{
    return world.last_user;
}

const char *
fake_link_last_cwd(void)
{
    return world.last_cwd;
}

guint
fake_links_streamed(void)
{
    return world.n_streamed;
}

guint
fake_links_stopped(void)
{
    return world.n_stopped;
}

/* ---- runs ---- */

const char *
run_reason_name(RunReason reason)
{
    static const char *const names[RUN_REASON_MAX] = {
        [RUN_EXIT] = "exit", [RUN_SIGNAL] = "signal",   [RUN_TIMEOUT] = "timeout",
        [RUN_OOM] = "oom",   [RUN_STOPPED] = "stopped", [RUN_NOT_STARTED] = "not started",
        [RUN_LOST] = "lost",
    };

    return names[reason];
}

int
run_end_exit_code(const RunEnd *end)
{
    return end->code;
}

guint32
run_id(const Run *run)
{
    return run->id;
}

bool
run_has_ended(const Run *run)
{
    return run->ended;
}

const RunEnd *
run_end(const Run *run)
{
    return run->ended ? &run->end : NULL;
}

const TestReport *
run_test_report(const Run *run)
{
    return NULL;
}

gint64
run_started_us(const Run *run)
{
    return run->started_us;
}

bool
run_is_terminal(const Run *run)
{
    return run->tty;
}

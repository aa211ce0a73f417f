/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection at a time:
 *
 *   AWAY --connect--> GREETING --OK--> LISTING --LISTED--> READY
 *     ^------------------+----------------+------------------'
 *
 * A call has a serial; the answer with that serial is its end.  Serial 0 is nobody's, and those
 * of HELLO and LIST are not in the table of calls.  Whatever does not fit ends the connection:
 * the next one begins with a LIST, so nothing can stay wrong.
 */
#include "box/keeper-client.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "wire/channel.h"

enum {
    CALLS_MAX = 2 * KEEPER_BOXES_MAX,
    ANSWERS_MAX = 64, /* heard in one turn */
    DELAY_FIRST_MS = 50,
    DELAY_MAX_MS = 3200,
    GREET_MS = 10000, /* for HELLO and LIST to be answered */
};

typedef enum State { AWAY, GREETING, LISTING, READY } State;

typedef struct Call {
    guint32 serial, verb;
    bool over; /* refused because there are too many, not because nobody is there */
    KeeperFunc func;
    void *data;
} Call;

typedef struct Unsent {
    KeeperRequest request;
    int fd; /* owned; -1: none */
} Unsent;

struct KeeperClient {
    LoopWatch watch; /* first: the loop hands back its address */
    Loop *loop;
    guint refs; /* the owner's, and one while callbacks run */
    bool freed;
    char *path;
    KeeperEvents events;
    void *ctx;
    State state;
    bool told_lost;
    guint32 serial, asked; /* last given out; of the HELLO or LIST under way */
    guint delay_ms;
    LoopTimer timer; /* the next try, or the end of patience with HELLO and LIST */
    LoopTimer refuse_timer;
    GQueue refused;    /* Call*: fail on the next turn */
    GHashTable *calls; /* serial -> Call* */
    GQueue unsent;     /* Unsent* */
    KeeperAnswer hello;
};

static const int no_fds[KEEPER_FDS] = {-1, -1, -1};

static void try_connect(KeeperClient *client);

static void
client_unref(KeeperClient *client)
{
    if (--client->refs > 0)
        return;
    g_hash_table_unref(client->calls);
    g_free(client->path);
    g_free(client);
}

static void
finish_call(Call *call, const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error)
{
    if (call->func != NULL)
        call->func(answer, fds, error, call->data);
    g_free(call);
}

static void
unsent_free(void *data)
{
    Unsent *unsent = data;

    auto_close(&unsent->fd);
    g_free(unsent);
}

/* The callbacks may make calls; those fail too, on the next turn. */
static void
fail_all(KeeperClient *client, ErrKind kind, const char *message)
{
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, kind, message);
    g_autoptr(GHashTable) calls = g_steal_pointer(&client->calls);
    GHashTableIter iter;
    gpointer value;

    client->calls = g_hash_table_new(NULL, NULL);
    g_queue_clear_full(&client->unsent, unsent_free);
    g_hash_table_iter_init(&iter, calls);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        finish_call(value, NULL, no_fds, error);
}

static void
refuse_waiting(KeeperClient *client, ErrKind kind, const char *message)
{
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, kind, message);
    g_autoptr(GError)
        over = g_error_new(ERR_DOMAIN, ERR_LIMIT, "the keeper has %d requests to answer", CALLS_MAX);

    for (guint n = client->refused.length; n > 0 && client->refused.length > 0; n--) {
        Call *call = g_queue_pop_head(&client->refused);

        finish_call(call, NULL, no_fds, call->over && !client->freed ? over : error);
    }
}

static void
on_refuse(LoopTimer *timer)
{
    KeeperClient *client = (KeeperClient *)(void *)((char *)timer - offsetof(KeeperClient, refuse_timer));

    client->refs++;
    refuse_waiting(client, ERR_UNAVAILABLE, "the keeper of the boxes is away");
    if (!client->freed && client->refused.length > 0)
        loop_timer_set(client->loop, timer, 0);
    client_unref(client);
}

static void
hang_up(KeeperClient *client)
{
    if (client->watch.fd < 0)
        return;
    loop_remove(client->loop, &client->watch);
    close(client->watch.fd);
    client->watch.fd = -1;
}

/* Called last in a turn: `client` may be freed by a callback. */
static void
lose(KeeperClient *client, const char *why)
{
    bool tell = !client->told_lost;

    hang_up(client);
    client->state = AWAY;
    client->told_lost = true;
    loop_timer_set(client->loop, &client->timer, client->delay_ms);
    client->delay_ms = MIN(2 * client->delay_ms, (guint)DELAY_MAX_MS);
    if (tell)
        log_warn("box", "the keeper is away", log_str("why", why));
    fail_all(client, ERR_UNAVAILABLE, "the keeper of the boxes is away");
    if (tell && !client->freed && client->events.lost != NULL)
        client->events.lost(client->ctx);
}

static void
watch_socket(KeeperClient *client)
{
    loop_set(client->loop, &client->watch, EPOLLIN | (client->unsent.length > 0 ? EPOLLOUT : 0u));
}

/* False: the connection is of no use any more. */
static bool
flush(KeeperClient *client)
{
    const Unsent *unsent;

    while ((unsent = g_queue_peek_head(&client->unsent)) != NULL) {
        if (channel_send(client->watch.fd, &unsent->request, sizeof unsent->request, &unsent->fd,
                         unsent->fd >= 0 ? 1 : 0) < 0) {
            if (errno != EAGAIN)
                return false;
            break;
        }
        unsent_free(g_queue_pop_head(&client->unsent));
    }
    watch_socket(client);
    return true;
}

static guint32
next_serial(KeeperClient *client)
{
    do {
        client->serial++;
    } while (client->serial == 0 || client->serial == client->asked ||
             g_hash_table_contains(client->calls, GUINT_TO_POINTER(client->serial)));
    return client->serial;
}

static void
push(KeeperClient *client, const KeeperRequest *request, int fd, guint32 serial)
{
    Unsent *unsent = g_new(Unsent, 1);

    unsent->request = *request;
    unsent->request.serial = serial;
    /* Without it the keeper answers that it is missing. */
    unsent->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    g_queue_push_tail(&client->unsent, unsent);
}

static bool
ask(KeeperClient *client, KeeperVerb verb, State state)
{
    KeeperRequest request = {.verb = verb, .count = verb == KEEPER_HELLO ? KEEPER_VERSION : 0};

    client->state = state;
    client->asked = next_serial(client);
    push(client, &request, -1, client->asked);
    loop_timer_set(client->loop, &client->timer, GREET_MS);
    return flush(client);
}

static ErrKind
kind_of(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
        return ERR_FULL;
    case EUSERS:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
        return ERR_LIMIT;
    case ENOENT:
    case ESRCH:
        return ERR_NOT_FOUND;
    case EEXIST:
    case EBUSY:
        return ERR_CONFLICT;
    case EINVAL:
        return ERR_INVALID;
    case ECANCELED:
        return ERR_CANCELLED;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case ENOSYS:
    case EOPNOTSUPP:
        return ERR_UNAVAILABLE;
    default:
        return ERR_INTERNAL;
    }
}

static KeeperVerb
answer_of(guint32 verb)
{
    return verb == KEEPER_CREATE ? KEEPER_BOX
           : verb == KEEPER_KILL ? KEEPER_GONE
           : verb == KEEPER_STAT ? KEEPER_STATS
                                 : KEEPER_OK;
}

static void
close_fds(int fds[KEEPER_FDS])
{
    for (size_t i = 0; i < KEEPER_FDS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

static bool
on_call_answer(KeeperClient *client, Call *call, const KeeperAnswer *answer, int fds[KEEPER_FDS])
{
    if (answer->verb != KEEPER_FAILED && answer->verb != answer_of(call->verb))
        return false;
    g_hash_table_remove(client->calls, GUINT_TO_POINTER(call->serial));
    if (answer->verb == KEEPER_FAILED) {
        g_autoptr(GError)
            error = g_error_new(ERR_DOMAIN, (gint)kind_of(answer->error), "%s: %s",
                                keeper_stage_name((KeeperStage)answer->stage), g_strerror(answer->error));
        close_fds(fds);
        finish_call(call, NULL, no_fds, error);
    } else if (answer->verb == KEEPER_BOX && call->func != NULL) {
        finish_call(call, answer, fds, NULL);
    } else {
        close_fds(fds);
        finish_call(call, answer, no_fds, NULL);
    }
    return true;
}

static bool
on_greeting(KeeperClient *client, const KeeperAnswer *answer)
{
    if (client->state != GREETING || answer->verb != KEEPER_OK)
        return false;
    client->hello = *answer;
    return ask(client, KEEPER_LIST, LISTING);
}

static bool
on_listing(KeeperClient *client, const KeeperAnswer *answer, int fds[KEEPER_FDS])
{
    switch (answer->verb) {
    case KEEPER_BOX:
        client->events.box(answer, fds, client->ctx);
        return true;
    case KEEPER_FAILED: /* it ended while the list was on the way */
        return true;
    case KEEPER_LISTED:
        loop_timer_cancel(client->loop, &client->timer);
        client->state = READY;
        client->asked = 0;
        client->told_lost = false;
        client->delay_ms = DELAY_FIRST_MS;
        client->events.listed(&client->hello, client->ctx);
        return true;
    default:
        return false;
    }
}

/* False: it makes no sense.  The fds are taken where somebody wants them.  A serial that is not
 * known is that of a server before us, whose box was made or ended only now. */
static bool
on_answer(KeeperClient *client, const KeeperAnswer *answer, int fds[KEEPER_FDS])
{
    Call *call = g_hash_table_lookup(client->calls, GUINT_TO_POINTER(answer->serial));

    if (call != NULL)
        return on_call_answer(client, call, answer, fds);
    if (answer->serial != 0 && answer->serial == client->asked)
        return client->state == LISTING ? on_listing(client, answer, fds) : on_greeting(client, answer);
    close_fds(fds);
    if (answer->verb == KEEPER_GONE)
        client->events.gone(answer, client->ctx);
    else if (client->events.told != NULL && (answer->serial == 0 || answer->verb == KEEPER_BOX))
        client->events.told(answer, client->ctx);
    return true;
}

static bool
hear(KeeperClient *client)
{
    for (int i = 0; i < ANSWERS_MAX && client->watch.fd >= 0 && !client->freed; i++) {
        int fds[KEEPER_FDS] = {-1, -1, -1};
        size_t n_fds = KEEPER_FDS;
        KeeperAnswer answer;
        ssize_t n = channel_recv(client->watch.fd, &answer, sizeof answer, fds, &n_fds);

        if (n < 0 && errno == EAGAIN)
            return true;
        bool fits = n == sizeof answer && answer.version == KEEPER_VERSION &&
                    answer.box[KEEPER_ID_LEN] == '\0' &&
                    (answer.verb != KEEPER_BOX || n_fds > KEEPER_FD_PIDFD);
        if (!fits) {
            close_fds(fds);
            return false;
        }
        if (!on_answer(client, &answer, fds)) {
            close_fds(fds);
            return false;
        }
    }
    return true;
}

static void
on_socket(LoopWatch *watch, uint32_t events)
{
    KeeperClient *client = (KeeperClient *)watch;

    client->refs++;
    bool good = (events & EPOLLOUT) == 0 || flush(client);
    if (good && (events & ~(uint32_t)EPOLLOUT) != 0)
        good = hear(client);
    if (!good && !client->freed && client->state != AWAY)
        lose(client, "the connection broke");
    client_unref(client);
}

static void
try_connect(KeeperClient *client)
{
    client->watch.fd = channel_connect(client->path);
    const char *why = g_strerror(errno);

    if (client->watch.fd < 0 || !loop_add(client->loop, &client->watch, EPOLLIN, NULL) ||
        !ask(client, KEEPER_HELLO, GREETING))
        lose(client, why);
}

static void
on_timer(LoopTimer *timer)
{
    KeeperClient *client = (KeeperClient *)(void *)((char *)timer - offsetof(KeeperClient, timer));

    client->refs++;
    if (client->state == AWAY)
        try_connect(client);
    else
        lose(client, "it does not answer");
    client_unref(client);
}

KeeperClient *
keeper_client_new(const KeeperClientSpec *spec)
{
    KeeperClient *client = g_new0(KeeperClient, 1);

    client->watch = (LoopWatch){.ready = on_socket, .fd = -1};
    client->loop = spec->loop;
    client->refs = 1;
    client->path = g_strdup(spec->socket);
    client->events = spec->events;
    client->ctx = spec->ctx;
    client->delay_ms = DELAY_FIRST_MS;
    /* Not where a server before us began, whose answers may still come. */
    id_random_bytes(&client->serial, sizeof client->serial);
    client->timer.expired = on_timer;
    client->refuse_timer.expired = on_refuse;
    g_queue_init(&client->refused);
    g_queue_init(&client->unsent);
    client->calls = g_hash_table_new(NULL, NULL);
    loop_timer_set(client->loop, &client->timer, 0);
    return client;
}

void
keeper_client_free(KeeperClient *client)
{
    if (client == NULL)
        return;
    client->freed = true;
    hang_up(client);
    client->state = AWAY;
    fail_all(client, ERR_CANCELLED, "the server ends");
    while (client->refused.length > 0)
        refuse_waiting(client, ERR_CANCELLED, "the server ends");
    loop_timer_cancel(client->loop, &client->timer);
    loop_timer_cancel(client->loop, &client->refuse_timer);
    client_unref(client);
}

bool
keeper_client_is_ready(const KeeperClient *client)
{
    return client->state == READY;
}

void
keeper_client_call(KeeperClient *client, const KeeperRequest *request, KeeperFunc func, void *data)
{
    keeper_client_call_fd(client, request, -1, func, data);
}

void
keeper_client_call_fd(KeeperClient *client, const KeeperRequest *request, int fd, KeeperFunc func, void *data)
{
    Call *call = g_new(Call, 1);

    *call = (Call){.verb = request->verb, .func = func, .data = data};
    call->over = client->state == READY && g_hash_table_size(client->calls) >= CALLS_MAX;
    if (client->state != READY || call->over) {
        g_queue_push_tail(&client->refused, call);
        loop_timer_set(client->loop, &client->refuse_timer, 0);
        return;
    }
    call->serial = next_serial(client);
    g_hash_table_insert(client->calls, GUINT_TO_POINTER(call->serial), call);
    push(client, request, fd, call->serial);
    /* A broken socket is found by the loop, which fails this call with the others. */
    (void)flush(client);
}

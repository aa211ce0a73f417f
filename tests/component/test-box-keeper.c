/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the keeper against a keeper that says what the test wants. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "box/keeper-client.h"
#include "wire/channel.h"

typedef struct Fake {
    Loop *loop;
    char *folder, *path;
    int listener, peer;
    KeeperClient *client;
    guint boxes, gone, listed, lost, told;
    int fds[KEEPER_FDS];
    guint32 degraded;
    char box[KEEPER_ID_LEN + 1];
} Fake;

typedef struct Answer {
    guint n;
    int kind; /* -1: none */
    guint32 verb;
    char *message;
    int fds[KEEPER_FDS];
} Answer;

static void
close_all(int fds[KEEPER_FDS])
{
    for (int i = 0; i < KEEPER_FDS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

static void
on_box(const KeeperAnswer *answer, const int fds[KEEPER_FDS], void *ctx)
{
    Fake *f = ctx;

    f->boxes++;
    memcpy(f->fds, fds, sizeof f->fds);
    close_all(f->fds);
}

static void
on_gone(const KeeperAnswer *answer, void *ctx)
{
    Fake *f = ctx;

    f->gone++;
    g_strlcpy(f->box, answer->box, sizeof f->box);
}

static void
on_listed(const KeeperAnswer *hello, void *ctx)
{
    Fake *f = ctx;

    f->listed++;
    f->degraded = hello->degraded;
    g_assert_true(keeper_client_is_ready(f->client));
}

static void
on_lost(void *ctx)
{
    Fake *f = ctx;

    f->lost++;
    g_assert_false(keeper_client_is_ready(f->client));
}

static void
on_told(const KeeperAnswer *answer, void *ctx)
{
    ((Fake *)ctx)->told++;
}

static void
on_answer(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    Answer *a = data;

    g_assert_true((answer == NULL) == (error != NULL));
    a->n++;
    a->kind = error != NULL ? (int)err_kind(error) : -1;
    a->verb = answer != NULL ? answer->verb : 0;
    g_free(a->message);
    a->message = error != NULL ? g_strdup(error->message) : NULL;
    memcpy(a->fds, fds, sizeof a->fds);
    close_all(a->fds);
}

static void
fake_listen(Fake *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, f->path, strlen(f->path));
    f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    g_assert_cmpint(bind(f->listener, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(f->listener, 4), ==, 0);
}

static void
fake_init(Fake *f, bool listening)
{
    KeeperClientSpec spec = {.events = {on_box, on_gone, on_listed, on_lost, on_told}, .ctx = f};

    *f = (Fake){.listener = -1, .peer = -1, .fds = {-1, -1, -1}};
    f->loop = loop_new(NULL);
    f->folder = g_dir_make_tmp("keeper-XXXXXX", NULL);
    f->path = g_build_filename(f->folder, "s", NULL);
    if (listening)
        fake_listen(f);
    spec.loop = f->loop;
    spec.socket = f->path;
    f->client = keeper_client_new(&spec);
}

static void
fake_clear(Fake *f)
{
    keeper_client_free(f->client);
    if (f->peer >= 0)
        close(f->peer);
    if (f->listener >= 0)
        close(f->listener);
    loop_free(f->loop);
    (void)unlink(f->path);
    (void)rmdir(f->folder);
    g_free(f->path);
    g_free(f->folder);
}

static KeeperRequest
hear(Fake *f)
{
    gint64 deadline = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    KeeperRequest request;

    while (channel_recv(f->peer, &request, sizeof request, NULL, NULL) != sizeof request) {
        g_assert_cmpint(g_get_monotonic_time(), <, deadline);
        g_main_context_iteration(NULL, FALSE);
    }
    g_assert_true(keeper_request_check(&request));
    return request;
}

static void
say(Fake *f, KeeperAnswer answer, guint n_fds)
{
    int fds[CHANNEL_FDS_MAX];

    for (guint i = 0; i < n_fds; i++)
        fds[i] = f->peer;
    answer.version = KEEPER_VERSION;
    g_assert_cmpint(channel_send(f->peer, &answer, sizeof answer, fds, n_fds), ==, 0);
}

static void
fake_accept(Fake *f)
{
    if (f->peer >= 0)
        close(f->peer);
    while ((f->peer = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0)
        g_main_context_iteration(NULL, TRUE);
}

static void
until(const guint *count, guint n)
{
    while (*count < n)
        g_main_context_iteration(NULL, TRUE);
}

/* Says HELLO and LIST with `boxes` in it. */
static void
greet(Fake *f, guint boxes)
{
    guint listed = f->listed + 1;

    fake_accept(f);
    KeeperRequest hello = hear(f);
    g_assert_cmpuint(hello.verb, ==, KEEPER_HELLO);
    say(f, (KeeperAnswer){.verb = KEEPER_OK, .serial = hello.serial, .degraded = DEGRADED_CPU}, 0);
    KeeperRequest list = hear(f);
    g_assert_cmpuint(list.verb, ==, KEEPER_LIST);
    for (guint i = 0; i < boxes; i++)
        say(f, (KeeperAnswer){.verb = KEEPER_BOX, .serial = list.serial}, i % 2 == 0 ? 3 : 2);
    /* One that ended while it was being listed. */
    say(f, (KeeperAnswer){.verb = KEEPER_FAILED, .serial = list.serial, .error = ESRCH}, 0);
    say(f, (KeeperAnswer){.verb = KEEPER_LISTED, .serial = list.serial}, 0);
    until(&f->listed, listed);
}

/* An fd goes along, and only with its own request. */
static void
test_fd(void)
{
    const KeeperRequest hold = {.verb = KEEPER_HOLD,
                                .limits = {.memory_bytes = 1 << 26, .pids = 64, .cpu_milli = 100}};
    int pair[2];
    Answer a = {0};
    Fake f;

    fake_init(&f, true);
    greet(&f, 0);
    g_assert_cmpint(pipe2(pair, O_CLOEXEC), ==, 0);
    keeper_client_call_fd(f.client, &hold, pair[1], on_answer, &a);
    keeper_client_call(f.client, &hold, NULL, NULL);
    close(pair[1]);
    for (size_t i = 0; i < 2; i++) {
        KeeperRequest request;
        int fd = -1;
        size_t n = 1;

        while (channel_recv(f.peer, &request, sizeof request, &fd, &n) != sizeof request) {
            n = 1;
            g_main_context_iteration(NULL, FALSE);
        }
        g_assert_cmpuint(n, ==, 1 - i);
        if (n == 1) {
            g_assert_cmpint(write(fd, "x", 1), ==, 1);
            close(fd);
            say(&f, (KeeperAnswer){.verb = KEEPER_OK, .serial = request.serial}, 0);
        }
    }
    char bytes[2];

    until(&a.n, 1);
    g_assert_cmpint(a.kind, ==, -1);
    /* Nobody has the other end any more. */
    g_assert_cmpint(read(pair[0], bytes, 2), ==, 1);
    g_assert_cmpint(read(pair[0], bytes, 2), ==, 0);
    close(pair[0]);
    fake_clear(&f);
}

static const KeeperRequest stat_request = {.verb = KEEPER_STAT, .box = "aaaaaaaaaaaaaaaaaaaa"};
static const KeeperRequest kill_request = {.verb = KEEPER_KILL, .box = "aaaaaaaaaaaaaaaaaaaa"};

static void
test_calls(void)
{
    Fake f;
    Answer a = {0}, b = {0}, c = {0};
    KeeperRequest create = {
        .verb = KEEPER_CREATE,
        .box = "aaaaaaaaaaaaaaaaaaaa",
        .hostname = "box",
        .layers = {"00aa"},
        .n_layers = 1,
        .limits = {
            .memory_bytes = 1 << 26, .disk_bytes = 1 << 26, .inodes = 4096, .pids = 64, .cpu_milli = 100}};

    fake_init(&f, true);
    greet(&f, 3);
    g_assert_cmpuint(f.boxes, ==, 3);
    g_assert_cmpuint(f.degraded, ==, DEGRADED_CPU);
    keeper_client_call(f.client, &create, on_answer, &a);
    keeper_client_call(f.client, &stat_request, on_answer, &b);
    keeper_client_call(f.client, &kill_request, on_answer, &c);
    keeper_client_call(f.client, &stat_request, NULL, NULL);
    KeeperRequest r[4];
    for (int i = 0; i < 4; i++)
        r[i] = hear(&f);
    g_assert_cmpuint(r[0].verb, ==, KEEPER_CREATE);
    /* In another order, with others between. */
    say(&f, (KeeperAnswer){.verb = KEEPER_GONE, .serial = r[2].serial, .box = "aaaaaaaaaaaaaaaaaaaa"}, 0);
    say(&f, (KeeperAnswer){.verb = KEEPER_GONE, .box = "bbbbbbbbbbbbbbbbbbbb"}, 0);
    say(&f, (KeeperAnswer){.verb = KEEPER_OK}, 1);
    say(&f, (KeeperAnswer){.verb = KEEPER_STATS, .serial = r[3].serial}, 2);
    say(&f, (KeeperAnswer){.verb = KEEPER_STATS, .serial = r[1].serial, .pids = 4}, 0);
    say(&f, (KeeperAnswer){.verb = KEEPER_BOX, .serial = r[0].serial}, 2);
    until(&a.n, 1);
    g_assert_cmpuint(b.n, ==, 1);
    g_assert_cmpuint(c.n, ==, 1);
    g_assert_cmpuint(a.verb, ==, KEEPER_BOX);
    g_assert_cmpuint(b.verb, ==, KEEPER_STATS);
    g_assert_cmpuint(c.verb, ==, KEEPER_GONE);
    g_assert_cmpuint(f.gone, ==, 1);
    g_assert_cmpstr(f.box, ==, "bbbbbbbbbbbbbbbbbbbb");
    g_assert_cmpuint(f.told, ==, 1);
    static const struct {
        int error;
        ErrKind kind;
    } kinds[] = {{ENOSPC, ERR_FULL},        {ENOMEM, ERR_FULL},       {EUSERS, ERR_LIMIT},
                 {ESRCH, ERR_NOT_FOUND},    {EEXIST, ERR_CONFLICT},   {EINVAL, ERR_INVALID},
                 {EPERM, ERR_INTERNAL},     {ETIMEDOUT, ERR_TIMEOUT}, {ENOENT, ERR_NOT_FOUND},
                 {ECANCELED, ERR_CANCELLED}};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        keeper_client_call(f.client, &stat_request, on_answer, &b);
        guint32 serial = hear(&f).serial;
        say(&f,
            (KeeperAnswer){
                .verb = KEEPER_FAILED, .serial = serial, .stage = STAGE_DISK, .error = kinds[i].error},
            0);
        until(&b.n, 2 + i);
        g_assert_cmpint(b.kind, ==, kinds[i].kind);
        g_assert_true(g_str_has_prefix(b.message, "disk: "));
    }
    g_free(b.message);
    fake_clear(&f);
}

static void
test_away(void)
{
    Fake f;
    Answer a = {0};

    fake_init(&f, false);
    keeper_client_call(f.client, &stat_request, on_answer, &a);
    g_assert_cmpuint(a.n, ==, 0);
    until(&a.n, 1);
    g_assert_cmpint(a.kind, ==, ERR_UNAVAILABLE);
    until(&f.lost, 1);
    fake_listen(&f);
    greet(&f, 0);
    /* It breaks with a call under way, and again in the middle of a greeting. */
    keeper_client_call(f.client, &stat_request, on_answer, &a);
    (void)hear(&f);
    close(f.peer);
    f.peer = -1;
    until(&f.lost, 2);
    g_assert_cmpuint(a.n, ==, 2);
    g_assert_cmpint(a.kind, ==, ERR_UNAVAILABLE);
    fake_accept(&f);
    (void)hear(&f);
    greet(&f, 1);
    g_assert_cmpuint(f.lost, ==, 2);
    g_assert_cmpuint(f.boxes, ==, 1);
    /* Freed with one under way and one refused. */
    keeper_client_call(f.client, &stat_request, on_answer, &a);
    keeper_client_free(g_steal_pointer(&f.client));
    g_assert_cmpuint(a.n, ==, 3);
    g_assert_cmpint(a.kind, ==, ERR_CANCELLED);
    g_free(a.message);
    fake_clear(&f);
}

static guint
count_fds(void)
{
    GDir *dir = g_dir_open("/proc/self/fd", 0, NULL);
    guint n = 0;

    while (g_dir_read_name(dir) != NULL)
        n++;
    g_dir_close(dir);
    return n;
}

/* What makes no sense ends the connection, and no descriptor stays. */
static void
test_nonsense(void)
{
    static const struct {
        const char *name;
        KeeperAnswer answer; /* serial 1: of the call under way */
        guint n_fds, n;
    } cases[] = {
        {"short", {.verb = KEEPER_OK}, 3, 5},
        {"version", {.verb = KEEPER_OK, .version = 99}, 0, 0},
        {"box without descriptors", {.verb = KEEPER_BOX, .serial = 77777}, 0, 0},
        {"wrong answer", {.verb = KEEPER_OK, .serial = 1}, 3, 0},
        {"endless id", {.verb = KEEPER_GONE, .box = "aaaaaaaaaaaaaaaaaaaaaaaa"}, 0, 0},
    };
    Fake f;
    Answer a = {0};

    fake_init(&f, true);
    greet(&f, 0);
    guint fds = count_fds();
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        KeeperAnswer answer = cases[i].answer;
        int sent[3] = {f.peer, f.peer, f.peer};

        g_test_message("%s", cases[i].name);
        keeper_client_call(f.client, &stat_request, on_answer, &a);
        guint32 serial = hear(&f).serial;
        if (answer.serial == 1)
            answer.serial = serial;
        if (answer.version == 0)
            answer.version = KEEPER_VERSION;
        g_assert_cmpint(
            channel_send(f.peer, &answer, cases[i].n > 0 ? cases[i].n : sizeof answer, sent, cases[i].n_fds),
            ==, 0);
        until(&f.lost, i + 1);
        g_assert_cmpuint(a.n, ==, i + 1);
        g_assert_cmpint(a.kind, ==, ERR_UNAVAILABLE);
        greet(&f, 0);
        g_assert_cmpuint(count_fds(), ==, fds);
    }
    g_free(a.message);
    fake_clear(&f);
}

/* What a server before us had asked for comes now; nothing of it stays. */
static void
test_predecessor(void)
{
    Fake f;
    Answer a = {0};

    fake_init(&f, true);
    greet(&f, 0);
    keeper_client_call(f.client, &stat_request, on_answer, &a);
    guint32 serial = hear(&f).serial;
    guint fds = count_fds();
    say(&f, (KeeperAnswer){.verb = KEEPER_OK, .serial = serial + 7}, 1);
    say(&f, (KeeperAnswer){.verb = KEEPER_BOX, .serial = serial + 7}, 3);
    say(&f, (KeeperAnswer){.verb = KEEPER_GONE, .serial = serial + 7, .box = "bbbbbbbbbbbbbbbbbbbb"}, 0);
    say(&f, (KeeperAnswer){.verb = KEEPER_STATS, .serial = serial}, 0);
    until(&a.n, 1);
    g_assert_cmpint(a.kind, ==, -1);
    g_assert_cmpuint(f.told, ==, 1);
    g_assert_cmpuint(f.gone, ==, 1);
    g_assert_cmpuint(f.lost, ==, 0);
    g_assert_cmpuint(count_fds(), ==, fds);
    fake_clear(&f);
}

/* A keeper that does not read: calls wait, as many as may. */
static void
test_deaf(void)
{
    Fake f;
    Answer a = {0}, over = {0};
    guint n = 2 * KEEPER_BOXES_MAX;

    fake_init(&f, true);
    greet(&f, 0);
    for (guint i = 0; i < n; i++)
        keeper_client_call(f.client, &stat_request, on_answer, &a);
    keeper_client_call(f.client, &stat_request, on_answer, &over);
    until(&over.n, 1);
    g_assert_cmpint(over.kind, ==, ERR_LIMIT);
    for (guint i = 0; i < n; i++) {
        guint32 serial = hear(&f).serial;

        say(&f, (KeeperAnswer){.verb = KEEPER_STATS, .serial = serial}, 0);
        g_main_context_iteration(NULL, FALSE);
    }
    until(&a.n, n);
    g_assert_cmpint(a.kind, ==, -1);
    g_assert_cmpuint(f.lost, ==, 0);
    g_free(over.message);
    fake_clear(&f);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/box/keeper/calls", test_calls);
    g_test_add_func("/box/keeper/fd", test_fd);
    g_test_add_func("/box/keeper/away", test_away);
    g_test_add_func("/box/keeper/nonsense", test_nonsense);
    g_test_add_func("/box/keeper/predecessor", test_predecessor);
    g_test_add_func("/box/keeper/deaf", test_deaf);
    return g_test_run();
}

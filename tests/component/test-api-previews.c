/* SPDX-License-Identifier: Apache-2.0 */
/* The gate and what it lets through to a box's port: real keys, real sockets, a box that is
 * played here. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/preview.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "box/host.h"
#include "http-fixture.h"
#include "support/store.h"

#define ID "abcdefghij0123456789"
#define OTHERS "bbbbbbbbbb0123456789"

/* ---- the box ---- */

static struct Played {
    BoxState state;
    guint connects;
    int upstream; /* the box's end; -1: none */
    ErrKind refuse;
    bool refuses;
} played;

typedef struct Boxes {
    char owner[ID_UUID_LEN + 1];
} Boxes;

Box *
box_host_find(BoxHost *host, const char *id, const char *owner)
{
    const Boxes *b = (const Boxes *)(void *)host;
    bool own = strcmp(id, ID) == 0 && (owner == NULL || strcmp(owner, b->owner) == 0);

    return own || (strcmp(id, OTHERS) == 0 && owner == NULL) ? (Box *)(void *)host : NULL;
}

void
box_info(const Box *box, BoxInfo *ret_info)
{
    *ret_info = (BoxInfo){.id = ID, .state = played.state};
}

void
box_touch(Box *box)
{
}

void
box_connect(Box *box, guint16 port, BoxConnectFunc func, void *data)
{
    g_autoptr(GError) error = NULL;
    int pair[2];

    played.connects++;
    if (played.refuses) {
        err_set(&error, played.refuse, "no");
        func(-1, error, data);
        return;
    }
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), ==, 0);
    played.upstream = pair[1];
    func(pair[0], NULL, data);
}

/* ---- the server ---- */

typedef struct Place {
    Fixture f;
    StoreBench *store;
    Api api;
    Boxes boxes;
    char *secret, *stranger, *reader; /* keys: the owner's, another's, one that may only read */
    char key_id[ID_UUID_LEN + 1];
    bool done;
} Place;

typedef struct Making {
    Place *p;
    char **secret;
} Making;

static void
on_made(const char *secret, const Key *key, const GError *error, void *data)
{
    Making *m = data;

    g_assert_no_error(error);
    *m->secret = g_strdup(secret);
    if (m->p->key_id[0] == '\0')
        g_strlcpy(m->p->key_id, key->id, sizeof m->p->key_id);
    m->p->done = true;
}

static void
on_done(void *data, const GError *error)
{
    g_assert_no_error(error);
    ((Place *)data)->done = true;
}

static void
wait_done(Place *p)
{
    while (!p->done)
        g_main_context_iteration(NULL, TRUE);
    p->done = false;
}

static void
make_key(Place *p, Scopes scopes, char **ret_secret)
{
    const KeySpec spec = {.name = "test", .scopes = scopes, .actor = "test"};
    Making m = {p, ret_secret};

    key_ring_create(p->api.keys, &spec, on_made, &m);
    wait_done(p);
}

static void
place_init(Place *p)
{
    static const char *const hosts[] = {"coop.example", NULL};

    *p = (Place){.store = store_bench_new_open()};
    played = (struct Played){.state = BOX_READY, .upstream = -1};
    p->api = (Api){
        .db = p->store->db,
        .boxes = (BoxHost *)(void *)&p->boxes,
        .address = (char *)(guintptr) "http://127.0.0.1:8003",
        .origins = origin_rules_new(hosts, NULL),
        .keys = key_ring_new(p->store->db),
        .sessions = session_book_new(p->store->db),
        .refusals = refusal_log_new(p->store->db),
        .grants = grant_book_new(),
        .meter = api_meter_new(1),
        .router = router_new(),
        .routes = g_ptr_array_new(),
        .rate = {1000, 1000},
        .streams_per_key = 1,
        .body_max = 1000,
    };
    key_ring_load(p->api.keys, on_done, p);
    wait_done(p);
    router_add(p->api.router, "POST", previews_routes[0].pattern, 0);
    g_ptr_array_add(p->api.routes, (gpointer)(guintptr)&previews_routes[0]);
    make_key(p, SCOPE_BOX, &p->secret);
    make_key(p, SCOPE_BOX, &p->stranger);
    make_key(p, SCOPE_READ, &p->reader);
    g_strlcpy(p->boxes.owner, p->key_id, sizeof p->boxes.owner);
    fixture_init_handler(&p->f, NULL, api_handle, &p->api);
    p->api.loop = p->f.loop;
}

static void
place_clear(Place *p)
{
    p->f.over = p->f.handled; /* the gate has the callback that counts */
    fixture_clear(&p->f);
    refusal_flush(p->api.refusals);
    store_bench_close(p->store);
    refusal_log_free(p->api.refusals);
    session_book_free(p->api.sessions);
    key_ring_free(p->api.keys);
    origin_rules_free(p->api.origins);
    grant_book_free(p->api.grants);
    api_meter_free(p->api.meter);
    router_free(p->api.router);
    g_ptr_array_unref(p->api.routes);
    store_bench_free(p->store);
    g_free(p->secret);
    g_free(p->stranger);
    g_free(p->reader);
}

/* $P our port, $K the owner's key, $S a stranger's, $R a reader's, $C the cookie, $I the id. */
static char *
spell(const Place *p, const char *text, const char *cookie)
{
    g_autofree char *port = g_strdup_printf("%u", p->f.port);
    const char *const words[][2] = {{"$P", port},
                                    {"$K", p->secret},
                                    {"$S", p->stranger},
                                    {"$R", p->reader},
                                    {"$C", cookie != NULL ? cookie : "none"},
                                    {"$I", ID}};
    GString *all = g_string_new(text);

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        g_string_replace(all, words[i][0], words[i][1], 0);
    return g_string_free(all, FALSE);
}

static void
close_upstream(void)
{
    if (played.upstream >= 0)
        close(played.upstream);
    played.upstream = -1;
}

/* The answer; of what passed, `*ret_sent` is the head that the box got, and the answer is "ok". */
static char *
ask(Place *p, const char *request, const char *cookie, char **ret_sent)
{
    g_autofree char *text = spell(p, request, cookie);
    int fd = fixture_connect(&p->f);
    guint connects = played.connects;

    client_sends(fd, text);
    if (ret_sent != NULL) {
        while (played.connects == connects || played.upstream < 0)
            g_main_context_iteration(NULL, TRUE);
        g_autoptr(GString) sent = client_read(played.upstream, "\r\n\r\n");
        *ret_sent = g_strdup(sent->str);
        client_sends(played.upstream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
    g_autoptr(GString) answer = client_read(fd, NULL);
    close(fd);
    close_upstream();
    return g_strdup(answer->str);
}

#define HOST "Host: 3000-$I.localhost:$P\r\n"
#define CLOSE "Connection: close\r\n\r\n"
#define LOOK(more) "GET /x?y HTTP/1.1\r\n" HOST more CLOSE
#define WS "Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n"

/* A cookie of a link that was opened. */
static char *
open_link(Place *p)
{
    g_autofree char *made = ask(p,
                                "POST /api/v1/sandboxes/$I/previews HTTP/1.1\r\nHost: localhost:$P\r\n"
                                "X-API-Key: $K\r\nContent-Length: 13\r\n" CLOSE "{\"port\":3000}",
                                NULL, NULL);
    g_assert_cmpint(answer_status(made), ==, 201);
    g_autoptr(Json) json = json_decode(answer_body(made), strlen(answer_body(made)), NULL);
    const char *url = json_string_value(json_object_get(json, "url"));
    g_autofree char *base = spell(p, "http://3000-$I.localhost:$P/?coop_preview=", NULL);
    g_assert_true(g_str_has_prefix(url, base));
    g_autofree char *request = g_strdup_printf("GET /?coop_preview=%s HTTP/1.1\r\n" HOST CLOSE,
                                               url + strlen(base));
    g_autofree char *answer = ask(p, request, NULL, NULL);
    g_assert_cmpint(answer_status(answer), ==, 303);
    g_autofree char *again = ask(p, request, NULL, NULL);
    g_assert_cmpint(answer_status(again), ==, 401);
    const char *set = strstr(answer, "Set-Cookie: ");
    g_assert_nonnull(set);
    g_assert_nonnull(strstr(set, "; HttpOnly; SameSite=Lax\r\n"));
    return g_strndup(set + strlen("Set-Cookie: "), strcspn(set + strlen("Set-Cookie: "), ";"));
}

/* ---- who passes ---- */

static const struct {
    const char *request;
    int status; /* 0: it passes */
} lookers[] = {
    {LOOK("X-API-Key: $K\r\n"), 0},
    {LOOK("Authorization: Bearer $K\r\n"), 0},
    {LOOK("Authorization: bearer $K\r\nX-API-Key: of-the-app\r\n"), 0},
    {LOOK("Cookie: $C\r\n"), 0},
    {LOOK("Cookie: coop_preview=old; $C\r\n"), 0},
    {LOOK("Cookie: a=1\r\nCookie: $C\r\n"), 0},
    {LOOK("Cookie: $C\r\nAuthorization: Basic x\r\n"), 0},
    {LOOK("Cookie: $C\r\nOrigin: http://3000-$I.localhost:$P\r\n"), 0},
    {LOOK("Cookie: $C\r\nSec-Fetch-Site: same-origin\r\n"), 0},
    {LOOK("Cookie: $C\r\nSec-Fetch-Site: none\r\n"), 0},
    {LOOK("Cookie: $C\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: "
          "document\r\n"),
     0},
    {"GET / HTTP/1.1\r\nHost: 3000-$I.COOP.example:$P\r\nX-API-Key: $K\r\n" CLOSE, 0},
    {LOOK(""), 401},
    {LOOK("X-API-Key: x\r\n"), 401},
    {LOOK("X-API-Key: e2b_0000000000000000000000000000000000000000\r\n"), 401},
    {LOOK("X-API-Key: e2b_0000000000000000000000000000000000000000\r\nCookie: $C\r\n"), 401},
    {LOOK("Cookie: coop_preview=\r\n"), 401},
    {LOOK("Cookie: coop_session=$C\r\n"), 401},
    {LOOK("X-API-Key: $R\r\n"), 403},
    {LOOK("X-API-Key: $S\r\n"), 404},
    {"GET / HTTP/1.1\r\nHost: 3000-" OTHERS ".localhost:$P\r\nX-API-Key: $K\r\n" CLOSE, 404},
    {"GET / HTTP/1.1\r\nHost: 3001-$I.localhost:$P\r\nCookie: $C\r\n" CLOSE, 401},
    {"GET / HTTP/1.1\r\nHost: 3000-" OTHERS ".localhost:$P\r\nCookie: $C\r\n" CLOSE, 401},
    {LOOK("X-API-Key: $K\r\nOrigin: http://evil.example\r\n"), 403},
    {LOOK("X-API-Key: $K\r\nOrigin: null\r\n"), 403},
    {LOOK("X-API-Key: $K\r\nOrigin: http://localhost:$P\r\n"), 403},
    {LOOK("Cookie: $C\r\nOrigin: http://3001-$I.localhost:$P\r\n"), 403},
    {LOOK("Cookie: $C\r\nOrigin: http://3000-$I.localhost:$P\r\nOrigin: http://x\r\n"), 403},
    {LOOK("Cookie: $C\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n"), 403},
    {LOOK("Cookie: $C\r\nSec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n"), 403},
    {LOOK("Cookie: $C\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: "
          "iframe\r\n"),
     403},
    {"POST / HTTP/1.1\r\n" HOST "Cookie: $C\r\nContent-Length: 0\r\nSec-Fetch-Site: cross-site\r\n"
     "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n" CLOSE,
     403},
    {"GET / HTTP/1.1\r\n" HOST "Cookie: $C\r\n" WS "\r\n", 403},
    {"GET / HTTP/1.1\r\n" HOST "Cookie: $C\r\nOrigin: http://evil.example\r\n" WS "\r\n", 403},
    {"GET /?coop_preview=x HTTP/1.1\r\n" HOST "Cookie: $C\r\n" CLOSE, 401},
    /* Names that are none of ours. */
    {"GET / HTTP/1.1\r\nHost: 3000-$I.evil.example:$P\r\nX-API-Key: $K\r\n" CLOSE, 421},
    {"GET / HTTP/1.1\r\nHost: 3000-$I.localhost\r\nX-API-Key: $K\r\n" CLOSE, 421},
    {"GET / HTTP/1.1\r\nHost: 3000-$I.localhost:1\r\nX-API-Key: $K\r\n" CLOSE, 421},
/* Under our own name, by header. */
#define OURS "GET /x HTTP/1.1\r\nHost: localhost:$P\r\n"
#define BOTH "E2b-Sandbox-Id: $I\r\nE2b-Sandbox-Port: 3000\r\n"
    {OURS BOTH "X-API-Key: $K\r\n" CLOSE, 0},
    {OURS BOTH CLOSE, 401},
    {OURS BOTH "Cookie: $C\r\n" CLOSE, 401},
    {OURS BOTH "X-API-Key: $S\r\n" CLOSE, 404},
    {OURS BOTH "X-API-Key: $R\r\n" CLOSE, 403},
    {OURS BOTH "X-API-Key: $K\r\nOrigin: http://localhost:$P\r\n" CLOSE, 403},
    {OURS BOTH "X-API-Key: $K\r\nSec-Fetch-Site: same-origin\r\n" CLOSE, 403},
    {OURS "E2b-Sandbox-Id: $I\r\nX-API-Key: $K\r\n" CLOSE, 400},
    {OURS "E2b-Sandbox-Port: 3000\r\nX-API-Key: $K\r\n" CLOSE, 400},
    {OURS "E2b-Sandbox-Id: $I\r\nE2b-Sandbox-Port: 65536\r\nX-API-Key: $K\r\n" CLOSE, 400},
    {OURS "E2b-Sandbox-Id: $I\r\nE2b-Sandbox-Port: 0\r\nX-API-Key: $K\r\n" CLOSE, 400},
    /* And nothing of ours there: this path is a route. */
    {"POST /api/v1/sandboxes/$I/previews HTTP/1.1\r\n" HOST CLOSE, 401},
};

static void
test_who_passes(void)
{
    Place p;

    place_init(&p);
    g_autofree char *cookie = open_link(&p);
    for (size_t i = 0; i < G_N_ELEMENTS(lookers); i++) {
        g_autofree char *sent = NULL;
        guint connects = played.connects;

        g_test_message("%s", lookers[i].request);
        g_autofree char *answer = ask(&p, lookers[i].request, cookie, lookers[i].status == 0 ? &sent : NULL);
        g_assert_cmpint(answer_status(answer), ==, lookers[i].status == 0 ? 200 : lookers[i].status);
        g_assert_cmpuint(played.connects - connects, ==, lookers[i].status == 0 ? 1 : 0);
        /* Nothing that is ours goes in. */
        g_assert_true(sent == NULL || strstr(sent, p.secret) == NULL);
        g_assert_true(sent == NULL || strstr(sent, "coop_preview") == NULL);
        g_assert_true(sent == NULL || strstr(sent, "E2b-") == NULL);
    }
    place_clear(&p);
}

/* ---- what goes through ---- */

static void
test_what_goes_in(void)
{
    Place p;
    g_autofree char *sent = NULL, *by_header = NULL;

    place_init(&p);
    g_autofree char *expected = spell(&p,
                                      "GET /x?y HTTP/1.1\r\nHost: 3000-$I.localhost:$P\r\n"
                                      "Authorization: Bearer of-the-app\r\nX-Own: 1\r\n"
                                      "X-Forwarded-For: 127.0.0.1\r\n"
                                      "X-Forwarded-Host: 3000-$I.localhost:$P\r\nX-Forwarded-Proto: http\r\n"
                                      "Cookie: a=1; b=2\r\nConnection: close\r\n\r\n",
                                      NULL);
    g_autofree char *answer = ask(&p,
                                  LOOK("X-API-Key: $K\r\nAuthorization: Bearer of-the-app\r\nX-Own: 1\r\n"
                                       "Cookie: a=1; coop_session=s\r\nCookie: coop_preview=p; b=2\r\n"
                                       "X-Forwarded-For: 6.6.6.6\r\n"),
                                  NULL, &sent);
    g_assert_cmpstr(sent, ==, expected);
    g_assert_null(strstr(answer, "nosniff"));
    g_autofree char *other = ask(&p, OURS BOTH "X-API-Key: $K\r\n" CLOSE, NULL, &by_header);
    g_assert_nonnull(strstr(by_header, "\r\nHost: localhost:3000\r\n"));
    g_assert_nonnull(strstr(other, "Content-Security-Policy: default-src 'none'; sandbox\r\n"));
    place_clear(&p);
}

static void
test_a_link_leaves_the_address(void)
{
    Place p;
    static const GrantFor what = {ID, 3000};
    char token[GRANT_SECRET_LEN + 1];

    place_init(&p);
    grant_new(p.api.grants, &what, p.key_id, 100, token);
    g_autofree char *request = g_strdup_printf(
        "GET //evil.example/x?a=1&coop_preview=%s&b=%%26 HTTP/1.1\r\n" HOST CLOSE, token);
    g_autofree char *answer = ask(&p, request, NULL, NULL);
    g_autofree char *location = spell(
        &p, "\r\nLocation: http://3000-$I.localhost:$P//evil.example/x?a=1&b=%26\r\n", NULL);
    g_assert_cmpint(answer_status(answer), ==, 303);
    g_assert_nonnull(strstr(answer, location));
    g_assert_nonnull(strstr(answer, "Referrer-Policy: no-referrer\r\n"));
    g_assert_null(strstr(answer, token));
    place_clear(&p);
}

static void
test_refusals(void)
{
    static const struct {
        BoxState state;
        bool refuses;
        ErrKind refuse;
        int status;
    } cases[] = {
        {BOX_READY, true, ERR_UNAVAILABLE, 502},
        {BOX_READY, true, ERR_TIMEOUT, 504},
        {BOX_READY, true, ERR_CONFLICT, 409},
        {BOX_READY, true, ERR_LIMIT, 429},
        {BOX_PAUSED, false, 0, 409},
        {BOX_CREATING, false, 0, 503},
        {BOX_STOPPING, false, 0, 503},
    };
    Place p;

    place_init(&p);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        played.state = cases[i].state;
        played.refuses = cases[i].refuses;
        played.refuse = cases[i].refuse;
        g_autofree char *answer = ask(&p, LOOK("X-API-Key: $K\r\n"), NULL, NULL);
        g_assert_cmpint(answer_status(answer), ==, cases[i].status);
        g_assert_nonnull(strstr(answer, "\r\nContent-Type: application/json\r\n"));
        g_autofree char *page = ask(&p, LOOK("X-API-Key: $K\r\nAccept: text/html\r\n"), NULL, NULL);
        g_assert_cmpint(answer_status(page), ==, cases[i].status);
        g_assert_nonnull(strstr(page, "\r\nContent-Type: text/html"));
        g_assert_nonnull(strstr(page, "Content-Security-Policy: default-src 'none'"));
    }
    place_clear(&p);
}

static void
test_the_end_of_a_key(void)
{
    Place p;

    place_init(&p);
    g_autofree char *cookie = open_link(&p);
    key_ring_revoke(p.api.keys, p.key_id, "test", on_done, &p);
    wait_done(&p);
    g_autofree char *answer = ask(&p, LOOK("Cookie: $C\r\n"), cookie, NULL);
    g_assert_cmpint(answer_status(answer), ==, 401);
    place_clear(&p);
}

static void
test_tunnels_are_counted(void)
{
    Place p;

    place_init(&p);
    g_autofree char *request = spell(&p, "GET / HTTP/1.1\r\n" HOST "X-API-Key: $K\r\n" WS "\r\n", NULL);
    int first = fixture_connect(&p.f);
    client_sends(first, request);
    while (played.upstream < 0)
        g_main_context_iteration(NULL, TRUE);
    g_autoptr(GString) head = client_read(played.upstream, "\r\n\r\n");
    client_sends(played.upstream,
                 "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nService-Worker-Allowed: /\r\n\r\nhi");
    g_autoptr(GString) got = client_read(first, "hi");
    g_assert_cmpint(answer_status(got->str), ==, 101);
    g_assert_null(strstr(got->str, "Service-Worker"));
    int upstream = g_steal_fd(&played.upstream);

    int second = fixture_connect(&p.f);
    client_sends(second, request);
    g_autoptr(GString) refused = client_read(second, "}");
    g_assert_cmpint(answer_status(refused->str), ==, 429);
    close(second);

    /* With the first gone there is room. */
    close(first);
    g_autoptr(GString) rest = client_read(upstream, NULL);
    close(upstream);
    Key *key = key_ring_by_id(p.api.keys, p.key_id);
    while (key->streams > 0)
        g_main_context_iteration(NULL, TRUE);
    place_clear(&p);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/previews/who", test_who_passes);
    g_test_add_func("/previews/what", test_what_goes_in);
    g_test_add_func("/previews/link", test_a_link_leaves_the_address);
    g_test_add_func("/previews/refusals", test_refusals);
    g_test_add_func("/previews/key-ends", test_the_end_of_a_key);
    g_test_add_func("/previews/tunnels", test_tunnels_are_counted);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A gate on a port of 127.0.0.1, for clients and benchmarks that are programs of their own.
 *
 * usage: gate-server PROVIDER [SCRIPT]
 *
 * PROVIDER is the JSON of brain/provider.h, SCRIPT the file of a scripted one.  Says "ready PORT",
 * and each fact as a line of JSON.  Ends when its input does. */
#include <arpa/inet.h>
#include <errno.h>
#include <glib-unix.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "brain/gate.h"
#include "http/server.h"

/* A box has few calls under way at a time; a benchmark has many. */
enum { BOXES = 100, BACKLOG = 1024 };

typedef struct Program {
    Gate *gate;
    guint number;
    GMainLoop *main;
} Program;

static void
on_request(HttpRequest *request, void *data)
{
    Program *p = data;
    g_autofree char *box = g_strdup_printf("box-%u", p->number++ % BOXES);
    const GateCaller caller = {.box = box, .agent = "coder-1"};

    if (gate_owns(http_request_path(request)))
        gate_handle(p->gate, request, &caller);
    else
        http_respond_text(request, 404, "text/plain", "not the gate's\n");
}

static void
on_fact(Json *fact, void *ctx)
{
    g_autoptr(Json) taken = fact;
    g_autofree char *text = json_encode(taken);

    puts(text);
    fflush(stdout);
}

static gboolean
on_input(int fd, GIOCondition condition, gpointer data)
{
    char bytes[64];

    if (read(fd, bytes, sizeof bytes) > 0)
        return G_SOURCE_CONTINUE;
    g_main_loop_quit(((Program *)data)->main);
    return G_SOURCE_REMOVE;
}

static int
listen_on_loopback(guint16 *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        g_error("listen: %s", g_strerror(errno));
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static void
add_provider(Gate *gate, const char *text, const char *file)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) object = json_decode(text, strlen(text), &error);
    g_autoptr(Provider) provider = object != NULL ? provider_new(object, &error) : NULL;
    g_autofree char *script = NULL;

    if (provider != NULL)
        provider_take_key(provider, g_strdup("sk-of-the-gate-server"));
    if (provider == NULL || (file != NULL && !g_file_get_contents(file, &script, NULL, &error)) ||
        !gate_set_provider(gate, provider, script, &error))
        g_error("%s", error->message);
}

int
main(int argc, char **argv)
{
    Program p = {.main = g_main_loop_new(NULL, FALSE)};
    g_autoptr(Loop) loop = loop_new(NULL);
    g_autoptr(Budgets) budgets = budgets_new();
    g_autoptr(PriceTable) prices = price_table_new(NULL);
    GateSpec gate_spec = {.loop = loop, .budgets = budgets, .prices = prices, .tell = on_fact};
    HttpServerSpec server_spec = {
        .loop = loop, .limits = HTTP_LIMITS_INIT, .handler = on_request, .data = &p};
    HttpListenerSpec listener = {.name = "gate"};
    guint16 port;

    if (argc < 2 || argc > 3)
        return 2;
    p.gate = gate_new(&gate_spec);
    add_provider(p.gate, argv[1], argv[2]);
    HttpServer *server = http_server_new(&server_spec);
    int fd = listen_on_loopback(&port);
    if (http_server_listen(server, fd, &listener, NULL) == NULL)
        g_error("the listener was not taken");
    g_unix_fd_add(STDIN_FILENO, G_IO_IN | G_IO_HUP, on_input, &p);
    printf("ready %u\n", port);
    fflush(stdout);
    g_main_loop_run(p.main);
    gate_free(p.gate);
    http_server_free(server);
    g_main_loop_unref(p.main);
    return 0;
}

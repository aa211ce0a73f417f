/* SPDX-License-Identifier: Apache-2.0 */
/* Coop's HTTP layer with two routes for large bodies.  usage: transfer-server PORT FOLDER
 *
 *   PUT /file   the body becomes FOLDER/file
 *   GET /file   and back */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/file.h"
#include "http/server.h"

static void
on_uploaded(HttpRequest *request, guint64 bytes, const GError *error, void *data)
{
    close(GPOINTER_TO_INT(data));
    http_respond_text(request, error == NULL ? 201 : 500, "text/plain",
                      error == NULL ? "stored\n" : error->message);
}

static void
handle(HttpRequest *request, void *data)
{
    const char *path = data;
    HttpFileSpec spec = {.type = "application/octet-stream"};

    if (strcmp(http_request_method(request), "PUT") == 0) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        http_request_read_to_file(request, fd, G_MAXINT64, on_uploaded, GINT_TO_POINTER(fd));
    } else {
        http_respond_file(request, open(path, O_RDONLY | O_CLOEXEC), &spec);
    }
}

static int
listen_on(guint16 port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 16) < 0)
        g_error("listen: %s", g_strerror(errno));
    return fd;
}

int
main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    g_autofree char *path = g_build_filename(argv[2], "file", NULL);
    HttpServerSpec spec = {
        .loop = loop_new(NULL), .limits = HTTP_LIMITS_INIT, .handler = handle, .data = path};
    HttpListenerSpec listener = {.name = "transfer"};
    g_autoptr(GError) error = NULL;
    HttpServer *server = http_server_new(&spec);

    if (http_server_listen(server, listen_on((guint16)g_ascii_strtoull(argv[1], NULL, 10)), &listener,
                           &error) == NULL)
        g_error("%s", error->message);
    puts("ready");
    fflush(stdout);
    g_main_loop_run(g_main_loop_new(NULL, FALSE));
}

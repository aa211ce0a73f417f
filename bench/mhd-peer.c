/* SPDX-License-Identifier: Apache-2.0 */
/* The peer of the request benchmark: a bare libmicrohttpd server that answers every request
 * with the bytes of a file, under the headers that Coop sends.  usage: mhd-peer PORT FILE */
#include <glib.h>
#include <microhttpd.h>
#include <stdio.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 4096 };

typedef struct Body {
    char *bytes;
    gsize n;
} Body;

static enum MHD_Result
answer(void *data, struct MHD_Connection *connection, const char *url, const char *method,
       const char *version, const char *upload, size_t *upload_size, void **state)
{
    static int seen;
    const Body *body = data;

    if (*state == NULL) {
        *state = &seen;
        return MHD_YES;
    }
    struct MHD_Response *r = MHD_create_response_from_buffer(body->n, body->bytes, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(r, "Content-Type", "application/json");
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return result;
}

int
main(int argc, char **argv)
{
    Body body;

    if (argc != 3 || !g_file_get_contents(argv[2], &body.bytes, &body.n, NULL))
        return 2;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, (uint16_t)g_ascii_strtoull(argv[1], NULL, 10), NULL, NULL, answer,
        &body, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_END);
    if (daemon == NULL)
        return 1;
    puts("ready");
    fflush(stdout);
    pause();
}

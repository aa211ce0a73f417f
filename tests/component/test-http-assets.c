/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "http-fixture.h"
#include "http/assets.h"

extern const HttpAsset test_assets[];

enum { LARGE_SIZE = 1024 * 1024 };

static void
handle(HttpRequest *request, void *data)
{
    const HttpAsset *asset = http_asset_find(data, http_request_path(request));

    if (asset != NULL)
        http_respond_asset(request, asset);
    else
        http_respond_text(request, 404, "text/plain", "none\n");
}

static void
serve(Fixture *f, const HttpAsset *table)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    g_assert_cmpint(bind(fd, (struct sockaddr *)&a, sizeof a), ==, 0);
    g_assert_cmpint(listen(fd, 16), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&a, &len), ==, 0);
    *f = (Fixture){.loop = loop_new(NULL), .port = ntohs(a.sin_port)};
    HttpServerSpec spec = {
        .loop = f->loop, .limits = HTTP_LIMITS_INIT, .handler = handle, .data = (void *)(uintptr_t)table};
    HttpListenerSpec listener = {.name = "test"};

    f->server = http_server_new(&spec);
    f->listener = http_server_listen(f->server, fd, &listener, NULL);
    g_assert_nonnull(f->listener);
}

static GString *
ask(Fixture *f, const char *method, const char *path, const char *headers)
{
    autofd fd = fixture_connect(f);
    g_autofree char *request = g_strdup_printf("%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n",
                                               method, path, headers);

    client_sends(fd, request);
    return client_read(fd, NULL);
}

static size_t
body_size(const GString *answer)
{
    return answer->len - (size_t)(answer_body(answer->str) - answer->str);
}

/* The head's lines end with CRLF and no value here holds one, so a search is exact. */
static bool
has_header(const GString *answer, const char *line)
{
    g_autofree char *find = g_strdup_printf("\r\n%s\r\n", line);

    return strstr(answer->str, find) != NULL;
}

static char *
tag_of(const HttpAsset *asset, bool gzip)
{
    return g_strdup_printf("%.*s%s\"", (int)strlen(asset->etag) - 1, asset->etag, gzip ? "-gz" : "");
}

static void
test_table(void)
{
    static const struct {
        const char *path, *type;
        size_t size;
        bool gzip;
    } cases[] = {
        {"/", "text/html; charset=utf-8", 1984, true},
        {"/bytes.png", "image/png", 256, false},
        {"/empty.css", "text/css; charset=utf-8", 0, false},
        {"/tiny.txt", "text/plain; charset=utf-8", 5, false},
    };
    static const char *const absent[] = {"",           "/index.html", "/tiny", "/tiny.txt/",
                                         "/tiny.txt2", "/Tiny.txt",   "//"};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const HttpAsset *asset = http_asset_find(test_assets, cases[i].path);

        g_assert_nonnull(asset);
        g_assert_cmpuint(asset->size, ==, cases[i].size);
        g_assert_cmpstr(asset->type, ==, cases[i].type);
        g_assert_cmpint(asset->gzip != NULL, ==, cases[i].gzip);
        g_assert_cmpuint(strlen(asset->etag), ==, 34);
        /* The tool hashed the file, so this also says that the bytes are the file's. */
        g_autofree char *hash = g_compute_checksum_for_data(G_CHECKSUM_SHA256, asset->data, asset->size);
        g_assert_true(asset->etag[0] == '"' && strncmp(asset->etag + 1, hash, 32) == 0 &&
                      asset->etag[33] == '"');
    }
    for (size_t i = 0; i < G_N_ELEMENTS(absent); i++)
        g_assert_null(http_asset_find(test_assets, absent[i]));
}

static void
check_unpacks(const void *packed, size_t n, const HttpAsset *asset)
{
    g_autofree guint8 *room = g_malloc(asset->size + 1);
    z_stream z = {.next_in = (guint8 *)(uintptr_t)packed,
                  .avail_in = (uInt)n,
                  .next_out = room,
                  .avail_out = (uInt)asset->size + 1};

    g_assert_cmpint(inflateInit2(&z, 16 + MAX_WBITS), ==, Z_OK);
    g_assert_cmpint(inflate(&z, Z_FINISH), ==, Z_STREAM_END);
    g_assert_cmpmem(room, z.total_out, asset->data, asset->size);
    inflateEnd(&z);
}

static void
test_encodings(void)
{
    static const struct {
        const char *path, *headers;
        bool gzip;
    } cases[] = {
        {"/", "", false},
        {"/", "Accept-Encoding: gzip, deflate, br\r\n", true},
        {"/", "Accept-Encoding: br\r\nAccept-Encoding: gzip;q=0.5\r\n", true},
        {"/", "Accept-Encoding: gzip;q=0\r\n", false},
        {"/", "Accept-Encoding: *;q=0, br\r\n", false},
        {"/tiny.txt", "Accept-Encoding: gzip\r\n", false},
    };
    Fixture f;

    serve(&f, test_assets);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const HttpAsset *asset = http_asset_find(test_assets, cases[i].path);
        g_autoptr(GString) answer = ask(&f, "GET", cases[i].path, cases[i].headers);
        g_autofree char *tag = tag_of(asset, cases[i].gzip);
        g_autofree char *tag_line = g_strconcat("ETag: ", tag, NULL);

        g_test_message("%s %s", cases[i].path, cases[i].headers);
        g_assert_cmpint(answer_status(answer->str), ==, 200);
        g_assert_cmpint(has_header(answer, "Content-Encoding: gzip"), ==, cases[i].gzip);
        g_assert_cmpint(has_header(answer, "Vary: Accept-Encoding"), ==, asset->gzip != NULL);
        g_assert_true(has_header(answer, "Cache-Control: no-cache"));
        g_assert_true(has_header(answer, tag_line));
        if (cases[i].gzip)
            check_unpacks(answer_body(answer->str), body_size(answer), asset);
        else
            g_assert_cmpmem(answer_body(answer->str), body_size(answer), asset->data, asset->size);
    }
    fixture_clear(&f);
}

static void
test_conditional(void)
{
    static const struct {
        const char *accept, *format; /* %s: the tag without its quotes */
        int status;
    } cases[] = {
        {"", "If-None-Match: \"%s\"\r\n", 304},
        {"", "If-None-Match: W/\"%s\"\r\n", 304},
        {"", "If-None-Match: \"x\", \"%s\"\r\n", 304},
        {"", "If-None-Match: \"x\"\r\nIf-None-Match: \"%s\"\r\n", 304},
        {"", "If-None-Match: *\r\n", 304},
        {"", "If-None-Match: \"%s-gz\"\r\n", 200},
        {"", "If-None-Match: \"x%s\"\r\n", 200},
        {"", "If-None-Match: %s\r\n", 200},
        {"", "If-None-Match:\r\n", 200},
        {"Accept-Encoding: gzip\r\n", "If-None-Match: \"%s-gz\"\r\n", 304},
        {"Accept-Encoding: gzip\r\n", "If-None-Match: \"%s\"\r\n", 200},
    };
    const HttpAsset *asset = http_asset_find(test_assets, "/");
    g_autofree char *tag = g_strndup(asset->etag + 1, strlen(asset->etag) - 2);
    Fixture f;

    serve(&f, test_assets);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(GStrv) pieces = g_strsplit(cases[i].format, "%s", -1);
        g_autofree char *header = g_strjoinv(tag, pieces);
        g_autofree char *headers = g_strconcat(cases[i].accept, header, NULL);
        g_autoptr(GString) answer = ask(&f, "GET", "/", headers);
        g_autofree char *selected = tag_of(asset, *cases[i].accept != '\0');
        g_autofree char *tag_line = g_strconcat("ETag: ", selected, NULL);

        g_test_message("%s", headers);
        g_assert_cmpint(answer_status(answer->str), ==, cases[i].status);
        g_assert_true(has_header(answer, tag_line));
        g_assert_true(has_header(answer, "Vary: Accept-Encoding"));
        g_assert_cmpint(body_size(answer) == 0, ==, cases[i].status == 304);
        if (cases[i].status == 304)
            g_assert_false(has_header(answer, "Content-Encoding: gzip"));
    }
    fixture_clear(&f);
}

static void
test_head(void)
{
    static const char *const headers[] = {"", "Accept-Encoding: gzip\r\n"};
    const HttpAsset *asset = http_asset_find(test_assets, "/");
    Fixture f;

    serve(&f, test_assets);
    for (size_t i = 0; i < G_N_ELEMENTS(headers); i++) {
        g_autoptr(GString) answer = ask(&f, "HEAD", "/", headers[i]);
        g_autofree char *length = g_strdup_printf("Content-Length: %zu",
                                                  i == 0 ? asset->size : asset->gzip_size);

        g_assert_cmpint(answer_status(answer->str), ==, 200);
        g_assert_true(has_header(answer, length));
        g_assert_cmpuint(body_size(answer), ==, 0);
    }
    fixture_clear(&f);
}

static void
test_large(void)
{
    g_autofree guint8 *data = g_malloc(LARGE_SIZE);

    for (size_t i = 0; i < LARGE_SIZE; i++)
        data[i] = (guint8)(i * 31 >> 3);
    HttpAsset table[] = {{"/large", "image/png", "\"l\"", data, LARGE_SIZE, NULL, 0}, {NULL}};
    Fixture f;

    serve(&f, table);
    g_autoptr(GString) answer = ask(&f, "GET", "/large", "");
    g_assert_cmpmem(answer_body(answer->str), body_size(answer), data, LARGE_SIZE);
    fixture_clear(&f);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http/assets/table", test_table);
    g_test_add_func("/http/assets/encodings", test_encodings);
    g_test_add_func("/http/assets/conditional", test_conditional);
    g_test_add_func("/http/assets/head", test_head);
    g_test_add_func("/http/assets/large", test_large);
    return g_test_run();
}

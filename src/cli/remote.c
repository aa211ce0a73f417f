/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote.h"

#include <string.h>

#include "base/err.h"
#include "cli/remote-place.h"
#include "cli/settings.h"
#include "http/client.h"

enum {
    /* A page of EVENT_PAGE_MAX events of the largest kind is about 17 MiB. */
    ANSWER_MAX = 64 * 1024 * 1024,
    MESSAGE_MAX = 500, /* of a server, in bytes */
    SEND_MS = 60000,
};

struct Remote {
    Cli *cli; /* borrowed */
    Config *config;
    RemotePlace place;
    HttpClient *client;
    GMainLoop *loop;
    bool cancelled;
};

ExitCode
remote_open(Cli *cli, Remote **ret_remote)
{
    g_autoptr(Config) config = NULL;
    ExitCode code = cli_config(cli, &config);

    if (code != EXIT_CODE_OK)
        return code;
    Remote *r = g_new0(Remote, 1);
    remote_place_find(config, &r->place);
    r->cli = cli;
    r->config = g_steal_pointer(&config);
    r->client = http_client_new(NULL);
    r->loop = g_main_loop_new(NULL, FALSE);
    *ret_remote = r;
    return EXIT_CODE_OK;
}

void
remote_free(Remote *r)
{
    if (r == NULL)
        return;
    http_client_free(r->client);
    g_main_loop_unref(r->loop);
    remote_place_clear(&r->place);
    config_free(r->config);
    g_free(r);
}

const Config *
remote_config(const Remote *r)
{
    return r->config;
}

const char *
remote_address(const Remote *r)
{
    return r->place.socket != NULL ? r->place.socket : r->place.url;
}

bool
remote_has_key(const Remote *r)
{
    return r->place.socket != NULL || r->place.key != NULL;
}

void
remote_reply_clear(RemoteReply *reply)
{
    g_free(reply->message);
    g_clear_pointer(&reply->body, json_decref);
    *reply = (RemoteReply){0};
}

/* ---- the exchange ---- */

typedef struct Exchange {
    Remote *remote;
    const RemoteCall *call;
    HttpCall *http;
    int status;
    GByteArray *body;
    GError *error;
    bool stopped; /* by us */
} Exchange;

static bool
is_good(int status)
{
    return status >= 200 && status < 300;
}

static void
stop(Exchange *x)
{
    http_call_cancel(g_steal_pointer(&x->http));
    x->stopped = true;
    g_main_loop_quit(x->remote->loop);
}

static void
on_head(HttpCall *call, int status, void *ctx)
{
    Exchange *x = ctx;

    x->status = status;
}

static bool
on_data(HttpCall *call, const guint8 *bytes, size_t n, void *ctx)
{
    Exchange *x = ctx;

    if (is_good(x->status) && x->call->data != NULL) {
        if (!x->call->data(bytes, n, x->call->ctx))
            stop(x);
    } else if (n > ANSWER_MAX - x->body->len) {
        err_set(&x->error, ERR_LIMIT, "its answer is longer than %d MiB", ANSWER_MAX >> 20);
        stop(x);
    } else {
        g_byte_array_append(x->body, bytes, (guint)n);
    }
    return true;
}

static void
on_done(HttpCall *call, int status, const GError *error, void *ctx)
{
    Exchange *x = ctx;

    x->http = NULL;
    if (error != NULL)
        x->error = g_error_copy(error);
    g_main_loop_quit(x->remote->loop);
}

static GPtrArray *
make_headers(const Remote *r, const RemoteCall *call)
{
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);

    for (const char *const *h = call->headers; h != NULL && *h != NULL; h++)
        g_ptr_array_add(lines, g_strdup(*h));
    if (r->place.key != NULL)
        g_ptr_array_add(lines, g_strconcat("X-API-Key: ", r->place.key, NULL));
    if (call->body != NULL)
        g_ptr_array_add(lines, g_strdup("Content-Type: application/json"));
    g_ptr_array_add(lines, NULL);
    return lines;
}

static void
run_exchange(Exchange *x)
{
    static const HttpCallHandler handler = {.head = on_head, .data = on_data, .done = on_done};
    Remote *r = x->remote;
    g_autoptr(GPtrArray) headers = make_headers(r, x->call);
    g_autofree char *url = g_strconcat(r->place.url, x->call->path, NULL);
    g_autofree char *body = x->call->body != NULL ? json_encode(x->call->body) : NULL;
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    spec.method = x->call->method;
    spec.url = url;
    spec.unix_socket = r->place.socket;
    spec.headers = (const char *const *)headers->pdata;
    spec.body = body;
    spec.body_len = body != NULL ? strlen(body) : 0;
    spec.body_fd = x->call->body_fd;
    spec.first_byte_ms = x->call->answer_ms;
    spec.stall_ms = x->call->stall_ms;
    x->http = http_client_call(r->client, &spec, &handler, x, &x->error);
    if (x->http == NULL)
        return;
    g_main_loop_run(r->loop);
    if (x->http != NULL) /* cancelled from outside */
        http_call_cancel(x->http);
}

/* ---- what came of it ---- */

static void G_GNUC_PRINTF(3, 4) set_failure(RemoteReply *reply, ExitCode code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    reply->code = code;
    reply->message = g_strdup_vprintf(fmt, ap);
    va_end(ap);
}

static void
read_error(const Exchange *x, RemoteReply *reply)
{
    const Remote *r = x->remote;
    const char *where = remote_address(r), *why = x->error->message;
    ErrKind kind = err_kind(x->error);

    if (kind == ERR_UNAVAILABLE && r->config->server_url_is_set)
        set_failure(reply, EXIT_CODE_UNREACHABLE,
                    "no server answered at %s (%s): is it running, and is the address right?", where, why);
    else if (kind == ERR_UNAVAILABLE)
        set_failure(reply, EXIT_CODE_UNREACHABLE,
                    "no server answered at %s (%s): start one with 'coop start', or name another with "
                    "--server",
                    where, why);
    else if (kind == ERR_TIMEOUT)
        set_failure(reply, EXIT_CODE_TIMEOUT, "the server at %s did not answer in time (%s)", where, why);
    else if (kind == ERR_INVALID && x->status == 0)
        set_failure(reply, EXIT_CODE_UNREACHABLE, "what answers at %s is no Coop server (%s)", where, why);
    else
        set_failure(reply, EXIT_CODE_FAILED, "the answer of the server at %s cannot be used: %s", where, why);
}

static ExitCode
code_of_status(int status)
{
    switch (status) {
    case 400:
    case 422:
        return EXIT_CODE_USAGE;
    case 405:
        return EXIT_CODE_CONFLICT;
    case 401:
    case 403:
        return EXIT_CODE_DENIED;
    case 404:
        return EXIT_CODE_NOT_FOUND;
    case 409:
        return EXIT_CODE_CONFLICT;
    case 408:
    case 504:
        return EXIT_CODE_TIMEOUT;
    default:
        return EXIT_CODE_FAILED;
    }
}

/* GitHub's dialect says only in a list what is wrong with a request. */
static const char *
reason_of(const Json *body, const char *text)
{
    const Json *first = json_array_get(json_object_get(body, "errors"), 0);
    const char *more = json_string_value(json_object_get(first, "message"));

    return more != NULL ? more : text;
}

static void
read_refusal(const Exchange *x, RemoteReply *reply)
{
    const RemotePlace *place = &x->remote->place;
    const char *where = remote_address(x->remote);
    const char *text = json_string_value(json_object_get(reply->body, "message"));

    if (text == NULL)
        set_failure(reply, EXIT_CODE_UNREACHABLE, "what answers at %s is no Coop server (status %d)", where,
                    x->status);
    else if (x->status == 401 && place->key == NULL)
        set_failure(
            reply, EXIT_CODE_DENIED,
            "the server at %s wants a key: set COOP_API_KEY; 'coop key', run by its owner, prints one",
            where);
    else if (x->status == 401)
        set_failure(
            reply, EXIT_CODE_DENIED,
            "the server at %s does not take the key from %s: set COOP_API_KEY; 'coop key', run by its "
            "owner, prints a right one",
            where, place->key_origin);
    else
        set_failure(reply, code_of_status(x->status), "%.*s", MESSAGE_MAX, reason_of(reply->body, text));
}

static void
read_reply(const Exchange *x, RemoteReply *reply)
{
    reply->status = x->status;
    if (x->remote->cancelled)
        return;
    if (x->error != NULL) {
        read_error(x, reply);
        return;
    }
    /* What is not JSON came from somebody else. */
    if (x->body->len > 0)
        reply->body = json_decode(x->body->data, x->body->len, NULL);
    if (!is_good(x->status) && !x->stopped)
        read_refusal(x, reply);
    else if (x->body->len > 0 && reply->body == NULL)
        set_failure(reply, EXIT_CODE_UNREACHABLE, "what answers at %s is no Coop server",
                    remote_address(x->remote));
}

void
remote_try(Remote *r, const RemoteCall *call, RemoteReply *ret_reply)
{
    g_autoptr(GByteArray) body = g_byte_array_new();
    g_autoptr(GError) error = NULL;
    Exchange x = {.remote = r, .call = call, .body = body};

    *ret_reply = (RemoteReply){0};
    if (!r->cancelled)
        run_exchange(&x);
    error = x.error;
    read_reply(&x, ret_reply);
}

ExitCode
remote_run(Remote *r, const RemoteCall *call, Json **ret_body)
{
    g_auto(RemoteReply) reply;

    remote_try(r, call, &reply);
    if (reply.message != NULL)
        return cli_fail(r->cli, reply.code, "%s", reply.message);
    if (ret_body != NULL)
        *ret_body = g_steal_pointer(&reply.body);
    return EXIT_CODE_OK;
}

ExitCode
remote_call(Remote *r, const char *method, const char *path, const Json *body, Json **ret_body)
{
    RemoteCall call = REMOTE_CALL_INIT;

    call.method = method;
    call.path = path;
    call.body = body;
    return remote_run(r, &call, ret_body);
}

ExitCode
remote_remove(Cli *cli, const char *path, const char *name)
{
    g_autoptr(Remote) remote = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "DELETE", path, NULL, NULL);
    if (code != EXIT_CODE_OK)
        return code;
    g_autoptr(Json) value = json_pack("{s:s}", "removed", name);

    out_json(cli_out(cli), value);
    out_text(cli_out(cli), OUT_PLAIN, "removed %s\n", name);
    return EXIT_CODE_OK;
}

/* ---- beside a call ---- */

struct RemoteSend {
    HttpCall *http; /* NULL: it could not even begin */
    guint idle;
    RemoteSentFunc done;
    void *ctx;
};

static bool
on_sent_data(HttpCall *call, const guint8 *bytes, size_t n, void *ctx)
{
    return true;
}

static void
on_sent(HttpCall *call, int status, const GError *error, void *ctx)
{
    g_autofree RemoteSend *s = ctx;

    s->done(error == NULL ? status : 0, s->ctx);
}

static gboolean
on_not_sent(gpointer data)
{
    g_autofree RemoteSend *s = data;

    s->done(0, s->ctx);
    return G_SOURCE_REMOVE;
}

RemoteSend *
remote_send(Remote *r, const char *path, const char *type, const void *bytes, size_t n, RemoteSentFunc done,
            void *ctx)
{
    static const HttpCallHandler handler = {.data = on_sent_data, .done = on_sent};
    g_autofree char *url = g_strconcat(r->place.url, path, NULL);
    g_autofree char *type_line = g_strconcat("Content-Type: ", type, NULL);
    g_autofree char *key_line = r->place.key != NULL ? g_strconcat("X-API-Key: ", r->place.key, NULL) : NULL;
    const char *const headers[] = {type_line, key_line, NULL};
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;
    RemoteSend *s = g_new0(RemoteSend, 1);

    *s = (RemoteSend){.done = done, .ctx = ctx};
    spec.method = "POST";
    spec.url = url;
    spec.unix_socket = r->place.socket;
    spec.headers = headers;
    spec.body = bytes;
    spec.body_len = n;
    spec.first_byte_ms = SEND_MS;
    s->http = http_client_call(r->client, &spec, &handler, s, NULL);
    if (s->http == NULL)
        s->idle = g_idle_add(on_not_sent, s);
    return s;
}

void
remote_send_cancel(RemoteSend *s)
{
    if (s == NULL)
        return;
    if (s->http != NULL)
        http_call_cancel(s->http);
    else
        g_source_remove(s->idle);
    g_free(s);
}

/* ---- waiting ---- */

void
remote_cancel(Remote *r)
{
    r->cancelled = true;
    g_main_loop_quit(r->loop);
}

bool
remote_is_cancelled(const Remote *r)
{
    return r->cancelled;
}

static gboolean
on_waited(gpointer loop)
{
    g_main_loop_quit(loop);
    return G_SOURCE_CONTINUE;
}

bool
remote_wait(Remote *r, guint ms)
{
    if (r->cancelled)
        return false;
    guint timer = g_timeout_add(ms, on_waited, r->loop);
    g_main_loop_run(r->loop);
    g_source_remove(timer);
    return !r->cancelled;
}

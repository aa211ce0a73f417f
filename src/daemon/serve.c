/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve.h"

#include <glib-unix.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "daemon/github.h"
#include "daemon/serve-private.h"

enum {
    STOP_MS = 10000, /* for answers under way, after that they are cut */
    PRUNE_S = 3600,
};

static bool
open_store(Server *s, GError **error)
{
    DbSpec spec = {.path = s->config->database_file};

    s->db = db_open(&spec, error);
    if (s->db == NULL)
        return false;
    s->events = event_log_new(s->db, error);
    return s->events != NULL;
}

static bool
write_life_event(DbTx *tx, void *data, GError **error)
{
    g_autofree char *text = g_strdup_printf("{\"version\":\"%s\",\"pid\":%d}", version_number(), getpid());
    EventSpec event = {.kind = data, .actor = "coop", .data = text, .owner = EVENT_FOR_ALL};

    return event_append(tx, &event, NULL, error);
}

static void
append_life_event(Server *s, const char *kind)
{
    db_write(s->db, write_life_event, NULL, (gpointer)(guintptr)kind, NULL);
}

static gboolean
prune(gpointer data)
{
    Server *s = data;

    event_log_prune(s->events, clock_wall_us() - s->config->events_retention_ms * 1000, NULL, NULL);
    return G_SOURCE_CONTINUE;
}

static void
end(Server *s, const GError *error)
{
    if (error != NULL && s->error == NULL)
        s->error = g_error_copy(error);
    g_main_loop_quit(s->main);
}

static void
announce(Server *s)
{
    char ticket[TICKET_LEN + 1];
    g_autofree char *link = NULL;

    if (api_ticket(s->api, ticket))
        link = g_strdup_printf("%s/#ticket=%s", s->address, ticket);
    log_info("daemon", "ready", log_str("address", s->address), log_str("home", s->config->home),
             log_str("version", version_number()));
    if (s->options->ready != NULL)
        s->options->ready(s->address, link, s->options->data);
}

static void
begin(void *data, const GError *error)
{
    Server *s = data;
    g_autoptr(GError) failed = NULL;

    if (s->stopping)
        return; /* too late: the store is being closed */
    if (error != NULL) {
        end(s, error);
    } else if (!serve_open_http(s, &failed)) {
        end(s, failed);
    } else {
        append_life_event(s, "server.started");
        serve_parts_start(s);
        prune(s);
        announce(s);
    }
}

static void
on_keys_loaded(void *data, const GError *error)
{
    if (error != NULL)
        begin(data, error);
    else
        serve_parts_load(data, begin);
}

static void
on_drained(void *data)
{
    end(data, NULL);
}

static gboolean
on_stop_deadline(gpointer data)
{
    log_warn("daemon", "answers under way were cut", log_int("after_ms", STOP_MS));
    end(data, NULL);
    return G_SOURCE_REMOVE;
}

static gboolean
on_stop_signal(gpointer data)
{
    Server *s = data;

    if (s->stopping)
        return G_SOURCE_CONTINUE;
    s->stopping = true;
    log_info("daemon", "stopping");
    if (s->http == NULL) {
        end(s, NULL);
        return G_SOURCE_CONTINUE;
    }
    api_flush(s->api);
    append_life_event(s, "server.stopped");
    g_timeout_add(STOP_MS, on_stop_deadline, s);
    http_server_drain(s->http, on_drained, s);
    return G_SOURCE_CONTINUE;
}

static gboolean
on_dump_signal(gpointer data)
{
    Server *s = data;
    HttpStats h = {0};
    DbStats d;
    EventStats e;

    if (s->http != NULL)
        http_server_stats(s->http, &h);
    db_stats(s->db, &d);
    event_log_stats(s->events, &e);
    log_info("daemon", "state", log_int("connections", h.connections), log_int("requests", h.requests_active),
             log_int("streams", h.streams), log_int("writes_waiting", d.writes_waiting),
             log_int("reads_waiting", d.reads_waiting), log_int("followers", e.cursors),
             log_int("last_seq", e.last_seq), log_int("ring_bytes", e.ring_bytes));
    return G_SOURCE_CONTINUE;
}

static void
run_loop(Server *s)
{
    const guint sources[] = {
        g_unix_signal_add(SIGTERM, on_stop_signal, s),
        g_unix_signal_add(SIGINT, on_stop_signal, s),
        g_unix_signal_add(SIGUSR1, on_dump_signal, s),
        g_timeout_add_seconds(PRUNE_S, prune, s),
    };

    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    api_load(s->api, s->config->key, on_keys_loaded, s);
    g_main_loop_run(s->main);
    for (size_t i = 0; i < G_N_ELEMENTS(sources); i++)
        g_source_remove(sources[i]);
    /* GLib gives back the default action, and a second signal would cut what is still to be
     * written. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
}

static void
server_clear(Server *s)
{
    /* The order of who uses whom: answers first, then the jobs they started, then what those
     * report to. */
    if (s->http != NULL)
        api_set_server(s->api, NULL);
    http_server_free(s->http);
    if (s->api != NULL)
        serve_parts_stop(s);
    event_log_free(s->events);
    db_close(s->db);
    if (s->api != NULL)
        serve_parts_clear(s);
    loop_free(s->loop);
    g_main_loop_unref(s->main);
    serve_leave_place(s);
}

bool
serve_run(const Config *config, const ServeOptions *options, GError **error)
{
    g_autoptr(GithubEnv) taken = github_take_environment(); /* the configuration has read it */
    Server s = {.config = config, .options = options, .lock_fd = -1, .space_fd = -1};

    s.main = g_main_loop_new(NULL, FALSE);
    s.tcp_fds = g_array_new(FALSE, FALSE, sizeof(int));
    bool ok = serve_take_place(&s, error) && open_store(&s, error);
    if (ok) {
        s.loop = loop_new(NULL);
        serve_parts_make(&s);
        run_loop(&s);
        if (s.error != NULL) {
            g_propagate_error(error, g_steal_pointer(&s.error));
            ok = false;
        }
    }
    server_clear(&s);
    return ok;
}

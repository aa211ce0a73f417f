/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve.h"

#include <errno.h>
#include <glib-unix.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/privilege.h"
#include "base/version.h"
#include "daemon/boxes.h"
#include "daemon/forge.h"
#include "daemon/github.h"
#include "daemon/home.h"
#include "daemon/listen.h"
#include "daemon/space.h"
#include "daemon/templates.h"
#include "http/server.h"
#include "store/db.h"
#include "store/events.h"

enum {
    STOP_MS = 10000, /* for answers under way, after that they are cut */
    PRUNE_S = 3600,
    BACKUP_MAX_GIB = 64, /* an uploaded backup */
    CENTS = 100,
};

typedef struct Server {
    const Config *config;
    const ServeOptions *options;
    GMainLoop *main;
    int lock_fd;
    int space_fd;    /* -1: none */
    GArray *tcp_fds; /* int, opened while we may still be root; taken by the server */
    char *address;   /* of the first of them, as a URL */
    Loop *loop;
    Db *db;
    EventLog *events;
    ServeTemplates *templates; /* NULL: none */
    Boxes *boxes;              /* NULL: none */
    Forge *forge;              /* NULL: none */
    ReceiptKey *receipt_key;   /* NULL: none */
    Checks *checks;            /* NULL: none */
    Landings *landings;        /* NULL: none */
    ServeHooks hooks;
    Github *github; /* NULL: none */
    Api *api;
    HttpServer *http;
    bool stopping;
    GError *forge_problem; /* why there is none */
    GError *error;         /* why the loop ended, NULL: as asked */
} Server;

/* ---- before the loop ---- */

static void
raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* fewer connections then */
}

/* A machine without IPv6 has no [::1] and no [::], which "localhost" and "*" stand for too. */
static bool
may_lack(const ConfigAddress *a, int problem)
{
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)&a->addr)->sin6_addr;

    return a->addr.ss_family == AF_INET6 && (problem == EADDRNOTAVAIL || problem == EAFNOSUPPORT) &&
           (IN6_IS_ADDR_LOOPBACK(v6) || IN6_IS_ADDR_UNSPECIFIED(v6));
}

static bool
open_tcp(Server *s, GError **error)
{
    for (guint i = 0; i < s->config->addresses->len; i++) {
        const ConfigAddress *a = &g_array_index(s->config->addresses, ConfigAddress, i);
        g_autoptr(GError) failed = NULL;
        int fd = listen_tcp(a, &failed);

        if (fd < 0 && may_lack(a, errno)) {
            log_info("daemon", "no IPv6 here", log_str("address", a->text));
            continue;
        }
        if (fd < 0) {
            g_propagate_error(error, g_steal_pointer(&failed));
            return false;
        }
        g_array_append_val(s->tcp_fds, fd);
    }
    if (s->tcp_fds->len == 0)
        return err_set(error, ERR_INVALID, "there is no address to listen on");
    s->address = listen_url(g_array_index(s->tcp_fds, int, 0), error);
    return s->address != NULL;
}

static bool
take_place(Server *s, GError **error)
{
    g_auto(RunAs) as = {0};

    umask(0077);
    raise_fd_limit();
    if (!run_as_find(s->options->user, &as, error) || !home_prepare(s->config->home, as.uid, as.gid, error))
        return false;
    s->lock_fd = home_lock(s->config->home, as.uid, as.gid, error);
    if (s->lock_fd < 0 || !open_tcp(s, error) || !run_as_enter(&as, error))
        return false;
    if (s->config->boxes.enabled)
        s->space_fd = build_space_open();
    if (!run_as_seal(error))
        return false;
    /* After the change of user, which clears it. */
    if (s->options->supervised && prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        return err_errno(error, "follow the supervisor");
    return true;
}

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

static void
on_degraded(const char *part, const char *reason, void *ctx)
{
    Server *s = ctx;

    api_set_degraded(s->api, part, reason);
}

static void
on_box_asks(const char *box_id, int fd, void *ctx)
{
    Server *s = ctx;

    api_adopt_box(s->api, box_id, fd);
}

static void
on_box_gone(const char *box_id, void *ctx)
{
    Server *s = ctx;

    api_forget_box(s->api, box_id);
}

/* Without boxes the rest still works. */
static void
make_boxes(Server *s)
{
    g_autoptr(GError) error = NULL;
    TemplateStore *templates = serve_templates_store(s->templates);

    if (templates == NULL)
        return;
    s->boxes = boxes_new(&(BoxesSpec){.config = s->config,
                                      .loop = s->loop,
                                      .db = s->db,
                                      .events = s->events,
                                      .templates = templates,
                                      .degraded = on_degraded,
                                      .box_asks = on_box_asks,
                                      .box_gone = on_box_gone,
                                      .ctx = s},
                         &error);
    if (s->boxes == NULL)
        log_warn("daemon", "there are no boxes", log_gerror(error));
}

static void
make_checks(Server *s)
{
    g_autoptr(GError) error = NULL;

    s->receipt_key = receipt_key_open(s->config->home, &error);
    if (s->receipt_key == NULL)
        log_warn("daemon", "nothing can be checked", log_gerror(error));
    s->checks = checks_new(&(ChecksSpec){
        .forge = s->forge, .boxes = s->boxes != NULL ? boxes_host(s->boxes) : NULL, .key = s->receipt_key});
}

static void
add_suite(void *ctx, Repo *repo, const char *base_oid, const char *head_oid, gint64 number, const char *actor,
          ForgeJsonFunc done, void *data)
{
    const SuiteSpec spec = {.base_oid = base_oid, .head_oid = head_oid, .number = number, .actor = actor};

    checks_add(ctx, repo, &spec, done, data);
}

/* One that has ended meanwhile is none to be cancelled. */
static void
on_suite_cancelled(Json *value, const GError *error, void *data)
{
}

static void
cancel_suite(void *ctx, Repo *repo, const char *suite_id)
{
    checks_cancel(ctx, repo, suite_id, "coop", on_suite_cancelled, NULL);
}

static void
on_suite_ended(Repo *repo, const char *suite_id, const char *state, void *data)
{
    landings_suite_ended(data, repo, suite_id, state);
}

static void
make_landings(Server *s)
{
    s->landings = landings_new(&(LandingsSpec){
        .forge = s->forge, .check = {.add = add_suite, .cancel = cancel_suite, .ctx = s->checks}});
    checks_listen(s->checks, on_suite_ended, s->landings);
}

/* And without git. */
static void
make_forge(Server *s)
{
    s->forge = serve_forge_new(&(ServeForgeSpec){.config = s->config,
                                                 .loop = s->loop,
                                                 .db = s->db,
                                                 .events = s->events,
                                                 .boxes = s->boxes != NULL ? boxes_host(s->boxes) : NULL,
                                                 .address = s->address},
                               &s->forge_problem);
    if (s->forge == NULL)
        log_warn("daemon", "there is no forge", log_gerror(s->forge_problem));
    if (s->forge == NULL)
        return;
    make_checks(s);
    make_landings(s);
}

static void
make_github(Server *s)
{
    g_autoptr(GError) error = NULL;

    if (s->forge == NULL)
        return;
    s->github = serve_github_new(
        &(ServeGithubSpec){
            .config = s->config, .loop = s->loop, .db = s->db, .events = s->events, .forge = s->forge},
        &error);
    if (s->github == NULL)
        log_warn("daemon", "nothing goes to GitHub", log_gerror(error));
}

static void
make_api(Server *s)
{
    const ConfigHttp *h = &s->config->http;
    g_auto(GStrv) hosts = listen_host_names(s->config);
    ApiSpec spec = {
        .loop = s->loop,
        .db = s->db,
        .events = s->events,
        .boxes = s->boxes != NULL ? boxes_host(s->boxes) : NULL,
        .templates = serve_templates_store(s->templates),
        .door = s->boxes != NULL ? boxes_door(s->boxes) : NULL,
        .forge = s->forge,
        .checks = s->checks,
        .landings = s->landings,
        .github = s->github,
        .self_test = s->boxes != NULL ? boxes_self_test(s->boxes) : NULL,
        .price_per_hour = (double)s->config->boxes.price_cents / CENTS,
        .home = s->config->home,
        .address = s->address,
        .hosts = (const char *const *)hosts,
        .origins = h->allowed_origins,
        .rate = {.per_second = (guint)h->rate_per_key, .burst = (guint)h->rate_burst},
        .streams_per_key = (guint)h->streams_per_key,
        .body_max = (guint64)h->body_limit,
        .backup_max = (guint64)BACKUP_MAX_GIB << 30,
    };

    s->api = api_new(&spec);
    if (s->forge == NULL)
        api_set_degraded(s->api, "forge", s->forge_problem->message);
}

/* Without them the rest of the forge still works. */
static void
make_hooks(Server *s)
{
    g_autoptr(GError) error = NULL;

    if (s->forge == NULL || serve_hooks_open(&s->hooks, s->config, s->forge, s->api, &error))
        return;
    log_warn("daemon", "there are no webhooks", log_gerror(error));
    api_set_degraded(s->api, "webhooks", error->message);
}

static bool
add_listener(Server *s, int fd, const char *name, GError **error)
{
    HttpListenerSpec spec = {.name = name};

    return http_server_listen(s->http, fd, &spec, error) != NULL;
}

static bool
make_http(Server *s, GError **error)
{
    const ConfigHttp *h = &s->config->http;
    HttpServerSpec spec = {
        .loop = s->loop, .limits = HTTP_LIMITS_INIT, .handler = api_handle, .data = s->api};
    g_autofree char *path = home_control_socket(s->config->home);

    spec.limits.connections = (guint)h->max_connections;
    spec.limits.header_ms = (guint)h->header_timeout_ms;
    spec.limits.idle_ms = (guint)h->idle_timeout_ms;
    s->http = http_server_new(&spec);
    api_set_server(s->api, s->http);
    int control = listen_unix(path, error);
    if (control < 0 || !add_listener(s, control, "control", error))
        return false;
    for (guint i = 0; i < s->tcp_fds->len; i++) {
        int *fd = &g_array_index(s->tcp_fds, int, i);

        if (!add_listener(s, g_steal_fd(fd), "tcp", error))
            return false;
    }
    return true;
}

/* ---- events of our own life ---- */

static bool
write_life_event(DbTx *tx, void *data, GError **error)
{
    g_autofree char *text = g_strdup_printf("{\"version\":\"%s\",\"pid\":%d}", version_number(), getpid());
    EventSpec event = {.kind = data, .actor = "coop", .data = text};

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

/* ---- the loop ---- */

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
    } else if (!make_http(s, &failed)) {
        end(s, failed);
    } else {
        if (s->hooks.hooks != NULL)
            hooks_start(s->hooks.hooks);
        append_life_event(s, "server.started");
        if (s->checks != NULL)
            checks_start(s->checks);
        if (s->landings != NULL)
            landings_start(s->landings);
        prune(s);
        announce(s);
        serve_templates_begin(s->templates, s->api, s->boxes != NULL);
    }
}

static void
on_forge_loaded(void *data, const GError *error)
{
    Server *s = data;

    if (s->stopping || error != NULL || s->github == NULL)
        begin(s, error);
    else
        github_load(s->github, begin, s);
}

static void
on_boxes_loaded(void *data, const GError *error)
{
    Server *s = data;

    if (s->stopping || error != NULL || s->forge == NULL)
        begin(s, error);
    else
        forge_load(s->forge, on_forge_loaded, s);
}

static void
on_loaded(void *data, const GError *error)
{
    Server *s = data;

    if (s->stopping || error != NULL || s->boxes == NULL)
        on_boxes_loaded(s, error);
    else
        boxes_load(s->boxes, on_boxes_loaded, s);
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
    api_load(s->api, s->config->key, on_loaded, s);
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
    if (s->landings != NULL)
        checks_unlisten(s->checks, on_suite_ended, s->landings);
    landings_free(s->landings);
    github_free(s->github);
    checks_free(s->checks);
    if (s->api != NULL)
        api_set_hooks(s->api, NULL);
    serve_hooks_stop(&s->hooks);
    forge_free(s->forge);
    if (s->api != NULL)
        api_forget_door(s->api);
    boxes_free(s->boxes);
    serve_templates_free(s->templates);
    event_log_free(s->events);
    db_close(s->db);
    receipt_key_free(s->receipt_key);
    serve_hooks_clear(&s->hooks);
    api_free(s->api);
    loop_free(s->loop);
    for (guint i = 0; i < s->tcp_fds->len; i++) {
        if (g_array_index(s->tcp_fds, int, i) >= 0)
            close(g_array_index(s->tcp_fds, int, i));
    }
    g_array_unref(s->tcp_fds);
    g_free(s->address);
    g_clear_error(&s->forge_problem);
    g_main_loop_unref(s->main);
    if (s->space_fd >= 0)
        close(s->space_fd);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
}

bool
serve_run(const Config *config, const ServeOptions *options, GError **error)
{
    g_autoptr(GithubEnv) taken = github_take_environment(); /* the configuration has read it */
    Server s = {.config = config, .options = options, .lock_fd = -1, .space_fd = -1};

    s.main = g_main_loop_new(NULL, FALSE);
    s.tcp_fds = g_array_new(FALSE, FALSE, sizeof(int));
    bool ok = take_place(&s, error) && open_store(&s, error);
    if (ok) {
        s.loop = loop_new(NULL);
        if (config->boxes.enabled) {
            s.templates = serve_templates_new(config, s.loop, s.db, s.space_fd);
            make_boxes(&s);
        }
        make_forge(&s);
        make_github(&s);
        make_api(&s);
        make_hooks(&s);
        run_loop(&s);
        if (s.error != NULL) {
            g_propagate_error(error, g_steal_pointer(&s.error));
            ok = false;
        }
    }
    server_clear(&s);
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* coop-door: the one way out of the boxes.  It holds the providers' keys and treats every byte
 * from a box as hostile; `coop serve` tells it which boxes there are and what they may. */
#include <errno.h>
#include <getopt.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/exitcode.h"
#include "base/io.h"
#include "base/log.h"
#include "base/path.h"
#include "base/privilege.h"
#include "door-main/confine.h"
#include "door/control.h"
#include "door/takeover.h"

enum { BACKLOG = 4 };

typedef struct Options {
    const char *socket, *state, *user, *resolver;
    uid_t server_uid;
} Options;

typedef struct Program {
    Options options;
    GMainLoop *main;
    Loop *loop;
    OwnAddresses *own;
    Dialer *dialer;
    FactLog *facts;
    Budgets *budgets;
    PriceTable *prices;
    Gate *gate;
    Door *door;
    DoorVault *vault;
    GPtrArray *providers; /* char*: those of the environment */
    DoorControl *control;
} Program;

/* ---- the start ---- */

static bool
read_options(Options *o, int argc, char **argv, GError **error)
{
    static const struct option table[] = {
        {"socket", required_argument, NULL, 's'},     {"state", required_argument, NULL, 'd'},
        {"server-uid", required_argument, NULL, 'i'}, {"user", required_argument, NULL, 'u'},
        {"resolver", required_argument, NULL, 'r'},   {NULL}};
    guint64 uid = geteuid();
    bool good = true;
    int at;

    opterr = 0;
    while ((at = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (at == 's')
            o->socket = optarg;
        else if (at == 'd')
            o->state = optarg;
        else if (at == 'u')
            o->user = optarg;
        else if (at == 'r')
            o->resolver = optarg;
        else
            good = good && at == 'i' &&
                   g_ascii_string_to_unsigned(optarg, 10, 0, G_MAXUINT32 - 1, &uid, NULL);
    }
    o->server_uid = (uid_t)uid;
    if (!good || optind < argc || o->socket == NULL || o->state == NULL)
        return err_set(error, ERR_INVALID,
                       "usage: coop-door --socket PATH --state DIR [--server-uid UID] [--user NAME] "
                       "[--resolver ADDRESS:PORT]");
    return true;
}

static bool
become_user(const Options *o, GError **error)
{
    g_auto(RunAs) as = {0};
    pid_t supervisor = getppid();

    if (o->user != NULL && (!run_as_find(o->user, &as, error) || !run_as_enter(&as, error)))
        return false;
    if (geteuid() == 0)
        return err_set(error, ERR_INVALID, "the door does not run as root: name a user with --user");
    /* After the change of user, which clears it. */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        return err_errno(error, "follow the supervisor");
    return getppid() == supervisor || err_set(error, ERR_CANCELLED, "the supervisor has ended");
}

/* A box has a listener, and each of its connections two ends. */
static void
raise_fd_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* a low one shows when it is reached */
    }
}

/* Whoever connects is checked by SO_PEERCRED: the server is another user. */
static int
open_socket(const char *path, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    autofd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (strlen(path) >= sizeof address.sun_path) {
        err_set(error, ERR_INVALID, "the path '%s' is too long for a socket", path);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    if ((unlink(path) < 0 && errno != ENOENT) || fd < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, 0666) < 0 ||
        listen(fd, BACKLOG) < 0) {
        err_errno(error, "listen on '%s'", path);
        return -1;
    }
    return g_steal_fd(&fd);
}

/* ---- the parts ---- */

static void
tell_fact(Json *fact, void *ctx)
{
    Program *p = ctx;

    fact_log_add(p->facts, fact);
}

static bool
may_tell(void *ctx)
{
    const Program *p = ctx;

    return !fact_log_is_full(p->facts);
}

static bool
take_key(Program *p, const DoorKeyVariable *v, char *key, GError **error)
{
    const char *kind = provider_kind_name(v->kind);
    g_autoptr(Json) object = json_pack("{s:s, s:s}", "name", kind, "kind", kind);
    g_autoptr(Provider) provider = provider_new(object, error);

    if (provider == NULL) {
        door_wipe_text(key);
        return false;
    }
    provider_take_key(provider, key);
    if (!gate_set_provider(p->gate, provider, NULL, error))
        return false;
    g_ptr_array_add(p->providers, g_strdup(kind));
    return true;
}

static bool
take_keys(Program *p, GError **error)
{
    for (const DoorKeyVariable *v = door_key_variables; v->variable != NULL; v++) {
        char *key = door_take_variable(v->variable);

        if (key != NULL && !take_key(p, v, key, error))
            return false;
    }
    g_ptr_array_add(p->providers, NULL);
    return true;
}

/* A slip in the user's file must not close the door: the prices that are compiled in stay. */
static void
load_prices(PriceTable *table, const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    gsize n = 0;

    if (g_file_get_contents(path, &text, &n, NULL) && !price_table_load(table, text, n, &error))
        log_warn("door", "prices.yaml is left out", log_str("file", path), log_gerror(error));
}

static bool
make_gate(Program *p, GError **error)
{
    g_autofree char *recordings = g_build_filename(p->options.state, "recordings", NULL);
    g_autofree char *prices = g_build_filename(p->options.state, "prices.yaml", NULL);

    p->budgets = budgets_new();
    p->prices = price_table_new(error);
    if (p->prices == NULL || !path_make_private_dir(recordings, 0700, error))
        return false;
    load_prices(p->prices, prices);
    p->gate = gate_new(&(GateSpec){.loop = p->loop,
                                   .budgets = p->budgets,
                                   .prices = p->prices,
                                   .recordings = recordings,
                                   .tell = tell_fact,
                                   .may_tell = may_tell,
                                   .ctx = p});
    return take_keys(p, error);
}

static bool
make_door(Program *p, GError **error)
{
    p->own = own_addresses_new();
    p->dialer = dialer_new(&(DialerSpec){.loop = p->loop, .own = p->own, .servers = p->options.resolver},
                           error);
    if (p->dialer == NULL)
        return false;
    p->door = door_new(&(DoorSpec){.loop = p->loop, .dialer = p->dialer, .facts = p->facts, .gate = p->gate});
    return true;
}

static gboolean
on_stop(gpointer data)
{
    Program *p = data;

    g_main_loop_quit(p->main);
    return G_SOURCE_CONTINUE;
}

static bool
start(Program *p, GError **error)
{
    const Options *o = &p->options;

    umask(0077);
    raise_fd_limit();
    if (!become_user(o, error) || !confine_memory(error) || !path_make_private_dir(o->state, 0700, error))
        return false;
    p->vault = door_vault_open(o->state, error);
    autofd listener = p->vault != NULL ? open_socket(o->socket, error) : -1;

    /* Before the loop: a filter does not reach threads that run already. */
    if (listener < 0 || !confine_process(o->state, error))
        return false;
    p->loop = loop_new(NULL);
    p->facts = fact_log_new();
    p->providers = g_ptr_array_new_with_free_func(g_free);
    if (!make_gate(p, error) || !make_door(p, error))
        return false;
    p->control = door_control_new(
        &(DoorControlSpec){.loop = p->loop,
                           .door = p->door,
                           .facts = p->facts,
                           .gate = p->gate,
                           .budgets = p->budgets,
                           .vault = p->vault,
                           .own_providers = (const char *const *)p->providers->pdata,
                           .listener = g_steal_fd(&listener),
                           .server_uid = o->server_uid},
        error);
    return p->control != NULL;
}

static void
stop(Program *p)
{
    door_control_free(p->control);
    door_free(p->door);
    gate_free(p->gate);
    dialer_free(p->dialer);
    own_addresses_free(p->own);
    budgets_free(p->budgets);
    price_table_free(p->prices);
    fact_log_free(p->facts);
    door_vault_free(p->vault);
    if (p->providers != NULL)
        g_ptr_array_unref(p->providers);
    loop_free(p->loop);
    g_main_loop_unref(p->main);
}

int
main(int argc, char **argv)
{
    Program p = {.main = g_main_loop_new(NULL, FALSE)};
    g_autoptr(GError) error = NULL;
    const char *levels = g_getenv("COOP_LOG");

    if (levels != NULL && !log_set_levels(levels))
        fprintf(stderr, "coop-door: COOP_LOG is malformed\n");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    bool ok = read_options(&p.options, argc, argv, &error) && start(&p, &error);

    if (ok) {
        g_unix_signal_add(SIGTERM, on_stop, &p);
        g_unix_signal_add(SIGINT, on_stop, &p);
        log_info("door", "ready", log_int("providers", p.providers->len - 1));
        /* The supervisor waits for this line. */
        (void)io_write_all(STDOUT_FILENO, "ready\n", strlen("ready\n"));
        g_main_loop_run(p.main);
        log_info("door", "stopping");
        stop(&p);
    } else {
        fprintf(stderr, "coop-door: %s\n", error->message);
    }
    /* What libraries do at exit needs calls that are forbidden here. */
    fflush(NULL);
    _exit(ok ? EXIT_CODE_OK : exit_code_of(error));
}

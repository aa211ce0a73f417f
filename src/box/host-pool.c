/* SPDX-License-Identifier: Apache-2.0 */
/* Clean boxes that wait, by template and only with its usual limits.
 *
 * They are nobody's: no row, no lease, no place in the table; a restarted server does not know
 * them and kills them.  One is given away once and never comes back.  They are made one at a
 * time, only while no caller waits for a box and not while the first command of the last one
 * still starts, so that the pool costs nobody anything.
 *
 * Each has had one run of its shell that does nothing: what a first command would find cold
 * (init's own pages, the names on the way to a program, the user's entry) is warm then. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "box/host-private.h"

enum {
    RECENT_US = 15 * 60 * G_USEC_PER_SEC, /* a template not asked for this long gets none */
    WAIT_TICKS = 10,
    REFILL_MS = 20,
    WARM_MS = 5000,
};

typedef struct PoolLine {
    Template *template;
    KeeperLimits limits;
    gint64 used_us; /* monotonic */
} PoolLine;

static void
line_free(gpointer data)
{
    PoolLine *line = data;

    template_unref(line->template);
    g_free(line);
}

static void
on_refill(LoopTimer *timer)
{
    pool_fill((BoxHost *)(void *)((char *)timer - offsetof(BoxHost, pool.refill)));
}

void
pool_init(BoxHost *host)
{
    host->pool.refill.expired = on_refill;
    host->pool.boxes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)box_unref);
    host->pool.lines = g_ptr_array_new_with_free_func(line_free);
}

void
pool_clear(BoxHost *host)
{
    loop_timer_cancel(host->spec.loop, &host->pool.refill);
    g_clear_pointer(&host->pool.boxes, g_hash_table_unref);
    g_clear_pointer(&host->pool.lines, g_ptr_array_unref);
}

Box *
pool_find(BoxHost *host, const char *id)
{
    return g_hash_table_lookup(host->pool.boxes, id);
}

void
pool_each(BoxHost *host, void (*func)(Box *box, void *data), void *data)
{
    g_autoptr(GList) all = g_hash_table_get_values(host->pool.boxes);

    for (GList *l = all; l != NULL; l = l->next)
        func(l->data, data);
}

/* ---- giving up ---- */

static void
on_killed(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    box_unref(data);
}

static void
discard(Box *box, void *data)
{
    BoxHost *host = box->host;

    host_call_keeper(host, KEEPER_KILL, box, on_killed, box_ref(box));
    g_hash_table_remove(host->pool.boxes, box->row.id);
}

bool
pool_gone(BoxHost *host, const char *id)
{
    return g_hash_table_remove(host->pool.boxes, id);
}

void
pool_trouble(BoxHost *host, const char *id)
{
    Box *box = pool_find(host, id);

    if (box != NULL)
        discard(box, NULL);
}

static void
discard_of(Box *box, void *data)
{
    const PoolLine *line = data;

    if (box->template == line->template)
        discard(box, NULL);
}

/* ---- lines ---- */

static PoolLine *
find_line(BoxHost *host, const char *name)
{
    for (guint i = 0; i < host->pool.lines->len; i++) {
        PoolLine *line = host->pool.lines->pdata[i];

        if (strcmp(line->template->name, name) == 0)
            return line;
    }
    return NULL;
}

static void
drop_line(BoxHost *host, PoolLine *line)
{
    pool_each(host, discard_of, line);
    g_ptr_array_remove(host->pool.lines, line);
}

static PoolLine *
oldest_line(BoxHost *host)
{
    PoolLine *oldest = host->pool.lines->pdata[0];

    for (guint i = 1; i < host->pool.lines->len; i++) {
        PoolLine *line = host->pool.lines->pdata[i];

        if (line->used_us < oldest->used_us)
            oldest = line;
    }
    return oldest;
}

/* The template's line, made or brought to its newest version. */
static PoolLine *
use_line(BoxHost *host, Template *template)
{
    static const KeeperLimits none_asked;
    PoolLine *line = find_line(host, template->name);

    if (line != NULL && line->template != template && strcmp(line->template->hash, template->hash) != 0) {
        drop_line(host, line);
        line = NULL;
    }
    if (line == NULL) {
        if (host->pool.lines->len == HOST_POOL_TEMPLATES)
            drop_line(host, oldest_line(host));
        line = g_new0(PoolLine, 1);
        line->template = template_ref(template);
        /* Without wishes nothing can be refused. */
        (void)wish_limits(&none_asked, template, &host->spec, &line->limits, NULL);
        g_ptr_array_add(host->pool.lines, line);
    }
    line->used_us = clock_mono_us();
    return line;
}

static guint
count_of(BoxHost *host, const PoolLine *line)
{
    GHashTableIter iter;
    gpointer box;
    guint n = 0;

    g_hash_table_iter_init(&iter, host->pool.boxes);
    while (g_hash_table_iter_next(&iter, NULL, &box))
        n += ((Box *)box)->template == line->template;
    return n;
}

/* ---- taking ---- */

static Box *
first_of(BoxHost *host, const PoolLine *line)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, host->pool.boxes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Box *box = value;

        if (box->template == line->template && box->link_closed_us == 0)
            return box;
    }
    return NULL;
}

Box *
pool_take(BoxHost *host, Template *template, const KeeperLimits *limits)
{
    if (host->spec.pool == 0)
        return NULL;
    PoolLine *line = use_line(host, template);

    if (memcmp(&line->limits, limits, sizeof *limits) != 0)
        return NULL;
    Box *box = first_of(host, line);

    if (box == NULL)
        return NULL;
    box_ref(box);
    g_hash_table_remove(host->pool.boxes, box->row.id);
    box->pooled = false;
    return box;
}

/* ---- filling ---- */

static bool
warm_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    return true;
}

static void
warm_ended(Run *run, const RunEnd *end, void *ctx)
{
}

/* As its user, with nothing of the template's environment: that might name files to be read. */
static void
warm_up(Box *box)
{
    static const char *const argv[] = {"/bin/sh", "-c", ":", NULL};
    static const char *const no_env[] = {NULL};
    static const RunSink sink = {.output = warm_output, .ended = warm_ended};
    const Template *t = box->template;
    RunSpec spec = {.argv = argv, .env = no_env, .timeout_ms = WARM_MS, .sink = &sink};

    spec.user = t->user != NULL ? t->user : "";
    spec.cwd = t->workdir != NULL ? t->workdir : "";
    Run *run = box_link_start(box->link, &spec, NULL);

    if (run != NULL)
        run_unref(run);
}

static void
on_pool_made(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    Box *box = data;
    BoxHost *host = box->host;
    g_autoptr(GError) failure = error != NULL ? g_error_copy(error) : NULL;

    FAILPOINT("box-pool-made");
    host->pool.making = NULL;
    if (error == NULL && !box_attach(box, answer, fds, NULL, &failure))
        host_call_keeper(host, KEEPER_KILL, box, on_killed, box_ref(box));
    if (failure == NULL) {
        g_hash_table_insert(host->pool.boxes, box->row.id, box_ref(box));
        warm_up(box);
        pool_fill(host);
    } else if (!host->closed) {
        host->pool.wait_ticks = WAIT_TICKS;
        log_warn("box", "the pool could not be filled", log_gerror(failure));
    }
    box_unref(box);
}

static void
make_one(BoxHost *host, PoolLine *line)
{
    Box *box = box_new(host, NULL);
    KeeperRequest request;

    box->pooled = true;
    box->template = template_ref(line->template);
    host->pool.making = box;
    host_fill_create(host, line->template, &line->limits, box->row.id, &request);
    keeper_client_call(host->keeper, &request, on_pool_made, box);
}

static bool
may_fill(BoxHost *host)
{
    BoxHostStats stats;

    if (host->spec.pool == 0 || host->pool.making != NULL || host->pool.wait_ticks > 0 || host->off != NULL ||
        host->keeper == NULL || !keeper_client_is_ready(host->keeper))
        return false;
    box_host_stats(host, &stats);
    if (stats.creating > 0 || stats.live + stats.pooled >= host->spec.boxes_max)
        return false;
    return host_check_free(host, NULL);
}

void
pool_fill(BoxHost *host)
{
    PoolLine *want = NULL;

    if (host->closed)
        return;
    for (guint i = 0; i < host->pool.lines->len; i++) {
        PoolLine *line = host->pool.lines->pdata[i];

        if (count_of(host, line) < host->spec.pool && (want == NULL || line->used_us > want->used_us))
            want = line;
    }
    if (want != NULL && may_fill(host))
        make_one(host, want);
}

void
pool_fill_soon(BoxHost *host)
{
    if (host->spec.pool > 0)
        loop_timer_set(host->spec.loop, &host->pool.refill, REFILL_MS);
}

void
pool_warm(BoxHost *host)
{
    if (host->spec.pool == 0 || host->spec.default_template == NULL)
        return;
    g_autoptr(Template) template = template_store_get(host->spec.templates, host->spec.default_template,
                                                      NULL);

    if (template != NULL)
        use_line(host, template);
    pool_fill(host);
}

void
pool_tick(BoxHost *host)
{
    gint64 now_us = clock_mono_us();

    if (host->pool.wait_ticks > 0)
        host->pool.wait_ticks--;
    for (guint i = host->pool.lines->len; i > 0; i--) {
        PoolLine *line = host->pool.lines->pdata[i - 1];

        if (now_us - line->used_us > RECENT_US)
            drop_line(host, line);
    }
    pool_fill(host);
}

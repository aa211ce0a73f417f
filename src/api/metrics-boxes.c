/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"

#include "api/state.h"

/* ---- what boxes use ---- */

typedef struct Gathering {
    ApiCall *call; /* with a reference to its request */
    void (*done)(ApiCall *call, const BoxUse *use);
    guint waiting; /* for so many boxes, and one for the asking itself */
    BoxUse sum;
} Gathering;

static void
one_less(Gathering *g)
{
    if (--g->waiting > 0)
        return;
    /* Once we are being closed there is nobody to tell, and no host to ask. */
    if (!http_request_is_gone(g->call->request))
        g->done(g->call, &g->sum);
    http_request_unref(g->call->request);
    g_free(g);
}

/* A box that cannot tell, because it is ending, uses nothing. */
static void
on_use(Box *box, const BoxUse *use, const GError *error, void *data)
{
    Gathering *g = data;

    if (error == NULL) {
        g->sum.memory_bytes += use->memory_bytes;
        g->sum.disk_bytes += use->disk_bytes;
        g->sum.cpu_us += use->cpu_us;
        g->sum.pids += use->pids;
    }
    one_less(g);
}

static void
ask(Box *box, void *data)
{
    Gathering *g = data;

    g->waiting++;
    box_use(box, on_use, g);
}

void
metrics_gather_use(ApiCall *call, void (*done)(ApiCall *call, const BoxUse *use))
{
    Gathering *g = g_new0(Gathering, 1);

    *g = (Gathering){.call = call, .done = done, .waiting = 1};
    http_request_ref(call->request);
    box_host_each(call->api->boxes, NULL, ask, g);
    one_less(g);
}

/* ---- the lines ---- */

typedef enum Shown { SHOWN_CREATING, SHOWN_READY, SHOWN_BUSY, SHOWN_PAUSED, SHOWN_STOPPING, SHOWN_MAX } Shown;

static void
count_state(Box *box, void *data)
{
    static const Shown shown[BOX_STATE_MAX] = {
        [BOX_CREATING] = SHOWN_CREATING, [BOX_READY] = SHOWN_READY,         [BOX_PAUSED] = SHOWN_PAUSED,
        [BOX_STOPPING] = SHOWN_STOPPING, [BOX_TERMINATED] = SHOWN_STOPPING, [BOX_ERROR] = SHOWN_STOPPING,
    };
    guint *counts = data;
    BoxInfo info;

    box_info(box, &info);
    counts[info.busy ? SHOWN_BUSY : shown[info.state]]++;
}

static void
put_states(GString *out, BoxHost *host)
{
    static const char *const names[SHOWN_MAX] = {"creating", "ready", "busy", "paused", "stopping"};
    guint counts[SHOWN_MAX] = {0};

    box_host_each(host, NULL, count_state, counts);
    metric_put_meta(out, METRIC_GAUGE, "coop_boxes", "Boxes that live, by state");
    for (guint i = 0; i < SHOWN_MAX; i++)
        g_string_append_printf(out, "coop_boxes{state=\"%s\"} %u\n", names[i], counts[i]);
}

static void
put_lives(GString *out, const BoxHostStats *s)
{
    metric_put_number(out, METRIC_GAUGE, "coop_boxes_pooled", "Clean boxes that wait for somebody",
                      s->pooled);
    metric_put_meta(out, METRIC_COUNTER, "coop_box_creates_total", "Boxes asked for, by outcome");
    g_string_append_printf(out,
                           "coop_box_creates_total{outcome=\"created\"} %" G_GUINT64_FORMAT "\n"
                           "coop_box_creates_total{outcome=\"failed\"} %" G_GUINT64_FORMAT "\n",
                           s->created, s->failed);
    metric_put_number(out, METRIC_COUNTER, "coop_boxes_from_pool_total", "Boxes that came from the pool",
                      s->from_pool);
    metric_put_meta(out, METRIC_COUNTER, "coop_boxes_ended_total", "Boxes that were ended, by reason");
    g_string_append_printf(out,
                           "coop_boxes_ended_total{reason=\"expired\"} %" G_GUINT64_FORMAT "\n"
                           "coop_boxes_ended_total{reason=\"killed\"} %" G_GUINT64_FORMAT "\n",
                           s->expired, s->killed);
    metric_put_number(out, METRIC_GAUGE, "coop_keeper_ready", "1 while the keeper can be reached",
                      s->keeper_ready);
}

static void
put_runs(GString *out, const BoxHostStats *s)
{
    guint64 ended = 0;

    metric_put_number(out, METRIC_COUNTER, "coop_runs_started_total", "Commands started", s->runs_started);
    metric_put_meta(out, METRIC_COUNTER, "coop_runs_total",
                    "Commands that have ended, by outcome and reason");
    g_string_append_printf(out, "coop_runs_total{outcome=\"ok\",reason=\"exit\"} %" G_GUINT64_FORMAT "\n",
                           s->runs_by_reason[RUN_EXIT] - s->runs_failed);
    for (guint i = RUN_EXIT; i < RUN_REASON_MAX; i++) {
        g_string_append_printf(out,
                               "coop_runs_total{outcome=\"failed\",reason=\"%s\"} %" G_GUINT64_FORMAT "\n",
                               run_reason_name(i), i == RUN_EXIT ? s->runs_failed : s->runs_by_reason[i]);
        ended += s->runs_by_reason[i];
    }
    g_string_append_printf(out,
                           "# HELP coop_run_seconds Time that commands took\n"
                           "# TYPE coop_run_seconds summary\n"
                           "coop_run_seconds_sum %.6f\n"
                           "coop_run_seconds_count %" G_GUINT64_FORMAT "\n",
                           (double)s->run_us / G_USEC_PER_SEC, ended);
}

void
metrics_put_boxes(GString *out, BoxHost *host, const BoxUse *use)
{
    BoxHostStats stats;

    box_host_stats(host, &stats);
    put_states(out, host);
    put_lives(out, &stats);
    put_runs(out, &stats);
    metric_put_number(out, METRIC_GAUGE, "coop_box_memory_bytes", "Memory of all boxes", use->memory_bytes);
    metric_put_number(out, METRIC_GAUGE, "coop_box_disk_bytes", "Disk of all boxes", use->disk_bytes);
    metric_put_number(out, METRIC_GAUGE, "coop_box_processes", "Processes of all boxes", use->pids);
    metric_put_meta(out, METRIC_GAUGE, "coop_box_cpu_seconds", "Processor time of the boxes that live");
    g_string_append_printf(out, "coop_box_cpu_seconds %.6f\n", (double)use->cpu_us / G_USEC_PER_SEC);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/probe.h"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/spawn.h"
#include "daemon/probe-private.h"

enum {
    PROBE_CHILD_MS = 10000,
    PROBE_ANSWER_MAX = 4096, /* bytes a child may say: less than a pipe holds, so it never waits */
    PROBE_FILE_MAX = 64 * 1024,
};

/* ---- one result ---- */

const char *
probe_state_name(ProbeState state)
{
    static const char *const names[PROBE_STATE_MAX] = {"ok", "degraded", "missing"};

    return names[state];
}

const char *
probe_need_name(ProbeNeed need)
{
    static const char *const names[PROBE_NEED_MAX] = {"needed", "wanted", "advice"};

    return names[need];
}

void
probe_set(ProbeResult *r, ProbeState state, const char *fmt, ...)
{
    va_list ap;

    r->state = state;
    g_free(r->detail);
    va_start(ap, fmt);
    r->detail = g_strdup_vprintf(fmt, ap);
    va_end(ap);
}

void
probe_fix(const ProbeContext *ctx, ProbeResult *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *command = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_free(r->fix);
    r->fix = g_strconcat(ctx->real_root ? "" : "sudo ", command, NULL);
}

void
probe_fix_text(ProbeResult *r, const char *fmt, ...)
{
    va_list ap;

    g_free(r->fix);
    va_start(ap, fmt);
    r->fix = g_strdup_vprintf(fmt, ap);
    va_end(ap);
}

static void
result_free(void *data)
{
    ProbeResult *r = data;

    g_free(r->detail);
    g_free(r->fix);
    g_free(r);
}

bool
probe_all_needed(const GPtrArray *results)
{
    for (guint i = 0; i < results->len; i++) {
        const ProbeResult *r = results->pdata[i];

        if (r->need == PROBE_NEEDED && r->state == PROBE_MISSING)
            return false;
    }
    return true;
}

/* ---- what probes read ---- */

char *
probe_read(const ProbeContext *ctx, const char *path)
{
    g_autofree char *full = g_strconcat(ctx->root, path, NULL);
    g_autofree char *text = g_malloc(PROBE_FILE_MAX + 1);
    autofd fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? io_read_full(fd, text, PROBE_FILE_MAX) : -1;

    if (n < 0)
        return NULL;
    text[n] = '\0';
    return g_strdup(g_strchomp(text));
}

gint64
probe_read_number(const ProbeContext *ctx, const char *path, gint64 missing)
{
    g_autofree char *text = probe_read(ctx, path);
    gint64 n;

    if (text == NULL || !g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, &n, NULL))
        return missing;
    return n;
}

void
probe_context_init(ProbeContext *ctx, const char *root, const char *home)
{
    *ctx = (ProbeContext){.root = root, .home = home, .uid = geteuid()};
    const struct passwd *user = getpwuid(ctx->uid);
    g_autofree char *map = probe_read(ctx, "/proc/self/uid_map");
    guint inside, outside, count;

    ctx->user = user != NULL ? g_strdup(user->pw_name) : g_strdup_printf("%u", ctx->uid);
    /* The map of the first user namespace is the identity over all ids. */
    bool initial = map != NULL && sscanf(map, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
                   outside == 0 && count == G_MAXUINT32;
    ctx->real_root = ctx->uid == 0 && initial;
}

void
probe_context_clear(ProbeContext *ctx)
{
    g_free(ctx->user);
}

/* ---- the child's side ---- */

bool
probe_child(const char *name, const char *home)
{
    for (size_t i = 0; i < n_probes; i++) {
        ProbeResult r = {0};
        ProbeContext ctx;

        if (strcmp(probes[i].name, name) != 0)
            continue;
        probe_context_init(&ctx, "", home);
        probes[i].run(&ctx, &probes[i], &r);
        g_autofree char *answer = g_strdup_printf("%d\n%s\n%s\n", (int)r.state, r.detail,
                                                  r.fix != NULL ? r.fix : "");
        (void)io_write_all(STDOUT_FILENO, answer, strlen(answer)); /* silence is an answer too */
        probe_context_clear(&ctx);
        g_free(r.detail);
        g_free(r.fix);
        return true;
    }
    return false;
}

/* ---- the parent's side ---- */

typedef struct ProbeJob {
    ProbeRun *run;
    ProbeResult *result;
    Child *child;
    int fd;
    guint timer;
} ProbeJob;

struct ProbeRun {
    char *program;
    char *home;
    guint child_ms;
    ProbeDone done;
    void *data;
    GPtrArray *results;
    ProbeJob *jobs; /* one for each probe; most are never used */
    guint open;
    guint idle;
};

static gboolean
on_all_done(gpointer data)
{
    ProbeRun *run = data;

    run->idle = 0;
    run->done(run->results, run->data);
    return G_SOURCE_REMOVE;
}

static void
job_done(ProbeJob *job)
{
    ProbeRun *run = job->run;

    if (job->timer != 0)
        g_source_remove(job->timer);
    job->timer = 0;
    child_free(job->child);
    job->child = NULL;
    close(job->fd);
    job->fd = -1;
    if (--run->open == 0)
        run->idle = g_idle_add(on_all_done, run);
}

static void
read_answer(ProbeJob *job, ChildExit how)
{
    char text[PROBE_ANSWER_MAX + 1];
    ssize_t n = io_read_full(job->fd, text, PROBE_ANSWER_MAX);
    ProbeResult *r = job->result;

    text[MAX(n, 0)] = '\0';
    g_auto(GStrv) lines = g_strsplit(text, "\n", 4);
    guint64 state;
    if (g_strv_length(lines) < 3 ||
        !g_ascii_string_to_unsigned(lines[0], 10, 0, PROBE_STATE_MAX - 1, &state, NULL)) {
        probe_set(r, PROBE_MISSING, "the trial ended with %s %d and no answer",
                  how.signalled ? "signal" : "code", how.value);
        probe_fix_text(r, "run '%s __probe %s %s' to see why", job->run->program, r->name, job->run->home);
        return;
    }
    probe_set(r, (ProbeState)state, "%s", lines[1]);
    if (lines[2][0] != '\0')
        probe_fix_text(r, "%s", lines[2]);
}

static void
on_child_exit(Child *child, ChildExit how, void *data)
{
    ProbeJob *job = data;

    read_answer(job, how);
    job_done(job);
}

static gboolean
on_child_deadline(gpointer data)
{
    ProbeJob *job = data;

    job->timer = 0;
    (void)child_signal(job->child, SIGKILL, NULL); /* it may just have ended; its exit is on the way */
    return G_SOURCE_REMOVE;
}

static bool
job_start(ProbeJob *job, const char *name, GError **error)
{
    const char *const argv[] = {job->run->program, "__probe", name, job->run->home, NULL};
    SpawnSpec spec = SPAWN_SPEC_INIT;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe");
    autofd write_end = fds[1];
    job->fd = fds[0];
    spec.argv = argv;
    spec.stdout_fd = write_end;
    job->child = child_spawn(&spec, on_child_exit, job, error);
    if (job->child == NULL)
        return false;
    job->timer = g_timeout_add(job->run->child_ms, on_child_deadline, job);
    return true;
}

static void
run_in_child(ProbeRun *run, size_t i, ProbeResult *r)
{
    ProbeJob *job = &run->jobs[i];
    g_autoptr(GError) error = NULL;

    *job = (ProbeJob){.run = run, .result = r, .fd = -1};
    if (job_start(job, probes[i].name, &error)) {
        run->open++;
        return;
    }
    probe_set(r, PROBE_MISSING, "could not be tried: %s", error->message);
    probe_fix_text(r, "run '%s __probe %s %s' to see why", run->program, r->name, run->home);
    if (job->fd >= 0)
        close(job->fd);
    job->fd = -1;
}

ProbeRun *
probe_run_new(const ProbeSpec *spec, ProbeDone done, void *data)
{
    ProbeRun *run = g_new0(ProbeRun, 1);
    ProbeContext ctx;

    *run = (ProbeRun){
        .program = g_strdup(spec->program),
        .home = g_strdup(spec->home),
        .child_ms = spec->child_ms != 0 ? spec->child_ms : PROBE_CHILD_MS,
        .done = done,
        .data = data,
    };
    run->results = g_ptr_array_new_with_free_func(result_free);
    run->jobs = g_new0(ProbeJob, n_probes);
    probe_context_init(&ctx, "", run->home);
    for (size_t i = 0; i < n_probes; i++) {
        ProbeResult *r = g_new0(ProbeResult, 1);

        *r = (ProbeResult){.name = probes[i].name, .need = probes[i].need};
        g_ptr_array_add(run->results, r);
        if (probes[i].in_child)
            run_in_child(run, i, r);
        else
            probes[i].run(&ctx, &probes[i], r);
    }
    probe_context_clear(&ctx);
    if (run->open == 0)
        run->idle = g_idle_add(on_all_done, run);
    return run;
}

void
probe_run_free(ProbeRun *run)
{
    if (run == NULL)
        return;
    for (size_t i = 0; i < n_probes; i++) {
        ProbeJob *job = &run->jobs[i];

        if (job->child == NULL)
            continue;
        (void)child_signal(job->child, SIGKILL, NULL); /* nobody waits for its answer */
        if (job->timer != 0)
            g_source_remove(job->timer);
        child_free(job->child);
        close(job->fd);
    }
    if (run->idle != 0)
        g_source_remove(run->idle);
    g_ptr_array_unref(run->results);
    g_free(run->jobs);
    g_free(run->program);
    g_free(run->home);
    g_free(run);
}

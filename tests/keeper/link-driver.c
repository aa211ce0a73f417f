/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of one box and one command, which may be killed anywhere and started again:
 *
 *     link-driver SOCKET FOLDER LINES
 *
 * asks the keeper for a box unless it has one, runs `probe lines LINES` in it unless that runs
 * already, waits for its end, writes "CODE BYTES" to FOLDER/end before it lets init forget, and
 * ends the box.  Output is in FOLDER/logs.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/id.h"
#include "base/path.h"
#include "box/keeper-client.h"
#include "box/link.h"

typedef struct Driver {
    Loop *loop;
    GMainLoop *main;
    KeeperClient *keeper;
    BoxLink *link;
    Run *run;
    const char *folder, *lines;
    char *row, *end;
    char box[KEEPER_ID_LEN + 1];
    bool over;
} Driver;

static void
fail(const char *what)
{
    fprintf(stderr, "link-driver: %s\n", what);
    _exit(1);
}

static void
on_killed(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    if (error != NULL)
        fail(error->message);
    g_main_loop_quit(((Driver *)data)->main);
}

static void
end_box(Driver *d)
{
    KeeperRequest request = {.verb = KEEPER_KILL};

    d->over = true;
    memcpy(request.box, d->box, KEEPER_ID_LEN);
    keeper_client_call(d->keeper, &request, on_killed, d);
}

static void
write_text(const char *path, const char *text)
{
    g_autoptr(GError) error = NULL;

    if (!path_write_atomic(path, text, strlen(text), 0600, &error))
        fail(error->message);
}

static void
on_ended(BoxLink *link, Run *run, void *ctx)
{
    Driver *d = ctx;
    const RunEnd *end = run_end(run);
    g_autofree char *text = g_strdup_printf("%s %d %" G_GUINT64_FORMAT "\n", run_reason_name(end->reason),
                                            end->code, end->out_bytes);

    /* It was written before the kill; the box is being ended already. */
    if (d->over)
        return;
    write_text(d->end, text);
    box_link_forget(link, run);
    end_box(d);
}

/* The row of a run is written behind its start, as a busy server does: one that was killed between
 * finds it in the box. */
static void
note_run(Driver *d, Run *run)
{
    g_autofree char *text = g_strdup_printf("%u\n", run_id(run));

    write_text(d->row, text);
}

static void
on_found(BoxLink *link, Run *run, void *ctx)
{
    Driver *d = ctx;

    d->run = run_ref(run);
    note_run(d, run);
}

static gboolean
start_unless_it_runs(gpointer data)
{
    Driver *d = data;
    const char *const argv[] = {"/bin/probe", "lines", d->lines, NULL};
    RunSpec spec = {.argv = argv, .user = "0", .cwd = "/"};
    g_autoptr(GError) error = NULL;

    if (d->run != NULL || d->over || g_file_test(d->row, G_FILE_TEST_EXISTS))
        return G_SOURCE_REMOVE;
    d->run = box_link_start(d->link, &spec, &error);
    if (d->run == NULL)
        fail(error->message);
    note_run(d, d->run);
    return G_SOURCE_REMOVE;
}

/* What init has is told right after this. */
static void
on_ready(BoxLink *link, void *ctx)
{
    g_idle_add(start_unless_it_runs, ctx);
}

static void
on_closed(BoxLink *link, const GError *error, void *ctx)
{
    if (error != NULL || !((Driver *)ctx)->over)
        fail(error != NULL ? error->message : "the box is gone");
}

static void
attach(Driver *d, const KeeperAnswer *answer, const int fds[KEEPER_FDS])
{
    g_autofree char *logs = g_build_filename(d->folder, "logs", NULL);
    g_autofree char *row = NULL;
    BoxLinkRun known = {0};
    BoxLinkSpec spec = {
        .loop = d->loop,
        .fd = fds[KEEPER_FD_CHANNEL],
        .folder = logs,
        .runs = &known,
        .events = {.ready = on_ready, .found = on_found, .ended = on_ended, .closed = on_closed},
        .ctx = d};
    g_autoptr(GError) error = NULL;

    close(fds[KEEPER_FD_PIDFD]);
    memcpy(d->box, answer->box, KEEPER_ID_LEN);
    if (g_file_get_contents(d->row, &row, NULL, NULL)) {
        known.run = (guint32)g_ascii_strtoull(row, NULL, 10);
        spec.n_runs = 1;
        spec.last_run = known.run;
    }
    d->link = box_link_new(&spec, &error);
    if (d->link == NULL)
        fail(error->message);
    if (g_file_test(d->end, G_FILE_TEST_EXISTS))
        d->over = true;
}

static void
on_box(const KeeperAnswer *answer, const int fds[KEEPER_FDS], void *ctx)
{
    attach(ctx, answer, fds);
}

static void
on_gone(const KeeperAnswer *answer, void *ctx)
{
    fail("the box ended by itself");
}

static void
on_created(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    if (error != NULL)
        fail(error->message);
    attach(data, answer, fds);
}

static void
on_listed(const KeeperAnswer *hello, void *ctx)
{
    Driver *d = ctx;
    KeeperRequest request = {
        .verb = KEEPER_CREATE,
        .hostname = "box",
        .layers = {"00aa"},
        .n_layers = 1,
        .limits = {
            .memory_bytes = 64 << 20, .disk_bytes = 64 << 20, .inodes = 4096, .pids = 64, .cpu_milli = 1000}};

    if (d->link != NULL && d->over)
        end_box(d);
    if (d->link != NULL)
        return;
    id_new_box(d->box);
    memcpy(request.box, d->box, KEEPER_ID_LEN);
    keeper_client_call(d->keeper, &request, on_created, d);
}

static void
on_lost(void *ctx)
{
    fail("the keeper is away");
}

int
main(int argc, char **argv)
{
    Driver d = {.loop = loop_new(NULL), .main = g_main_loop_new(NULL, FALSE)};
    KeeperClientSpec spec = {.loop = d.loop,
                             .events = {.box = on_box, .gone = on_gone, .listed = on_listed, .lost = on_lost},
                             .ctx = &d};

    if (argc != 4)
        return 2;
    spec.socket = argv[1];
    d.folder = argv[2];
    d.lines = argv[3];
    d.row = g_build_filename(d.folder, "run", NULL);
    d.end = g_build_filename(d.folder, "end", NULL);
    d.keeper = keeper_client_new(&spec);
    g_main_loop_run(d.main);
    box_link_free(d.link);
    keeper_client_free(d.keeper);
    g_clear_pointer(&d.run, run_unref);
    loop_free(d.loop);
    g_main_loop_unref(d.main);
    g_free(d.row);
    g_free(d.end);
    return 0;
}

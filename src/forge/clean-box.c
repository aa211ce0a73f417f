/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/clean-box.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "box/files.h"
#include "forge/forge-private.h"
#include "forge/tree-feed.h"
#include "forge/workspace-private.h"

enum {
    EXIT_NO_GIT = 40,
    FOLDER_MODE = 0755,
    LIFE_EXTRA_S = 300,
    COMPARE_MS = 5 * 60 * 1000,
    MS_PER_S = 1000
};

/* Nobody's key: only an admin sees these boxes. */
static const char owner[] = "checks";
static const char folder[] = "checkout";

struct CleanBox {
    LoopTimer timer; /* first: the loop hands back its address; of all commands together */
    guint refs;      /* the owner's, and each answer that is waited for */
    CleanBoxSpec spec;
    char *lease, *tree, *links;
    CleanBoxEvents events; /* NULL members: ended or cancelled */
    void *ctx;
    bool over;
    bool guessed; /* the template that was guessed is asked for */
    Box *box;     /* NULL: none yet */
    TreeFeed *feed;
    bool compared;

    guint next; /* command */
    bool skip;  /* a setup failed */
    Run *run;   /* under way */
    CheckOutput *output;
    gint64 started_us, started_mono_us;
};

static void next_command(CleanBox *c);
static void ask_for_box(CleanBox *c);

static void
clean_box_unref(CleanBox *c)
{
    if (--c->refs > 0)
        return;
    g_clear_pointer(&c->box, box_unref);
    g_free(c->lease);
    g_free(c->tree);
    g_free(c->links);
    g_free(c);
}

static void
on_gone(Box *box, const GError *error, void *data)
{
    if (error != NULL)
        log_warn("checks", "a box of checks cannot be ended", log_gerror(error));
}

/* Everything but the memory goes. */
static void
let_go(CleanBox *c)
{
    c->over = true;
    loop_timer_cancel(c->spec.forge->spec.loop, &c->timer);
    if (c->feed != NULL)
        tree_feed_cancel(g_steal_pointer(&c->feed));
    if (c->run != NULL) {
        run_abandon(c->run);
        g_clear_pointer(&c->run, run_unref);
    }
    g_clear_pointer(&c->output, check_output_free);
    if (c->box != NULL)
        box_kill(c->box, "checked", "coop", on_gone, NULL);
}

static void
finish(CleanBox *c, const GError *error)
{
    if (c->over)
        return;
    let_go(c);
    c->events.done(error, c->ctx);
    clean_box_unref(c);
}

void
clean_box_cancel(CleanBox *c)
{
    if (c == NULL)
        return;
    let_go(c);
    clean_box_unref(c);
}

/* ---- commands ---- */

static const char *
conclusion_of(const RunEnd *end)
{
    if (end->reason == RUN_TIMEOUT)
        return "timed_out";
    return end->reason == RUN_EXIT && end->code == 0 ? "success" : "failure";
}

static void
tell_result(CleanBox *c, CommandResult *result)
{
    const PlanCommand *command = c->spec.plan->commands->pdata[c->next];

    result->started_us = c->started_us;
    result->ended_us = clock_wall_us();
    check_output_end(c->output, &result->output);
    g_clear_pointer(&c->output, check_output_free);
    c->events.ended(c->next++, result, c->ctx);
    if (command->is_setup && strcmp(result->conclusion, "success") != 0)
        c->skip = true;
    check_output_end_clear(&result->output);
}

static void
skip_rest(CleanBox *c)
{
    const CommandResult skipped = {.conclusion = "skipped", .reason = "skipped", .exit_code = -1};

    while (!c->over && c->next < c->spec.plan->commands->len)
        c->events.ended(c->next++, &skipped, c->ctx);
}

static bool
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    CleanBox *c = ctx;

    check_output_add(c->output, stream == STREAM_STDERR ? REPORT_STDERR : REPORT_STDOUT, bytes, n);
    return true;
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    CleanBox *c = ctx;
    CommandResult result = {.conclusion = conclusion_of(end),
                            .reason = run_reason_name(end->reason),
                            .exit_code = run_end_exit_code(end),
                            .duration_us = end->duration_us};

    g_clear_pointer(&c->run, run_unref);
    FAILPOINT("checks-command-ended");
    if (end->reason == RUN_STOPPED || end->reason == RUN_LOST) {
        g_autoptr(GError) error = NULL;

        err_set(&error, ERR_INTERNAL, "the box ended while a command ran");
        finish(c, error);
        return;
    }
    c->refs++;
    tell_result(c, &result);
    next_command(c);
    clean_box_unref(c);
}

static bool
start_command(CleanBox *c, const PlanCommand *command, GError **error)
{
    static const RunSink sink = {on_output, on_ended, NULL};
    static const char script[] = "cd -- \"$0\" && exec /bin/sh -c \"$1\"";
    g_autofree char *place = g_build_filename(folder, command->workdir, NULL);
    g_autoptr(GPtrArray) env = g_ptr_array_new();
    RunSpec spec = {.argv = (const char *const[]){"/bin/sh", "-c", script, place, command->run, NULL},
                    .user = "",
                    .cwd = "",
                    .timeout_ms = command->timeout_s * MS_PER_S,
                    .sink = &sink,
                    .ctx = c};

    g_ptr_array_add(env, (gpointer)(guintptr) "CI=true");
    for (char **one = command->env; *one != NULL; one++)
        g_ptr_array_add(env, *one);
    g_ptr_array_add(env, NULL);
    spec.env = (const char *const *)env->pdata;
    c->output = check_output_new();
    c->started_us = clock_wall_us();
    c->started_mono_us = clock_mono_us();
    c->run = box_start(c->box, &spec, "coop", error);
    return c->run != NULL;
}

static void
next_command(CleanBox *c)
{
    g_autoptr(GError) error = NULL;

    if (c->over)
        return;
    if (c->skip)
        skip_rest(c);
    if (c->over)
        return;
    if (c->next == c->spec.plan->commands->len) {
        finish(c, NULL);
        return;
    }
    c->events.began(c->next, c->ctx);
    FAILPOINT("checks-command-began");
    if (c->over)
        return;
    if (!start_command(c, c->spec.plan->commands->pdata[c->next], &error))
        finish(c, error);
}

/* The time of the whole suite: what runs has hung. */
static void
on_time(LoopTimer *timer)
{
    CleanBox *c = (CleanBox *)timer;
    g_autoptr(GError) error = NULL;
    CommandResult result = {.conclusion = "timed_out", .reason = "timeout", .exit_code = 124};

    if (c->run == NULL) {
        err_set(&error, ERR_TIMEOUT, "the box was not ready in time");
        finish(c, error);
        return;
    }
    c->refs++;
    run_abandon(c->run);
    g_clear_pointer(&c->run, run_unref);
    result.duration_us = (guint64)(clock_mono_us() - c->started_mono_us);
    tell_result(c, &result);
    c->skip = true;
    next_command(c);
    clean_box_unref(c);
}

/* ---- the tree ---- */

static void
begin_commands(CleanBox *c, bool compared)
{
    BoxInfo info;

    box_info(c->box, &info);
    c->refs++;
    c->events.filled(&info, compared, c->ctx);
    next_command(c);
    clean_box_unref(c);
}

static void
on_compared(int code, const char *out, const char *err, const GError *error, void *data)
{
    CleanBox *c = data;
    g_autoptr(GError) failed = error != NULL ? g_error_copy(error) : NULL;
    g_autofree char *tree = g_strstrip(g_strdup(out));

    if (failed == NULL && code != 0 && code != EXIT_NO_GIT) {
        failed = box_call_error("look at the tree in the box", code, err);
        failed->code = ERR_INTERNAL; /* not the repository's mistake */
    }
    if (failed == NULL && code == 0 && strcmp(tree, c->tree) != 0)
        err_set(&failed, ERR_INTERNAL, "the tree in the box is %.*s, not %s", GIT_OID_LEN, tree, c->tree);
    if (c->over)
        ;
    else if (failed != NULL)
        finish(c, failed);
    else
        begin_commands(c, code == 0);
    clean_box_unref(c);
}

/* No attribute of the tree may change what is compared: those in `info` come first. */
static void
compare(CleanBox *c)
{
    static const char script[] =
        "command -v git >/dev/null || exit 40\n"
        "cd -- \"$0\" || exit 1\n"
        "export GIT_DIR=../checkout-compared GIT_WORK_TREE=. GIT_CONFIG_NOSYSTEM=1 "
        "GIT_CONFIG_GLOBAL=/dev/null\n"
        "git init -q --template= && mkdir -p $GIT_DIR/info || exit 1\n"
        "echo '* -text -ident !eol !filter !working-tree-encoding' >$GIT_DIR/info/attributes\n"
        "git -c core.autocrlf=false -c core.fileMode=true -c core.symlinks=true -c core.excludesFile= "
        "-c advice.addEmbeddedRepo=false add -A -f . && git update-index --index-info && git write-tree\n"
        "code=$?\n"
        "rm -rf $GIT_DIR\n"
        "exit $code\n";
    const BoxCall call = {.argv = (const char *const[]){"/bin/sh", "-c", script, folder, NULL},
                          .input = c->links,
                          .timeout_ms = COMPARE_MS};

    c->refs++;
    box_call(c->box, &call, "coop", on_compared, c);
}

static void
on_fed(const GError *error, void *data)
{
    CleanBox *c = data;

    c->feed = NULL;
    if (error != NULL) {
        finish(c, error);
        return;
    }
    FAILPOINT("checks-filled");
    compare(c);
}

static void
on_folder(const GError *error, void *data)
{
    CleanBox *c = data;
    g_autoptr(GError) failed = error != NULL ? g_error_copy(error) : NULL;
    const TreeFeedSpec spec = {.forge = c->spec.forge,
                               .repo = c->spec.repo,
                               .box = c->box,
                               .tree = c->tree,
                               .path = folder,
                               .time_s = c->spec.time_s};

    if (!c->over && failed == NULL)
        c->feed = tree_feed_start(&spec, on_fed, c, &failed);
    if (!c->over && failed != NULL)
        finish(c, failed);
    clean_box_unref(c);
}

/* ---- the box ---- */

static void
on_created(Box *box, bool created, const GError *error, void *data)
{
    CleanBox *c = data;

    if (error == NULL)
        c->box = box_ref(box);
    if (c->over) {
        if (c->box != NULL)
            box_kill(c->box, "checked", "coop", on_gone, NULL);
    } else if (error != NULL && c->guessed &&
               (err_kind(error) == ERR_UNAVAILABLE || err_kind(error) == ERR_NOT_FOUND)) {
        c->guessed = false;
        ask_for_box(c);
    } else if (error != NULL) {
        finish(c, error);
    } else {
        FAILPOINT("checks-boxed");
        c->refs++;
        box_file_mkdir(&(BoxFileSpec){.box = box, .actor = "coop"}, folder, FOLDER_MODE, on_folder, c);
    }
    clean_box_unref(c);
}

static void
ask_for_box(CleanBox *c)
{
    const CheckPlan *plan = c->spec.plan;
    BoxSpec spec = {.owner = owner,
                    .actor = "coop",
                    .template = plan->template_is_guess && !c->guessed ? NULL : plan->template,
                    .lease = c->lease,
                    .name = "checks",
                    .lifetime_ms = (gint64)(plan->timeout_s + LIFE_EXTRA_S) * MS_PER_S,
                    .idle_ms = (gint64)(plan->timeout_s + LIFE_EXTRA_S) * MS_PER_S};

    c->refs++;
    box_host_create(c->spec.boxes, &spec, on_created, c);
}

CleanBox *
clean_box_start(const CleanBoxSpec *spec, const CleanBoxEvents *events, void *ctx)
{
    CleanBox *c = g_new0(CleanBox, 1);

    *c = (CleanBox){.timer = {.expired = on_time}, .refs = 1, .spec = *spec, .events = *events, .ctx = ctx};
    c->lease = g_strdup(spec->lease);
    c->tree = g_strdup(spec->tree);
    c->links = g_strdup(spec->links);
    c->guessed = spec->plan->template_is_guess && spec->plan->template != NULL;
    loop_timer_set(spec->forge->spec.loop, &c->timer, spec->plan->timeout_s * MS_PER_S);
    ask_for_box(c);
    return c;
}

static void
end_one(Box *box, void *data)
{
    box_kill(box, "checked", "coop", on_gone, NULL);
}

void
clean_box_sweep(BoxHost *boxes)
{
    box_host_each(boxes, owner, end_one, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's program: started once, and found again.
 *
 * Its command has the execution's id in it.  Who was killed between the start and the row finds it by that; a
 * run whose own row was lost with the server has no words, and is taken for it too, because until then
 * nothing else was started in the box. */
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "team/crew-private.h"

enum { COMMANDS_MAX = 200, ARGS_BEFORE = 4, MS_PER_S = 1000 };

/* ---- starting ---- */

static char **
make_argv(const Shift *s)
{
    static const char *const own[] = {"/usr/local/bin/coop-agent", NULL};
    g_autoptr(ShiftWords) words = shift_words_new(s);
    g_auto(GStrv) theirs = s->adapter != NULL ? adapter_argv(s->adapter, &words->words) : NULL;
    const char *const *program = theirs != NULL ? (const char *const *)theirs : own;
    GPtrArray *argv = g_ptr_array_new();

    g_ptr_array_add(argv, g_strdup("/bin/sh"));
    g_ptr_array_add(argv, g_strdup("-c"));
    g_ptr_array_add(argv, g_strdup("exec \"$@\""));
    g_ptr_array_add(argv, g_strdup(s->id));
    for (; *program != NULL; program++)
        g_ptr_array_add(argv, g_strdup(*program));
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(argv, FALSE);
}

static char **
make_env(const Shift *s)
{
    g_autoptr(ShiftWords) words = shift_words_new(s);
    const char *task = shift_text(s, "task_id");
    char **env = s->adapter != NULL ? adapter_env(s->adapter, &words->words) : g_new0(char *, 1);
    guint n = g_strv_length(env);

    env = g_renew(char *, env, n + 2);
    env[n] = g_strconcat("CURRENT_TASK_ID=", task != NULL ? task : "", NULL);
    env[n + 1] = NULL;
    return env;
}

static Json *
joined_data(const Shift *s)
{
    return json_pack("{s:s, s:s, s:s?, s:s, s:s, s:s?, s:s?, s:s?, s:I, s:s}", "agent",
                     shift_text(s, "agent"), "role", shift_text(s, "role"), "specialization",
                     shift_text(s, "specialization"), "kind", shift_text(s, "kind"), "adapter",
                     shift_text(s, "adapter"), "provider", shift_text(s, "provider"), "model",
                     shift_text(s, "model"), "branch", shift_text(s, "git_branch"), "try",
                     (json_int_t)row_int(s->row, "try"), "seen_by", "coop");
}

static void
on_working(Json *value, const GError *error, void *data)
{
    Shift *s = data;

    /* The row says "starting" until the next one is written: a restart finds the run all the same. */
    if (error != NULL)
        log_warn("crew", "an agent's beginning could not be written", log_str("execution", s->id),
                 log_gerror(error));
    shift_unref(s);
}

static void
write_working(Shift *s, gint64 run)
{
    g_autoptr(Json) joined = joined_data(s);
    BoxInfo info;

    box_info(s->box, &info);
    crew_move(s->crew,
              &(CrewMove){.id = s->id,
                          .state = "working",
                          .box_id = info.id,
                          .workdir = s->workdir,
                          .run = run,
                          .actor = s->actor,
                          .joined = joined},
              on_working, shift_ref(s));
}

static void
start_program(Shift *s)
{
    g_auto(GStrv) argv = make_argv(s);
    g_auto(GStrv) env = make_env(s);
    g_autoptr(GError) error = NULL;
    const RunSpec spec = {
        .argv = (const char *const *)argv, .env = (const char *const *)env, .user = "", .cwd = s->workdir};
    Run *run = box_start(s->box, &spec, s->actor, &error);

    if (run == NULL) {
        shift_lost(s, error->message);
        return;
    }
    FAILPOINT("crew-started");
    write_working(s, run_id(run));
    shift_watch(s, run);
    run_unref(run);
}

/* ---- was it started before? ---- */

typedef struct Search {
    const char *id;
    gint64 run; /* 0: not found */
} Search;

static void
look_at(Json *row, void *data)
{
    Search *search = data;
    const char *id = json_string_value(json_array_get(json_object_get(row, "argv"), ARGS_BEFORE - 1));
    const char *command = row_text(row, "command");

    if (g_strcmp0(id, search->id) == 0 || (command != NULL && command[0] == '\0'))
        search->run = row_int(row, "run");
}

static void
on_commands(Json *rows, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;
    Search search = {.id = s->id};
    size_t i;
    Json *row;

    if (s->crew == NULL || s->phase != SHIFT_FINDING)
        return;
    json_array_foreach(rows, i, row) look_at(row, &search);
    box_each_command(s->box, look_at, &search);
    if (search.run == 0) {
        start_program(s);
        return;
    }
    json_object_set_new(s->row, "run", json_integer(search.run));
    write_working(s, search.run);
    shift_find(s);
}

/* As if one had ended. */
static void
skip_program(Shift *s)
{
    s->end = (RunEnd){.reason = RUN_EXIT};
    shift_ran(s);
}

void
shift_work(Shift *s)
{
    BoxInfo info;

    if (shift_only_checks(s)) {
        skip_program(s);
        return;
    }
    if (strcmp(shift_text(s, "state"), "queued") == 0) {
        start_program(s);
        return;
    }
    s->phase = SHIFT_FINDING;
    box_info(s->box, &info);
    box_host_commands(s->crew->team->spec.boxes, info.id, COMMANDS_MAX, on_commands, shift_ref(s));
}

/* ---- finding it again ---- */

static RunReason
reason_of(const char *name)
{
    for (RunReason reason = RUN_EXIT; reason < RUN_REASON_MAX; reason++) {
        if (g_strcmp0(run_reason_name(reason), name) == 0)
            return reason;
    }
    return RUN_LOST;
}

static void
on_command(Json *rows, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;
    const Json *row = json_array_get(rows, 0);

    if (s->crew == NULL || s->phase != SHIFT_FINDING)
        return;
    if (error != NULL) {
        shift_timer(s, CREW_FIND_MS);
        return;
    }
    s->end = (RunEnd){.reason = reason_of(row_text(row, "reason")), .code = (int)row_int(row, "code")};
    shift_ran(s);
}

/* Its keeper may be away for a while, and it has it. */
static bool
wait_for_it(Shift *s, guint32 run)
{
    g_autoptr(Json) row = box_command_row(s->box, run);
    gint64 waited_us = clock_mono_us() - s->began_us;

    if (row == NULL || waited_us > (gint64)CREW_FIND_S * G_USEC_PER_SEC)
        return false;
    shift_timer(s, CREW_FIND_MS);
    return true;
}

static void
look_for_run(Shift *s)
{
    guint32 id = (guint32)row_int(s->row, "run");
    Run *run = id != 0 ? box_find_run(s->box, id) : NULL;
    BoxInfo info;

    box_info(s->box, &info);
    if (run != NULL)
        shift_watch(s, run);
    else if (id == 0)
        shift_lost(s, "nobody knows what it was doing");
    else if (!wait_for_it(s, id))
        box_host_command(s->crew->team->spec.boxes, info.id, id, on_command, shift_ref(s));
}

void
shift_find(Shift *s)
{
    s->phase = SHIFT_FINDING;
    s->began_us = clock_mono_us();
    if (shift_only_checks(s))
        skip_program(s);
    else
        look_for_run(s);
}

/* ---- its time ---- */

void
shift_asks(Shift *s, bool asks)
{
    if (asks)
        s->asking++;
    else if (s->asking > 0)
        s->asking--;
    if (asks)
        s->asked_us = clock_wall_us();
    if (s->phase != SHIFT_WORKING || s->timed_out || s->works_on)
        return;
    /* Whoever waits for a person is not slow himself. */
    if (s->asking > 0) {
        loop_timer_cancel(s->crew->loop, &s->timer);
        shift_renew(s, BOX_LIFE_MAX_MS);
    } else {
        shift_timer(s, shift_seconds(s) * MS_PER_S);
    }
}

/* Its time does not stand still any more, whatever else it asks. */
void
shift_works_on(Shift *s)
{
    if (s->phase != SHIFT_WORKING || s->timed_out || s->works_on)
        return;
    s->works_on = true;
    shift_timer(s, shift_seconds(s) * MS_PER_S);
}

/* Not every program ends by itself then. */
void
shift_loops(Shift *s, guint repeats)
{
    if (s->phase != SHIFT_WORKING || s->timed_out || s->repeats > 0)
        return;
    s->repeats = MAX(repeats, 1);
    shift_work_timer(s);
}

void
shift_work_timer(Shift *s)
{
    if (s->phase == SHIFT_FINDING) {
        look_for_run(s);
        return;
    }
    run_signal(s->run, s->timed_out ? SIGKILL : SIGTERM);
    s->timed_out = true;
    shift_timer(s, CREW_TERM_MS);
}

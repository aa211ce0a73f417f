/* SPDX-License-Identifier: Apache-2.0 */
/* The box of a shift.  Its lease makes it the same one for every try, before and after a restart. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "team/crew-keep.h"

enum { MS_PER_S = 1000, NAME_CHARS = BOX_NAME_MAX };

static void ask_for_box(Shift *s);

/* What every command in the box sees. */
static char **
make_env(const Shift *s)
{
    const char *task = shift_text(s, "task_id");
    g_autofree char *name = shift_git_name(s);
    g_autofree char *email = shift_git_email(s);
    g_autofree char *room = task != NULL ? room_id_of(task) : g_strdup("");
    g_autoptr(GPtrArray) env = g_ptr_array_new();

    g_ptr_array_add(env, g_strconcat("TASK_ID=", task != NULL ? task : "", NULL));
    g_ptr_array_add(env, g_strconcat("AGENT_ROLE=", shift_text(s, "role"), NULL));
    g_ptr_array_add(env, g_strconcat("GIT_USERNAME=", name, NULL));
    g_ptr_array_add(env, g_strconcat("GIT_EMAIL=", email, NULL));
    g_ptr_array_add(env, g_strconcat("ROOM_ID=", room, NULL));
    g_ptr_array_add(env, g_strdup("MAIN_AGENT_ID=coop"));
    g_ptr_array_add(env, g_strconcat("CURRENT_TASK_ID=", task != NULL ? task : "", NULL));
    /* An identity is in the work tree's settings, which these would hide. */
    if (!shift_has_identity(s)) {
        g_ptr_array_add(env, g_strconcat("GIT_AUTHOR_NAME=", name, NULL));
        g_ptr_array_add(env, g_strconcat("GIT_AUTHOR_EMAIL=", email, NULL));
        g_ptr_array_add(env, g_strconcat("GIT_COMMITTER_NAME=", name, NULL));
        g_ptr_array_add(env, g_strconcat("GIT_COMMITTER_EMAIL=", email, NULL));
    }
    g_ptr_array_add(env, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&env), FALSE);
}

static guint
life_s(const Shift *s)
{
    return s->crew->team->limits.agent_s + CREW_LIFE_EXTRA_S;
}

/* There is none just now, which will change. */
static bool
may_wait(const Shift *s, const GError *error)
{
    ErrKind kind = err_kind(error);

    return (kind == ERR_UNAVAILABLE || kind == ERR_LIMIT || kind == ERR_FULL) &&
           clock_mono_us() - s->began_us < (gint64)CREW_BOX_WAIT_S * G_USEC_PER_SEC;
}

static void
wait_for_box(Shift *s, const GError *error)
{
    log_info("crew", "an agent waits for a box", log_str("agent", shift_text(s, "agent")), log_gerror(error));
    shift_told_once(s);
    shift_timer(s, s->wait_ms);
    s->wait_ms = MIN(s->wait_ms * 2, CREW_BOX_WAIT_MAX_MS);
}

static void
judge_refusal(Shift *s, const GError *error)
{
    bool lacks = err_kind(error) == ERR_UNAVAILABLE || err_kind(error) == ERR_NOT_FOUND;

    if (lacks && shift_template_is_usual(s)) {
        s->plain = true;
        ask_for_box(s);
        return;
    }
    if (may_wait(s, error)) {
        wait_for_box(s, error);
        return;
    }
    g_autofree char *problem = g_strdup_printf("it got no box: %s", error->message);

    shift_end(s, err_kind(error) == ERR_INVALID || err_kind(error) == ERR_NOT_FOUND ? "failed" : "lost",
              problem);
}

static void
on_renewed(Box *box, const GError *error, void *data)
{
    /* It lives as long as it did. */
}

void
shift_renew(Shift *s, gint64 life_ms)
{
    box_renew(s->box, life_ms, "coop", on_renewed, NULL);
}

static void
on_boxed(Json *value, const GError *error, void *data)
{
    Shift *s = data;

    shift_told_once(s);
    shift_unref(s);
}

static void
write_box(Shift *s, Box *box)
{
    BoxInfo info;

    box_info(box, &info);
    crew_move(s->crew, &(CrewMove){.id = s->id, .state = "starting", .box_id = info.id}, on_boxed,
              shift_ref(s));
}

static void
take_box(Shift *s, Box *box)
{
    FAILPOINT("crew-leased");
    shift_has_box(s, box);
    write_box(s, box);
    shift_prepare(s);
}

static void
on_ended(Box *box, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;

    if (s->crew != NULL && s->phase == SHIFT_LEASING)
        ask_for_box(s);
}

/* One that cannot be woken up, or has lived too long, makes room for another. */
static void
on_resumed(Box *box, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;

    if (s->crew == NULL || s->phase != SHIFT_LEASING)
        return;
    if (error == NULL)
        take_box(s, box);
    else
        box_kill(box, "released", "coop", on_ended, shift_ref(s));
}

/* The keeper is away, and will say that it is gone, or it is about to be ended. */
static void
take_none(Shift *s)
{
    g_autoptr(GError) error = NULL;

    err_set(&error, ERR_UNAVAILABLE, "its box does not answer");
    if (may_wait(s, error))
        wait_for_box(s, error);
    else
        shift_lost(s, error->message);
}

/* The box of an earlier try.  It may have been kept for a person meanwhile. */
static void
take_again(Shift *s, Box *box)
{
    BoxInfo info;

    if (box_is_cut_off(box)) {
        take_none(s);
        return;
    }
    box_info(box, &info);
    kept_forget_box(s->crew, info.id);
    box_renew(box, MIN((gint64)life_s(s) * MS_PER_S, (gint64)BOX_LIFE_MAX_MS), "coop", on_renewed, NULL);
    if (info.state == BOX_PAUSED)
        box_resume(box, "coop", on_resumed, shift_ref(s));
    else
        take_box(s, box);
}

static void
on_created(Box *box, bool created, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;

    s->leasing = false;
    if (s->leased != NULL) {
        if (error == NULL && s->box == NULL)
            s->box = box_ref(box);
        s->leased(s, s->leased_data);
        return;
    }
    if (s->crew == NULL || s->phase != SHIFT_LEASING)
        return;
    if (error != NULL) {
        judge_refusal(s, error);
        return;
    }
    if (created)
        take_box(s, box);
    else
        take_again(s, box);
}

static void
ask_for_box(Shift *s)
{
    g_auto(GStrv) env = make_env(s);
    g_autofree char *name = g_strndup(shift_text(s, "agent"), NAME_CHARS);
    gint64 life_ms = MIN((gint64)life_s(s) * MS_PER_S, (gint64)BOX_LIFE_MAX_MS);
    BoxSpec spec = {.owner = shift_text(s, "owner"),
                    .actor = "coop",
                    .template = shift_template(s),
                    .lease = shift_text(s, "lease"),
                    .name = name,
                    .agent_id = shift_text(s, "agent"),
                    .task_id = shift_text(s, "task_id"),
                    .squad_id = shift_text(s, "squad_id"),
                    .env = (const char *const *)env,
                    .lifetime_ms = life_ms,
                    .idle_ms = life_ms};

    s->leasing = true;
    box_host_create(s->crew->team->spec.boxes, &spec, on_created, shift_ref(s));
}

void
shift_box_timer(Shift *s)
{
    ask_for_box(s);
}

static void
on_starting(Json *value, const GError *error, void *data)
{
    Shift *s = data;
    bool ended = error == NULL && strcmp(row_text(value, "state"), "starting") != 0;

    /* A failure shows at the next row; a row that has ended was stopped. */
    if (ended && s->crew != NULL && s->phase < SHIFT_WORKING)
        shift_let_go(s);
    shift_unref(s);
}

void
shift_lease(Shift *s)
{
    s->phase = SHIFT_LEASING;
    s->began_us = clock_mono_us();
    s->wait_ms = CREW_BOX_WAIT_MS;
    if (strcmp(shift_text(s, "state"), "queued") == 0)
        crew_move(s->crew, &(CrewMove){.id = s->id, .state = "starting"}, on_starting, shift_ref(s));
    ask_for_box(s);
}

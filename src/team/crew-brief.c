/* SPDX-License-Identifier: Apache-2.0 */
/* Everything an agent has to know, put together when it asks: its row, its role, its task, and the room as it
 * is at that moment. */

#include "base/err.h"
#include "team/crew-private.h"

enum { CONTEXT_TOKENS = 100 * 1000, OUTPUT_TOKENS = 8192 };

typedef struct Asking {
    Shift *shift;
    Json *brief;
    TeamJsonFunc done;
    void *data;
} Asking;

static void
finish(Asking *a, const GError *error)
{
    a->done(error == NULL ? a->brief : NULL, error, a->data);
    json_decref(a->brief);
    shift_unref(a->shift);
    g_free(a);
}

/* False: the server is stopping, or the agent is not there any more. */
static bool
goes_on(Asking *a)
{
    g_autoptr(GError) error = NULL;

    if (a->shift->crew != NULL)
        return true;
    err_set(&error, ERR_UNAVAILABLE, "the agent has ended, or the server is stopping");
    finish(a, error);
    return false;
}

/* ---- its parts ---- */

static Json *
pick(const Json *row, const char *const *names)
{
    Json *picked = json_object();

    if (!json_is_object(row)) {
        json_decref(picked);
        return json_null();
    }
    for (; *names != NULL; names++) {
        Json *value = json_object_get(row, *names);

        json_object_set_new(picked, *names, value != NULL ? json_incref(value) : json_null());
    }
    return picked;
}

static Json *
told(const Shift *s, const char *name)
{
    Json *value = shift_told(s, name);

    return value != NULL ? json_incref(value) : json_null();
}

static Json *
limits_json(const Shift *s)
{
    const Role *role = shift_role(s);
    const Json *own = shift_config(s);
    gint64 context = row_int(own, "context_tokens"), output = row_int(own, "output_tokens");

    if (context == 0)
        context = role != NULL && role->context_tokens != 0 ? role->context_tokens : CONTEXT_TOKENS;
    return json_pack("{s:I, s:I, s:I, s:I}", "turns", (json_int_t)shift_turns(s), "seconds",
                     (json_int_t)shift_seconds(s), "context_tokens",
                     (json_int_t)shift_at_most(s, "context_tokens", (guint)context), "output_tokens",
                     (json_int_t)(output > 0 ? output : OUTPUT_TOKENS));
}

/* Those that the role has, its member and the repository each take away from; null: all that there are. */
static Json *
tools_json(const Shift *s)
{
    const Role *role = shift_role(s);
    const Json *of_repo = json_object_get(shift_told(s, "role"), "tools"),
               *of_member = json_object_get(shift_config(s), "tools");
    const Json *first = json_is_array(of_repo) ? of_repo : of_member;
    bool has_role = role != NULL && role->tools != NULL;
    Json *list = json_array(), *word;
    size_t i;

    for (char **tool = has_role ? role->tools : NULL; tool != NULL && *tool != NULL; tool++) {
        if ((!json_is_array(of_repo) || row_list_has(of_repo, *tool)) &&
            (!json_is_array(of_member) || row_list_has(of_member, *tool)))
            json_array_append_new(list, json_string(*tool));
    }
    if (has_role)
        return list;
    if (!json_is_array(first)) {
        json_decref(list);
        return json_null();
    }
    json_array_foreach(first, i, word)
    {
        if (!json_is_array(of_member) || row_list_has(of_member, json_string_value(word)))
            json_array_append(list, word);
    }
    return list;
}

static Json *
make_brief(const Shift *s)
{
    static const char *const of_task[] = {"id", "number", "title", "request", NULL};
    static const char *const of_step[] = {"name", "title", "details", "files", "feature", NULL};
    g_autofree char *system = shift_system(s);
    g_autofree char *model = shift_model(s);
    const char *name = row_text(json_object_get(s->row, "member"), "name");
    Json *checks = told(s, "checks");
    Json *goal = told(s, "goal");

    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s?, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:{s:s, s:s}, s:o, s:s?, s:s?, s:o, "
        "s:o, s:I}",
        "execution_id", s->id, "agent", shift_text(s, "agent"), "name",
        name != NULL ? name : shift_text(s, "agent"), "role", shift_text(s, "role"), "specialization",
        shift_text(s, "specialization"), "kind", shift_text(s, "kind"), "task",
        pick(json_object_get(s->row, "task"), of_task), "step",
        pick(json_object_get(s->row, "step"), of_step), "system", system, "goal", goal, "feedback",
        told(s, "feedback"), "bundle", told(s, "bundle"), "model", "dialect", shift_dialect(s), "name", model,
        "limits", limits_json(s), "workdir", s->workdir, "branch", shift_text(s, "git_branch"), "checks",
        checks, "tools", tools_json(s), "try", (json_int_t)row_int(s->row, "try"));
}

/* ---- the room ---- */

static void
on_plan_text(Json *value, const GError *error, void *data)
{
    Asking *a = data;
    Json *text = json_object_get(value, "text");

    json_object_set_new(a->brief, "plan_text", text != NULL ? json_incref(text) : json_null());
    finish(a, NULL);
}

/* Without its room an agent can work too. */
static void
on_room(Json *value, const GError *error, void *data)
{
    Asking *a = data;
    g_autoptr(Json) room = value != NULL ? json_copy(value) : json_null();

    if (!goes_on(a))
        return;
    const char *task_id = shift_text(a->shift, "task_id");

    if (value != NULL) {
        g_autofree char *id = room_id_of(task_id);

        json_object_set_new(room, "id", json_string(id));
    }
    json_object_set(a->brief, "room", room);
    room_plan_text(a->shift->crew->team->rooms, task_id, on_plan_text, a);
}

static void
ask_room(Asking *a)
{
    const char *task_id = shift_text(a->shift, "task_id");

    if (task_id == NULL) {
        json_object_set_new(a->brief, "room", json_null());
        json_object_set_new(a->brief, "plan_text", json_null());
        finish(a, NULL);
        return;
    }
    g_autofree char *room = room_id_of(task_id);

    room_context(a->shift->crew->team->rooms, room, on_room, a);
}

/* Without them it finds its own way to run tests. */
static void
on_tests(Json *value, const GError *error, void *data)
{
    Asking *a = data;

    if (!goes_on(a))
        return;
    if (value != NULL)
        json_object_set(a->brief, "checks", value);
    ask_room(a);
}

void
crew_brief(Crew *crew, const char *box_id, TeamJsonFunc done, void *data)
{
    g_autoptr(GError) error = NULL;
    Shift *s = crew_in_box(crew, box_id, &error);
    Asking *a;

    if (s != NULL && s->workdir == NULL)
        err_set(&error, ERR_UNAVAILABLE, "the box is being prepared; try again");
    if (error != NULL) {
        done(NULL, error, data);
        return;
    }
    a = g_new0(Asking, 1);
    *a = (Asking){shift_ref(s), make_brief(s), done, data};
    g_assert(a->brief != NULL);
    if (shift_scans(s) != NULL)
        json_object_set(a->brief, "scans", shift_scans(s));
    if (json_array_size(json_object_get(a->brief, "checks")) == 0 && shift_repo(s) != NULL)
        shift_repo_tests(s, on_tests, a);
    else
        ask_room(a);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How far it is, for people and agents: a message in the room, and one comment on the pull request that is
 * written anew in its place.  Nothing waits for either, and neither is said again after a restart. */
#include <string.h>

#include "forge/comment.h"
#include "forge/markdown.h"
#include "team/flow-private.h"

static const char *
mark_of(const Json *step)
{
    if (flow_is(step, "state", "done"))
        return "x";
    return " ";
}

static char *
text_of(const Json *rows)
{
    const Json *task = json_object_get(rows, "task"), *steps = json_object_get(rows, "steps");
    const char *problem = row_text(task, "problem");
    g_autofree char *line = problem != NULL ? g_strdelimit(g_strdup(problem), "\r\n", ' ') : NULL;
    GString *out = g_string_new(NULL);
    size_t i;
    const Json *step;

    g_string_append_printf(out, "**%s**", row_text(task, "state"));
    if (line != NULL)
        g_string_append_printf(out, ": %s", line);
    g_string_append(out, "\n\n");
    json_array_foreach(steps, i, step)
    {
        g_string_append_printf(out, "- [%s] %s: %s", mark_of(step), row_text(step, "title"),
                               row_text(step, "state"));
        if (row_int(step, "tries") > 1)
            g_string_append_printf(out, " (try %" G_GINT64_FORMAT ")", row_int(step, "tries"));
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, FALSE);
}

static void
comment(FlowTask *t, const char *text)
{
    gint64 number = row_int(flow_row(t), "pull_number");
    Repo *repo = number > 0 ? flow_repo(t, NULL) : NULL;
    g_autofree char *tame = markdown_tame(text);
    const CommentSpec spec = {.actor = "coop", .number = number, .body = tame, .marker = "coop-progress"};

    if (repo != NULL)
        comment_put(t->flow->team->spec.forge, repo, &spec, NULL, NULL);
}

/* Who does what now: {"coder-1": "The title of its step"}. */
static Json *
assignments_of(const Json *rows)
{
    Json *all = json_object();
    size_t i, k;
    const Json *member, *step;

    json_array_foreach(json_object_get(rows, "members"), i, member)
    {
        json_object_set_new(all, row_text(member, "name"), json_null());
        json_array_foreach(json_object_get(rows, "steps"), k, step)
        {
            if (flow_is(step, "state", "working") && flow_is(step, "member_id", row_text(member, "id")))
                json_object_set_new(all, row_text(member, "name"), json_string(row_text(step, "title")));
        }
    }
    return all;
}

static Json *
plan_of(const Json *rows)
{
    const Json *task = json_object_get(rows, "task"), *steps = json_object_get(rows, "steps");
    const Json *body = json_object_get(json_object_get(rows, "plan"), "body");
    const char *project = row_text(body, "project");
    int done = 0;
    size_t i;
    const Json *step;

    json_array_foreach(steps, i, step) done += flow_is(step, "state", "done");
    return json_pack("{s:s, s:s, s:i, s:i}", "project", project != NULL ? project : row_text(task, "title"),
                     "status", row_text(task, "state"), "done", done, "total", (int)json_array_size(steps));
}

static void
tell_room(FlowTask *t, const char *text)
{
    static const RoomActor coop = {.actor = "coop", .name = "coop", .seen_by = "coop"};
    g_autofree char *room = room_id_of(t->id);
    g_autoptr(Json)
        update = json_pack("{s:o, s:o}", "plan", plan_of(t->rows), "assignments", assignments_of(t->rows));

    room_update(t->flow->team->rooms, room, &coop, update, NULL, NULL);
    room_post(t->flow->team->rooms, room, &coop,
              &(RoomMessage){.text = text, .kind = "status", .priority = ROOM_NORMAL}, NULL, NULL);
}

void
flow_tell(FlowTask *t)
{
    g_autofree char *text = text_of(t->rows);
    bool is_new = t->told != NULL && strcmp(t->told, text) != 0;

    if (t->told != NULL && !is_new)
        return;
    g_free(t->told);
    t->told = g_strdup(text);
    if (!is_new || row_text(flow_row(t), "plan_id") == NULL)
        return;
    tell_room(t, text);
    comment(t, text);
}

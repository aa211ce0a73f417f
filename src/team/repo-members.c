/* SPDX-License-Identifier: Apache-2.0 */
/* The members that a repository names: whom they stand for in the squad, and what they may be. */
#include <string.h>

#include "base/err.h"
#include "forge/check-plan.h"
#include "team/flow-private.h"
#include "team/member-private.h"
#include "team/repo-file.h"
#include "team/role-private.h"

/* ---- what a repository may have ---- */

bool
repo_has_brain(const Json *squad, const Json *asks)
{
    size_t i;
    const Json *member;

    if (row_text(asks, "llm_model") == NULL)
        return true;
    json_array_foreach(squad, i, member)
    {
        if (flow_is(member, "llm_provider", row_text(asks, "llm_provider")) &&
            flow_is(member, "llm_model", row_text(asks, "llm_model")))
            return true;
    }
    return false;
}

static bool
has_adapter(const Json *squad, const char *adapter)
{
    size_t i;
    const Json *member;

    if (adapter == NULL)
        return true;
    json_array_foreach(squad, i, member)
    {
        if (flow_is(member, "adapter", adapter))
            return true;
    }
    return false;
}

bool
repo_may_use(const TeamSpec *spec, const char *who, const char *template, GError **error)
{
    if (template == NULL || spec->is_open_template == NULL ||
        spec->is_open_template(spec->template_ctx, template))
        return true;
    return err_set(error, ERR_INVALID,
                   "%s asks for the template '%s', which has rules of its own at the door: a squad may "
                   "choose it, a repository may not",
                   who, template);
}

const char *
repo_role_archetype(const Json *file, const char *role)
{
    g_autofree char *name = role_fold(role);
    size_t i;
    const Json *of_file;

    json_array_foreach(json_object_get(file, "roles"), i, of_file)
    {
        if (flow_is(of_file, "name", name))
            return row_text(of_file, "archetype");
    }
    return NULL;
}

/* ---- what is said of each ---- */

static bool
is_said(const Json *given, const char *name)
{
    const Json *value = json_object_get(given, name);

    return value != NULL && !json_is_null(value);
}

/* A new member of a squad gets what is usual; here that is what the one has whose place is taken. */
static void
drop_usual(const Json *given, Json *fields)
{
    if (!is_said(given, "adapter"))
        json_object_del(fields, "adapter");
    if (is_said(given, "llm_provider") || is_said(given, "llm_model"))
        return;
    json_object_del(fields, "llm_provider");
    json_object_del(fields, "llm_model");
}

static Json *
prepare(Team *team, const Json *file, Json *given, GError **error)
{
    g_autoptr(Json) fields = member_prepare(team, given, MEMBER_NEW, error);
    const char *of_file = fields != NULL ? repo_role_archetype(file, row_text(fields, "role")) : NULL;

    if (fields == NULL)
        return NULL;
    drop_usual(given, fields);
    if (of_file != NULL)
        json_object_set_new(fields, "archetype", json_string(of_file));
    if (flow_is(fields, "archetype", "planner")) {
        err_set(error, ERR_INVALID, "a repository says nothing of who plans, but 'planner'");
        return NULL;
    }
    return repo_may_use(&team->spec, "a member", row_text(fields, "template"), error)
               ? g_steal_pointer(&fields)
               : NULL;
}

static bool
at_line(const Json *member, GError **error)
{
    g_prefix_error(error, "%s, line %d: ", plan_file_name, (int)row_int(member, "line"));
    return false;
}

bool
repo_members_check(Team *team, Json *file, GError **error)
{
    size_t i;
    Json *member;

    json_array_foreach(json_object_get(file, "members"), i, member)
    {
        Json *fields = prepare(team, file, json_object_get(member, "fields"), error);

        if (fields == NULL)
            return at_line(member, error);
        json_object_set_new(member, "fields", fields);
    }
    return true;
}

/* ---- whose place each takes ---- */

/* One of the archetype whose place is free, of that name where one is said. */
static const Json *
find_place(const Json *taken, const Json *squad, const Json *fields)
{
    const char *name = row_text(fields, "name");
    size_t i;
    const Json *member;

    json_array_foreach(squad, i, member)
    {
        if (flow_is(member, "archetype", row_text(fields, "archetype")) &&
            (name == NULL || flow_is(member, "name", name)) &&
            flow_row_of(taken, row_text(member, "id")) == NULL)
            return member;
    }
    return NULL;
}

static bool
has_no_place(const Json *fields, GError **error)
{
    const char *name = row_text(fields, "name"), *archetype = row_text(fields, "archetype");

    if (name != NULL)
        return err_set(error, ERR_INVALID,
                       "the squad has no %s '%s' whose place is free; without a name any of them is meant",
                       archetype, name);
    return err_set(error, ERR_INVALID, "the squad has no further %s", archetype);
}

static bool
seat(Json *taken, const Json *squad, Json *fields, GError **error)
{
    const Json *place = find_place(taken, squad, fields);

    if (!repo_has_brain(squad, fields))
        return err_set(error, ERR_INVALID,
                       "a member asks for the brain '%s/%s', which nobody in the squad has",
                       row_text(fields, "llm_provider"), row_text(fields, "llm_model"));
    if (!has_adapter(squad, row_text(fields, "adapter")))
        return err_set(error, ERR_INVALID,
                       "a member asks for the adapter '%s', which nobody in the squad has",
                       row_text(fields, "adapter"));
    if (place == NULL)
        return has_no_place(fields, error);
    json_object_set(fields, "id", json_object_get(place, "id"));
    return json_array_append(taken, fields) == 0;
}

bool
repo_members_seat(Json *file, const Json *squad, GError **error)
{
    g_autoptr(Json) taken = json_array();
    size_t i;
    Json *member;

    /* Those with a name first: the others take what is left. */
    for (int named = 1; named >= 0; named--) {
        json_array_foreach(json_object_get(file, "members"), i, member)
        {
            Json *fields = json_object_get(member, "fields");

            if ((row_text(fields, "name") != NULL) == (named != 0) && !seat(taken, squad, fields, error))
                return at_line(member, error);
        }
    }
    json_object_set(file, "members", taken);
    return true;
}

/* ---- the squad for a task ---- */

static const Json *
asked_of(const Json *asked, const Json *member)
{
    const Json *found = flow_row_of(asked, row_text(member, "id"));

    /* It may have become something else since. */
    return found != NULL && flow_is(found, "archetype", row_text(member, "archetype")) ? found : NULL;
}

/* Whether somebody who is still there was named for this archetype: the others have nothing to do then. */
static bool
is_named(const Json *asked, const Json *squad, const char *archetype)
{
    size_t i;
    const Json *member;

    json_array_foreach(squad, i, member)
    {
        if (flow_is(member, "archetype", archetype) && asked_of(asked, member) != NULL)
            return true;
    }
    return false;
}

static Json *
overlaid(const Json *member, const Json *asked)
{
    static const char *const where_said[] = {"adapter", "llm_provider", "llm_model"};
    static const char *const always[] = {"role", "specialization"};
    Json *row = json_copy((Json *)(guintptr)member);

    for (size_t i = 0; i < G_N_ELEMENTS(always); i++) {
        Json *value = json_object_get(asked, always[i]);

        json_object_set_new(row, always[i], value != NULL ? json_incref(value) : json_null());
    }
    for (size_t i = 0; i < G_N_ELEMENTS(where_said); i++) {
        if (is_said(asked, where_said[i]))
            json_object_set(row, where_said[i], json_object_get(asked, where_said[i]));
    }
    /* What the squad has chosen goes before it. */
    if (row_text(member, "template") == NULL && is_said(asked, "template"))
        json_object_set(row, "template", json_object_get(asked, "template"));
    json_object_set(row, "asked", (Json *)(guintptr)asked);
    return row;
}

Json *
repo_members_over(const Json *file, const Json *squad)
{
    const Json *asked = json_object_get(file, "members"), *member;
    Json *members = json_array();
    size_t i;

    json_array_foreach(squad, i, member)
    {
        const Json *own = asked_of(asked, member);

        if (own != NULL)
            json_array_append_new(members, overlaid(member, own));
        else if (!is_named(asked, squad, row_text(member, "archetype")))
            json_array_append(members, (Json *)(guintptr)member);
    }
    return members;
}

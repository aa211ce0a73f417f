/* SPDX-License-Identifier: Apache-2.0 */
/* What an execution's rows say about it, in one place each. */
#include <string.h>

#include "forge/identity.h"
#include "team/crew-private.h"

enum { BOUND_MAX = 12 * 3600 };

static const Identity *
identity_of(const Shift *s)
{
    Forge *forge = s->crew->team->spec.forge;
    const char *member = shift_text(s, "member_id");

    return forge != NULL && member != NULL ? identity_of_agent(forge, member) : NULL;
}

bool
shift_has_identity(const Shift *s)
{
    return identity_of(s) != NULL;
}

char *
shift_git_name(const Shift *s)
{
    const Identity *who = identity_of(s);
    const char *wanted = row_text(shift_told(s, "git"), "username");

    return g_strdup(who != NULL ? who->name : wanted != NULL ? wanted : shift_text(s, "agent"));
}

char *
shift_git_email(const Shift *s)
{
    const Identity *who = identity_of(s);
    const char *wanted = row_text(shift_told(s, "git"), "email");

    if (who == NULL && wanted == NULL)
        return g_strdup_printf("%s@coop.invalid", shift_text(s, "agent"));
    return g_strdup(who != NULL ? who->email : wanted);
}

const Role *
shift_role(const Shift *s)
{
    return team_role(s->crew->team, shift_text(s, "role"), NULL);
}

static const char *
template_set(const Shift *s)
{
    const TeamSpec *spec = &s->crew->team->spec;
    const struct {
        const char *archetype, *template;
    } set[] = {{"coder", spec->template_coder},
               {"reviewer", spec->template_reviewer},
               {"tester", spec->template_tester},
               {"checker", spec->template_coder}};

    for (size_t i = 0; i < G_N_ELEMENTS(set); i++) {
        if (g_strcmp0(shift_text(s, "archetype"), set[i].archetype) == 0)
            return set[i].template;
    }
    return NULL;
}

/* The row's, the member's, the server's for this archetype; NULL: nobody asked for one. */
static const char *
template_asked(const Shift *s)
{
    const char *own = shift_text(s, "template");
    const char *of_member = row_text(json_object_get(s->row, "member"), "template");

    return own != NULL ? own : of_member != NULL ? of_member : template_set(s);
}

const char *
shift_template(const Shift *s)
{
    const char *asked = template_asked(s);
    const Role *role = shift_role(s);

    if (asked != NULL)
        return asked;
    return role != NULL && !s->plain ? role->template : NULL;
}

bool
shift_template_is_usual(const Shift *s)
{
    return template_asked(s) == NULL && shift_template(s) != NULL;
}

/* What the repository says to a role, or to a member. */
static void
append_asked(GString *text, const char *who, const char *prompt)
{
    if (prompt != NULL && prompt[0] != '\0')
        g_string_append_printf(text, "\n\nThe repository asks of its %s:\n\n%s", who, prompt);
}

char *
shift_system(const Shift *s)
{
    const Role *role = shift_role(s);
    const char *of_role = role != NULL && role->prompt != NULL ? role->prompt : "";
    const char *of_member = row_text(json_object_get(s->row, "member"), "system_prompt");
    const Json *by_role = shift_told(s, "role"), *by_member = shift_told(s, "member");
    GString *text = g_string_new(of_role);

    if (of_member != NULL && of_member[0] != '\0')
        g_string_append_printf(text, "\n\n%s", of_member);
    append_asked(text, row_text(by_role, "name"), row_text(by_role, "prompt"));
    append_asked(text, row_text(by_member, "role"), row_text(by_member, "system_prompt"));
    return g_string_free(text, FALSE);
}

char *
shift_model(const Shift *s)
{
    const TeamSpec *spec = &s->crew->team->spec;
    const char *provider = shift_text(s, "provider"), *model = shift_text(s, "model");

    if (model == NULL) {
        provider = spec->default_provider;
        model = spec->default_model != NULL ? spec->default_model : "gpt-4";
    }
    return provider != NULL ? g_strdup_printf("%s/%s", provider, model) : g_strdup(model);
}

const char *
shift_dialect(const Shift *s)
{
    if (s->adapter != NULL)
        return adapter_dialect(s->adapter);
    return g_strcmp0(shift_text(s, "provider"), "anthropic") == 0 ? "anthropic" : "openai";
}

static gint64
told_number(const Shift *s, const char *name)
{
    Json *limits = shift_told(s, "limits");

    return json_integer_value(json_object_get(limits, name));
}

Json *
shift_config(const Shift *s)
{
    return json_object_get(json_object_get(s->row, "member"), "config");
}

/* The brief's; else the member's, but no more than the task's; the role's, else as usual. */
static guint
bound(const Shift *s, const char *name, const char *in_policy, guint of_role, guint usual)
{
    gint64 told = told_number(s, name), own = row_int(shift_config(s), name);
    gint64 policy = row_int(json_object_get(json_object_get(s->row, "task"), "policy"), in_policy);

    if (told <= 0 && own > 0)
        told = policy > 0 ? MIN(own, policy) : own;
    if (told <= 0)
        told = policy > 0 ? policy : of_role > 0 ? of_role : usual;
    return shift_at_most(s, name, (guint)MIN(told, (gint64)BOUND_MAX));
}

/* A repository can ask for less, and not for more. */
guint
shift_at_most(const Shift *s, const char *name, guint most)
{
    gint64 of_repo = row_int(shift_told(s, "role"), name);

    return of_repo > 0 ? (guint)MIN(of_repo, (gint64)most) : most;
}

guint
shift_seconds(const Shift *s)
{
    const Role *role = shift_role(s);

    return bound(s, "seconds", "agent_s", role != NULL ? role->seconds : 0, s->crew->team->limits.agent_s);
}

guint
shift_turns(const Shift *s)
{
    const Role *role = shift_role(s);

    return bound(s, "turns", "turns", role != NULL ? role->turns : 0, s->crew->team->limits.turns);
}

/* ---- for adapters ---- */

static const char *
told_text(const Shift *s, const char *name)
{
    const char *text = json_string_value(shift_told(s, name));

    return text != NULL ? text : "";
}

static char *
make_prompt(const char *system, const char *goal, const char *request, const Json *feedback)
{
    g_autofree char *more = feedback == NULL           ? NULL
                            : json_is_string(feedback) ? g_strdup(json_string_value(feedback))
                                                       : json_encode(feedback);
    GString *text = g_string_new(system);

    if (text->len > 0)
        g_string_append(text, "\n\n");
    g_string_append(text, goal);
    if (request != NULL)
        g_string_append_printf(text, "\n\nThe request that it is part of:\n%s", request);
    if (more != NULL)
        g_string_append_printf(text, "\n\nWhat was seen of the last try:\n%s", more);
    return g_string_free(text, FALSE);
}

ShiftWords *
shift_words_new(const Shift *s)
{
    ShiftWords *w = g_new0(ShiftWords, 1);
    const char *provider = shift_text(s, "provider");

    w->system = shift_system(s);
    w->prompt = make_prompt(w->system, told_text(s, "goal"),
                            row_text(json_object_get(s->row, "task"), "request"), shift_told(s, "feedback"));
    w->home = s->workdir != NULL ? g_path_get_dirname(s->workdir) : g_strdup("");
    w->model = shift_model(s);
    w->words = (AdapterWords){.prompt = w->prompt,
                              .system = w->system,
                              .goal = told_text(s, "goal"),
                              .model = w->model,
                              .provider = provider != NULL ? provider : "",
                              .workdir = s->workdir != NULL ? s->workdir : "",
                              .home = w->home,
                              .execution = s->id};
    return w;
}

void
shift_words_free(ShiftWords *words)
{
    g_free(words->prompt);
    g_free(words->system);
    g_free(words->home);
    g_free(words->model);
    g_free(words);
}

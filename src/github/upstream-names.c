/* SPDX-License-Identifier: Apache-2.0 */
#include "github/upstream-names.h"

#include <string.h>

#include "base/err.h"
#include "github/calls.h"
#include "github/names.h"
#include "github/text.h"

static const struct NamesKind {
    const char *name;          /* of ours, and of a call's body */
    const char *list, *member; /* in a pull request there */
} kinds[] = {{"labels", "labels", "name"}, {"reviewers", "requested_reviewers", "login"}};

typedef enum StepAct { LABELS_ADD, LABEL_REMOVE, REVIEWERS_ADD, REVIEWERS_REMOVE } StepAct;

typedef struct Step {
    StepAct act;
    Json *names;
} Step;

static void
step_clear(gpointer data)
{
    json_decref(((Step *)data)->names);
}

typedef struct Walk {
    Upstream *upstream;
    Repo *repo;
    gint64 number;
    GArray *steps; /* Step */
    guint at;
    Json *problems;
    UpstreamNamesFunc done;
    void *data;
} Walk;

static void next_step(Walk *w);

static void
walk_end(Walk *w, gint64 wait_us, const GError *error)
{
    w->done(w->at, w->problems, wait_us, error, w->data);
    g_array_unref(w->steps);
    json_decref(w->problems);
    repo_unref(w->repo);
    upstream_unref(w->upstream);
    g_free(w);
}

/* A token that may not, somebody who cannot be asked: nothing else waits for it. */
static bool
is_refusal(const GError *error)
{
    int kind = (int)err_kind(error);

    return kind == ERR_INVALID || kind == ERR_DENIED || kind == ERR_NOT_FOUND || kind == ERR_CONFLICT;
}

static void
on_step(const GithubAnswer *answer, const GError *error, void *data)
{
    Walk *w = data;
    const Step *step = &g_array_index(w->steps, Step, w->at);
    bool is_gone = step->act == LABEL_REMOVE && error != NULL && err_kind(error) == ERR_NOT_FOUND;

    w->at++;
    if (error != NULL && !is_refusal(error)) {
        walk_end(w, answer->wait_us, error);
        return;
    }
    if (error != NULL && !is_gone)
        json_array_append_new(w->problems, json_string(error->message));
    next_step(w);
}

static void
do_step(const GithubAsk *ask, const Walk *w, const Step *step)
{
    bool is_label = step->act == LABELS_ADD || step->act == LABEL_REMOVE;
    g_autoptr(Json) body = json_pack("{s:O}", kinds[is_label ? 0 : 1].name, step->names);

    switch (step->act) {
    case LABELS_ADD:
        github_labels_add(ask, w->number, body);
        break;
    case LABEL_REMOVE:
        github_label_remove(ask, w->number, json_string_value(json_array_get(step->names, 0)));
        break;
    case REVIEWERS_ADD:
        github_pull_request_reviewers(ask, w->number, body);
        break;
    case REVIEWERS_REMOVE:
        github_pull_unrequest_reviewers(ask, w->number, body);
        break;
    }
}

static void
next_step(Walk *w)
{
    g_auto(GithubPlace) place = {0};
    g_autoptr(GError) error = NULL;

    if (w->at == w->steps->len) {
        walk_end(w, 0, NULL);
        return;
    }
    if (!upstream_find_place(w->upstream, w->repo, &place, &error)) {
        walk_end(w, 0, error);
        return;
    }
    GithubAsk ask = {
        .client = place.client, .owner = place.owner, .repo = place.repo, .done = on_step, .data = w};

    do_step(&ask, w, &g_array_index(w->steps, Step, w->at));
}

/* ---- what there is to do ---- */

static void
add_step(Walk *w, StepAct act, Json *names)
{
    if (json_array_size(names) == 0)
        return;
    Step step = {act, json_incref(names)};

    g_array_append_val(w->steps, step);
}

static Json *
names_there(const Json *there, const struct NamesKind *kind)
{
    return names_of(json_object_get(there, kind->list), kind->member);
}

/* Those of `b` that are in `a` too. */
static Json *
both(const Json *a, const Json *b)
{
    g_autoptr(Json) others = names_minus(b, a);

    return names_minus(b, others);
}

static void
plan_kind(Walk *w, const UpstreamNames *n, size_t at)
{
    const Json *wanted = json_object_get(n->wanted, kinds[at].name);
    const Json *before = json_object_get(n->before, kinds[at].name);
    g_autoptr(Json) there = names_there(n->there, &kinds[at]);
    g_autoptr(Json) new = names_minus(wanted, before), gone = names_minus(before, wanted);
    g_autoptr(Json) add = names_minus(new, there), drop = both(gone, there);
    size_t i;
    Json *name;

    add_step(w, at == 0 ? LABELS_ADD : REVIEWERS_ADD, add);
    if (at == 1) {
        add_step(w, REVIEWERS_REMOVE, drop);
        return;
    }
    json_array_foreach(drop, i, name)
    {
        g_autoptr(Json) one = json_pack("[O]", name);

        add_step(w, LABEL_REMOVE, one);
    }
}

void
upstream_names(const UpstreamNames *names, UpstreamNamesFunc done, void *data)
{
    Walk *w = g_new0(Walk, 1);

    *w = (Walk){.upstream = upstream_ref(names->upstream),
                .repo = repo_ref(names->repo),
                .number = names->number,
                .steps = g_array_new(FALSE, FALSE, sizeof(Step)),
                .problems = json_array(),
                .done = done,
                .data = data};
    g_array_set_clear_func(w->steps, step_clear);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        plan_kind(w, names, i);
    next_step(w);
}

void
upstream_names_settle(Json *wanted, const Json *before, const Json *there)
{
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const Json *ours = json_object_get(wanted, kinds[i].name);
        g_autoptr(Json) now = names_there(there, &kinds[i]);
        g_autoptr(Json) new = names_minus(ours, json_object_get(before, kinds[i].name));
        g_autoptr(Json) refused = names_minus(new, now);

        json_object_set_new(wanted, kinds[i].name, names_minus(ours, refused));
    }
}

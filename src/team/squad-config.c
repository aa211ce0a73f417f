/* SPDX-License-Identifier: Apache-2.0 */
/* What a squad decides for its tasks, and a task for itself: everything in it is known and bounded. */
#include <string.h>

#include "base/err.h"
#include "forge/workspace.h"
#include "team/squad-private.h"

enum {
    WORD_MAX = 20,
    BRANCH_MAX = 200,
    MODEL_MAX = 200,
    AGENTS_MAX = 50,
    TRIES_MAX = 10,
    ROUNDS_MAX = 10,
    AGENT_S_MIN = 5,
    AGENT_S_MAX = 24 * 3600,
    TURNS_MAX = 10000,
    SEATS_MAX = 9,
    COUNCIL_S_MAX = 3600,
    USD_MAX = 1000 * 1000,
};

typedef struct Words {
    const char *planner, *until, *pull_request, *branch, *base, *merge, *keep;
} Words;

static bool
check_words(const Words *w, GError **error)
{
    static const char *const planners[] = {"brain", "council", "person", NULL};
    static const char *const rungs[] = {"tested", "ready", "reviewed", "merged", NULL};
    static const char *const moments[] = {"first", "end", NULL};
    static const char *const methods[] = {"merge", "squash", "rebase", NULL};
    static const char *const kinds[] = {"files", "box", NULL};

    return (w->planner == NULL || row_check_word("planner", w->planner, planners, error)) &&
           (w->until == NULL || row_check_word("until", w->until, rungs, error)) &&
           (w->pull_request == NULL || row_check_word("pull_request", w->pull_request, moments, error)) &&
           (w->merge == NULL || row_check_word("merge", w->merge, methods, error)) &&
           (w->keep == NULL || row_check_word("keep", w->keep, kinds, error));
}

/* Two tasks of one pattern must not have one branch. */
static bool
check_branches(const Words *w, GError **error)
{
    if (w->base != NULL && !git_branch_is_valid(w->base, error))
        return false;
    if (w->branch == NULL)
        return true;
    if (strstr(w->branch, "{id}") == NULL)
        return err_set(error, ERR_INVALID, "branch must have {id} in it, such as '%s'",
                       WORKSPACE_FEATURE_BRANCH);
    g_autofree char *name = workspace_branch_name(
        &(BranchName){.pattern = w->branch, .id = "1", .slug = "work"}, error);

    return name != NULL;
}

static bool
check_model(Json *object, const char *what, GError **error)
{
    const char *provider = NULL, *model = NULL;
    const JsonField fields[] = {
        {"provider", JSON_KIND_STRING, &provider, false, 1, MODEL_MAX},
        {"model", JSON_KIND_STRING, &model, true, 1, MODEL_MAX},
        {NULL},
    };

    if (object == NULL)
        return true;
    if (!json_is_object(object))
        return err_set(error, ERR_INVALID, "%s must be an object", what);
    if (!json_read(object, fields, error)) {
        g_prefix_error(error, "%s: ", what);
        return false;
    }
    return true;
}

static bool
check_council(Json *object, GError **error)
{
    Json *seats = NULL, *seat;
    gint64 quorum = 1, timeout_s = 0;
    double usd = 0;
    size_t i;
    const JsonField fields[] = {
        {"seats", JSON_KIND_ARRAY, &seats, false, 0, SEATS_MAX},
        {"quorum", JSON_KIND_INT, &quorum, false, 1, SEATS_MAX},
        {"timeout_s", JSON_KIND_INT, &timeout_s, false, 1, COUNCIL_S_MAX},
        {"usd", JSON_KIND_NUMBER, &usd, false, 0, USD_MAX},
        {NULL},
    };

    if (object == NULL)
        return true;
    if (!json_read(object, fields, error)) {
        g_prefix_error(error, "council: ");
        return false;
    }
    json_array_foreach(seats, i, seat)
    {
        if (!check_model(seat, "council: seats", error))
            return false;
    }
    if (seats != NULL && quorum > (gint64)json_array_size(seats))
        return err_set(error, ERR_INVALID, "council: quorum is more than there are seats");
    return true;
}

static bool
check_budget(Json *object, GError **error)
{
    gint64 tokens = 0, calls = 0;
    double usd = 0;
    const JsonField fields[] = {
        {"tokens", JSON_KIND_INT, &tokens, false, 1, G_MAXINT64},
        {"calls", JSON_KIND_INT, &calls, false, 1, G_MAXINT64},
        {"usd", JSON_KIND_NUMBER, &usd, false, 0, USD_MAX},
        {NULL},
    };

    if (object == NULL || json_read(object, fields, error))
        return true;
    g_prefix_error(error, "budget: ");
    return false;
}

bool
squad_config_check(Json *config, GError **error)
{
    Words w = {0};
    bool approve = false;
    gint64 agents, tries, rounds, agent_s, turns;
    Json *council = NULL, *budget = NULL, *chairman = NULL;
    const JsonField fields[] = {
        {"planner", JSON_KIND_STRING, &w.planner, false, 1, WORD_MAX},
        {"approve", JSON_KIND_BOOL, &approve},
        {"until", JSON_KIND_STRING, &w.until, false, 1, WORD_MAX},
        {"pull_request", JSON_KIND_STRING, &w.pull_request, false, 1, WORD_MAX},
        {"branch", JSON_KIND_STRING, &w.branch, false, 1, WORKSPACE_PATTERN_MAX},
        {"base", JSON_KIND_STRING, &w.base, false, 1, BRANCH_MAX},
        {"merge", JSON_KIND_STRING, &w.merge, false, 1, WORD_MAX},
        {"keep", JSON_KIND_STRING, &w.keep, false, 1, WORD_MAX},
        {"agents_per_task", JSON_KIND_INT, &agents, false, 1, AGENTS_MAX},
        {"tries", JSON_KIND_INT, &tries, false, 1, TRIES_MAX},
        {"rounds", JSON_KIND_INT, &rounds, false, 1, ROUNDS_MAX},
        {"agent_s", JSON_KIND_INT, &agent_s, false, AGENT_S_MIN, AGENT_S_MAX},
        {"turns", JSON_KIND_INT, &turns, false, 1, TURNS_MAX},
        {"council", JSON_KIND_OBJECT, &council},
        {"budget", JSON_KIND_OBJECT, &budget},
        {"chairman", JSON_KIND_OBJECT, &chairman},
        {NULL},
    };
    g_autofree char *text = json_encode(config);

    if (strlen(text) > SQUAD_CONFIG_MAX)
        return err_set(error, ERR_INVALID, "it is longer than %d bytes", SQUAD_CONFIG_MAX);
    return json_read(config, fields, error) && check_words(&w, error) && check_branches(&w, error) &&
           check_council(council, error) && check_budget(budget, error) &&
           check_model(chairman, "chairman", error);
}

Json *
squad_config_over(const Json *config, const Json *over, GError **error)
{
    g_autoptr(Json) merged = config != NULL ? json_copy((Json *)(guintptr)config) : json_object();
    const char *name;
    Json *value;

    json_object_foreach((Json *)(guintptr)over, name, value)
    {
        if (json_is_null(value))
            json_object_del(merged, name);
        else
            json_object_set(merged, name, value);
    }
    return squad_config_check(merged, error) ? g_steal_pointer(&merged) : NULL;
}

/* A bound that is not there binds nobody. */
static bool
is_within(const Json *bound, const Json *value)
{
    double most = json_number_value(bound), wanted = json_number_value(value);

    return most <= 0 || (wanted > 0 && wanted <= most);
}

bool
squad_config_is_kept(const Json *config, const Json *policy, GError **error)
{
    const Json *budget = json_object_get(policy, "budget");
    const char *name;
    Json *bound;

    if (json_is_true(json_object_get(config, "approve")) && !json_is_true(json_object_get(policy, "approve")))
        return err_set(error, ERR_DENIED, "the squad's plans need a person's approval");
    json_object_foreach(json_object_get(config, "budget"), name, bound)
    {
        if (!is_within(bound, json_object_get(budget, name)))
            return err_set(error, ERR_DENIED, "budget: the squad gives a task at most %.15g %s",
                           json_number_value(bound), name);
    }
    return true;
}

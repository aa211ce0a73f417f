/* SPDX-License-Identifier: Apache-2.0 */
/* "raise", "usd 5", "tokens: 100000, calls 50": what a person says when a task's budget is used up. */
#include <string.h>

#include "base/err.h"
#include "team/flow-private.h"
#include "team/squad-private.h"

const char *const flow_counts[FLOW_COUNTS] = {"tokens", "calls"};

/* ---- what is said ---- */

/* A whole number where it is one. */
static Json *
number_of(const char *text)
{
    gint64 whole;
    char *end = NULL;
    double value = g_ascii_strtod(text, &end);

    if (g_ascii_string_to_signed(text, 10, 0, G_MAXINT64, &whole, NULL))
        return json_integer(whole);
    return end != text && *end == '\0' ? json_real(value) : NULL;
}

static bool
is_name(const char *word)
{
    bool known = strcmp(word, "usd") == 0;

    for (size_t i = 0; i < FLOW_COUNTS; i++)
        known = known || strcmp(word, flow_counts[i]) == 0;
    return known;
}

/* NULL: it says no figures. */
static Json *
figures_of(const char *answer)
{
    g_autofree char *low = g_ascii_strdown(answer, -1);
    g_auto(GStrv) words = g_strsplit_set(low, " \t\r\n,:=", -1);
    g_autoptr(Json) figures = json_object();
    const char *name = NULL;

    for (char **word = words; *word != NULL; word++) {
        Json *number = name != NULL ? number_of(*word) : NULL;

        if (**word == '\0')
            continue;
        if (number != NULL) {
            json_object_set_new(figures, name, number);
            name = NULL;
        } else if (name == NULL && is_name(*word)) {
            name = *word;
        } else if (name != NULL || (strcmp(*word, "raise") != 0 && strcmp(*word, "to") != 0)) {
            return NULL;
        }
    }
    return name == NULL && json_object_size(figures) > 0 ? g_steal_pointer(&figures) : NULL;
}

/* ---- what it is then ---- */

static Json *
doubled(const Json *value)
{
    if (json_is_real(value))
        return json_real(json_real_value(value) * 2);
    json_int_t n = json_integer_value(value);

    return json_integer(n > G_MAXINT64 / 2 ? G_MAXINT64 : MAX(n, 1) * 2);
}

Json *
flow_raised(const Json *budget, const char *answer, GError **error)
{
    g_autofree char *word = g_ascii_strdown(answer, -1);
    bool twice = strcmp(g_strstrip(word), "raise") == 0;
    g_autoptr(Json) figures = twice ? NULL : figures_of(answer);
    g_autoptr(Json) raised = json_copy((Json *)(guintptr)budget);
    const char *name;
    Json *value;

    if (!twice && figures == NULL) {
        err_set(error, ERR_INVALID, "the answer is `raise`, `usd 5`, `tokens 100000`, `calls 50` or `stop`");
        return NULL;
    }
    json_object_foreach((Json *)(guintptr)budget, name, value)
    {
        if (twice)
            json_object_set_new(raised, name, doubled(value));
    }
    json_object_foreach(figures, name, value)
    {
        const Json *before = json_object_get(budget, name);

        if (before == NULL || json_number_value(value) <= json_number_value(before)) {
            err_set(error, ERR_INVALID, "the task has no budget of %s that this would raise", name);
            return NULL;
        }
        json_object_set(raised, name, value);
    }
    return g_steal_pointer(&raised);
}

bool
flow_raise(RowJob *job, const Json *task, const char *answer, GError **error)
{
    Json *policy = json_object_get(task, "policy");
    g_autoptr(Json) budget = flow_raised(json_object_get(policy, "budget"), answer, error);
    g_autoptr(Json) over = budget != NULL ? json_pack("{s:O}", "budget", budget) : NULL;
    g_autoptr(Json) merged = over != NULL ? squad_config_over(policy, over, error) : NULL;
    g_autofree char *text = merged != NULL ? json_encode(merged) : NULL;

    return text != NULL && db_exec(job->tx, "UPDATE tasks SET policy = ? WHERE id = ?",
                                   DB_ARGS(db_text(text), db_text(row_text(task, "id"))), error);
}

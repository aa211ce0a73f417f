/* SPDX-License-Identifier: Apache-2.0 */
/* What models were asked, and what it cost. */
#include <string.h>

#include "team/flow-private.h"

enum { CALLS_MAX = 20 * 1000, HTTP_BAD = 400 }; /* of one agent */

static const char *const numbers[] = {"calls",         "failed_calls",  "input_tokens",
                                      "output_tokens", "cached_tokens", "microusd"};

Json *
spent_new(void)
{
    Json *spent = json_object();

    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        json_object_set_new(spent, numbers[i], json_integer(0));
    return spent;
}

void
spent_add(Json *sum, const Json *more)
{
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        json_object_set_new(sum, numbers[i],
                            json_integer(row_int(sum, numbers[i]) + row_int(more, numbers[i])));
}

/* Borrowed; made where there is none. */
static Json *
model_in(Json *models, const char *provider, const char *name)
{
    size_t i;
    Json *model;

    json_array_foreach(models, i, model)
    {
        if (flow_is(model, "provider", provider) && flow_is(model, "model", name))
            return model;
    }
    model = spent_new();
    json_object_set_new(model, "provider", json_string(provider));
    json_object_set_new(model, "model", json_string(name));
    json_array_append_new(models, model);
    return model;
}

static Json *
call_spent(const Json *call)
{
    Json *spent = json_deep_copy(call);

    json_object_set_new(spent, "calls", json_integer(1));
    json_object_set_new(spent, "failed_calls", json_integer(row_int(call, "status") >= HTTP_BAD ? 1 : 0));
    return spent;
}

/* From the events, which know whose call it was: a box has one name for all who work in it. */
bool
spent_of_agent(RowJob *job, const char *execution_id, Json *usage, Json *models, GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx,
                                      "SELECT data FROM events WHERE execution_id = ? AND kind = "
                                      "'model.called' ORDER BY seq LIMIT ?",
                                      DB_ARGS(db_text(execution_id), db_int(CALLS_MAX)), error);
    bool more = rows != NULL;

    while (more && db_rows_next(rows, &more, error) && more) {
        const char *text = db_rows_text(rows, 0);
        g_autoptr(Json) call = json_decode(text, strlen(text), NULL);
        g_autoptr(Json) spent = call_spent(call);
        const char *provider = row_text(call, "provider"), *name = row_text(call, "model");

        spent_add(usage, spent);
        if (provider != NULL && name != NULL)
            spent_add(model_in(models, provider, name), spent);
    }
    return rows != NULL && !more;
}

/* Of the rows of a task for which `and` holds. */
static bool
read_usage(RowJob *job, const char *task_id, const char *and, Json *usage, Json *models, GError **error)
{
    enum { FIRST_NUMBER = 2 };
    g_autofree char *sql = g_strconcat(
        "SELECT provider, model, SUM(calls), SUM(failed), SUM(input_tokens), SUM(output_tokens), "
        "SUM(cached_tokens), SUM(microusd) FROM usage WHERE task_id = ? AND ",
        and, " GROUP BY provider, model ORDER BY SUM(microusd) DESC, provider, model", NULL);
    g_autoptr(DbRows) rows = db_query(job->tx, sql, DB_ARGS(db_text(task_id)), error);
    bool more = rows != NULL;

    while (more && db_rows_next(rows, &more, error) && more) {
        Json *model = model_in(models, db_rows_text(rows, 0), db_rows_text(rows, 1));

        for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
            json_object_set_new(model, numbers[i], json_integer(db_rows_int(rows, FIRST_NUMBER + (int)i)));
        spent_add(usage, model);
    }
    return rows != NULL && !more;
}

bool
spent_of_task(RowJob *job, const char *task_id, Json *usage, Json *models, GError **error)
{
    return read_usage(job, task_id, "1 = 1", usage, models, error);
}

bool
spent_on_plan(RowJob *job, const char *task_id, Json *usage, GError **error)
{
    g_autoptr(Json) models = json_array();

    return read_usage(job, task_id,
                      "NOT EXISTS (SELECT 1 FROM task_executions e WHERE e.agent = usage.agent_id)", usage,
                      models, error);
}

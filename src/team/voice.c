/* SPDX-License-Identifier: Apache-2.0 */
/* What a model said: words of a stranger, of which only what was understood goes on. */
#include <string.h>

#include "base/err.h"
#include "report/text.h"
#include "team/council.h"

/* A list of texts, each bounded; anything else in it is left out. */
static Json *
read_dissent(Json *said)
{
    Json *list = json_array();

    for (size_t i = 0; i < json_array_size(said) && json_array_size(list) < COUNCIL_DISSENT_MAX; i++) {
        const char *text = json_string_value(json_array_get(said, i));
        g_autofree char *line = text != NULL ? text_dup_name(text, PLAN_TITLE_MAX * 2, &(bool){false}) : NULL;

        if (line != NULL && line[0] != '\0')
            json_array_append_new(list, json_string(line));
    }
    return list;
}

/* {"plan": {…}, "dissent": […]}, or the plan itself. */
static Json *
read_synthesis(Json *found, GError **error)
{
    Json *inner = json_object_get(found, "plan");
    Json *plan = plan_check(inner != NULL ? inner : found, error);

    if (plan == NULL)
        return NULL;
    return json_pack("{s:o, s:o}", "plan", plan, "dissent", read_dissent(json_object_get(found, "dissent")));
}

/* {"ranking": ["B", "A"]}: every letter once. */
static Json *
read_ranking(Json *found, const guint *order, guint n, GError **error)
{
    Json *letters = json_object_get(found, "ranking");
    g_autoptr(Json) seats = json_array();
    bool seen[COUNCIL_SEATS_MAX] = {false};

    if (json_array_size(letters) != n) {
        err_set(error, ERR_INVALID, "ranking: must be a list of %u letters", n);
        return NULL;
    }
    for (guint i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(letters, i));
        guint k = text != NULL && text[0] >= 'A' && text[1] == '\0' ? (guint)(text[0] - 'A') : n;

        if (k >= n || seen[k]) {
            err_set(error, ERR_INVALID, "ranking[%u]: must be a letter from A to %c, each once", i,
                    (char)('A' + n - 1));
            return NULL;
        }
        seen[k] = true;
        json_array_append_new(seats, json_integer((json_int_t)order[k]));
    }
    return g_steal_pointer(&seats);
}

void
voice_read(const char *phase, const char *text, const guint *order, guint n, Json *ret_voice)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *kept = text_dup_lines(text, PLAN_VOICE_MAX, &(bool){false});
    g_autoptr(Json) found = plan_find(text, &error);
    Json *body = NULL;

    if (found != NULL && strcmp(phase, "opinion") == 0)
        body = plan_check(found, &error);
    else if (found != NULL && strcmp(phase, "ranking") == 0)
        body = read_ranking(found, order, n, &error);
    else if (found != NULL)
        body = read_synthesis(found, &error);
    json_object_set_new(ret_voice, "state", json_string(body != NULL ? "answered" : "malformed"));
    json_object_set_new(ret_voice, "text", json_string(kept));
    if (body != NULL) {
        json_object_set_new(ret_voice, "body", body);
        return;
    }
    g_autofree char *problem = text_dup_name(error->message, PLAN_TITLE_MAX * 2, &(bool){false});

    json_object_set_new(ret_voice, "problem", json_string(problem));
}

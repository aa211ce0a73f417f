/* SPDX-License-Identifier: Apache-2.0 */
#include "github-world.h"

#include <string.h>

static gint64
fake_now(void *ctx)
{
    return ((GithubWorld *)ctx)->now_us;
}

static guint32
fake_random(void *ctx)
{
    return 0;
}

static char *
fake_token(void *ctx)
{
    return g_strdup(WORLD_TOKEN);
}

static void
steps_free(gpointer data)
{
    ScriptStep *steps = data;

    g_free((gpointer)(guintptr)steps[1].bytes);
    g_free(steps);
}

/* NULL bytes: it takes the request and closes. */
static void
add_script(GithubWorld *w, const char *answer)
{
    ScriptStep *steps = g_new0(ScriptStep, 3);
    bool is_slow = strcmp(answer, "slow") == 0, is_cut = strcmp(answer, "cut") == 0;

    steps[0].op = SCRIPT_REQUEST;
    steps[1] = (ScriptStep){is_slow ? SCRIPT_HOLD : is_cut ? SCRIPT_RESET : SCRIPT_SEND, g_strdup(answer)};
    steps[2].op = SCRIPT_CLOSE;
    g_ptr_array_add(w->scripts, steps);
}

/* The address is known only once somebody listens. */
static void
fill_in(GithubWorld *w)
{
    g_autofree char *url = script_url(w->script, "");

    for (guint i = 0; i < w->scripts->len; i++) {
        ScriptStep *step = (ScriptStep *)w->scripts->pdata[i] + 1;
        g_autoptr(GString) text = g_string_new(step->bytes);

        g_string_replace(text, "%s", url, 0);
        g_free((gpointer)(guintptr)step->bytes);
        step->bytes = g_strdup(text->str);
    }
}

GithubWorld *
github_world_new(const char *const *answers)
{
    GithubWorld *w = g_new0(GithubWorld, 1);

    w->loop = loop_new(NULL);
    w->now_us = 1000 * (gint64)G_USEC_PER_SEC;
    w->scripts = g_ptr_array_new_with_free_func(steps_free);
    for (; *answers != NULL; answers++)
        add_script(w, *answers);
    w->script = script_serve((const ScriptStep *const *)w->scripts->pdata, w->scripts->len, NULL);
    fill_in(w);
    g_autofree char *base = script_url(w->script, "/api/v3");

    w->client = github_client_new(&(GithubClientSpec){.loop = w->loop,
                                                      .base_url = base,
                                                      .token = fake_token,
                                                      .ctx = w,
                                                      .write_pause_ms = 1000,
                                                      .timeout_ms = 300,
                                                      .now_us = fake_now,
                                                      .random = fake_random});
    return w;
}

static void
forget(GithubWorld *w)
{
    g_clear_pointer(&w->json, json_decref);
    g_clear_pointer(&w->next, g_free);
    g_clear_error(&w->error);
    w->has_come = false;
}

void
github_world_free(GithubWorld *w)
{
    github_client_free(w->client);
    script_free(w->script);
    forget(w);
    loop_free(w->loop);
    g_ptr_array_unref(w->scripts);
    g_free(w);
}

void
on_github_answer(const GithubAnswer *answer, const GError *error, void *data)
{
    GithubWorld *w = data;

    g_assert_false(w->has_come);
    w->has_come = true;
    w->status = answer->status;
    w->json = json_incref(answer->json);
    w->next = g_strdup(answer->next);
    w->cached = answer->cached;
    w->found = answer->found;
    w->wait_us = answer->wait_us;
    w->error = error != NULL ? g_error_copy(error) : NULL;
    g_assert_true(error == NULL || strstr(error->message, WORLD_TOKEN) == NULL);
}

static void
jump(GithubWorld *w)
{
    GithubStats stats;
    gint64 due = github_client_due_us(w->client);

    github_client_stats(w->client, &stats);
    if (stats.under_way > 0 || due <= w->now_us)
        return;
    w->waited_us += due - w->now_us;
    w->now_us = due;
    github_client_wake(w->client);
}

void
github_world_wait(GithubWorld *w)
{
    while (!w->has_come) {
        g_main_context_iteration(NULL, TRUE);
        if (!w->has_come)
            jump(w);
    }
}

void
github_world_call(GithubWorld *w, const GithubRequest *request)
{
    forget(w);
    w->waited_us = 0;
    github_call(w->client, request, on_github_answer, w);
    g_assert_false(w->has_come);
    github_world_wait(w);
}

void
github_world_fails(GithubWorld *w, ErrKind kind, const char *text)
{
    g_assert_error(w->error, ERR_DOMAIN, (int)kind);
    if (text != NULL && strstr(w->error->message, text) == NULL)
        g_error("'%s' is not in '%s'", text, w->error->message);
}

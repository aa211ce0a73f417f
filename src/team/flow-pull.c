/* SPDX-License-Identifier: Apache-2.0 */
/* The pull request of a task: found, or opened. */
#include "base/err.h"
#include "forge/pull.h"
#include "team/flow-private.h"

typedef struct Pull {
    FlowTask *t;
    Repo *repo; /* a reference */
    bool draft;
    FlowPullFunc then;
} Pull;

static void
pull_free(Pull *p)
{
    repo_unref(p->repo);
    g_free(p);
}

char *
flow_pull_url(FlowTask *t, gint64 number)
{
    Repo *repo = flow_repo(t, NULL);
    RepoInfo info = {.owner = "", .name = ""};

    if (repo != NULL)
        repo_info(repo, &info);
    return g_strdup_printf("%s/%s/%s/pull/%" G_GINT64_FORMAT, t->flow->team->spec.address, info.owner,
                           info.name, number);
}

static void
found(Pull *p, const Json *thread)
{
    gint64 number = row_int(thread, "number");
    g_autofree char *url = flow_pull_url(p->t, number);

    p->then(p->t, p->repo, number, url);
    pull_free(p);
}

static void on_opened(Json *value, const GError *error, void *data);

/* One that was closed with its task, which goes on now, is opened again. */
static void
reopen(Pull *p, const Json *thread)
{
    const ThreadEdit edit = {
        .actor = "coop", .number = row_int(thread, "number"), .kind = "pull", .state = "open"};

    thread_edit(p->t->flow->team->spec.forge, p->repo, &edit, on_opened, p);
}

static void
on_opened(Json *value, const GError *error, void *data)
{
    Pull *p = data;

    if (flow_goes_on(p->t, error))
        found(p, value);
    else
        pull_free(p);
}

static char **
step_titles(const Json *rows)
{
    GPtrArray *titles = g_ptr_array_new();
    size_t i;
    const Json *step;

    json_array_foreach(json_object_get(rows, "steps"), i, step)
        g_ptr_array_add(titles, g_strdup(row_text(step, "title")));
    g_ptr_array_add(titles, NULL);
    return (char **)g_ptr_array_free(titles, FALSE);
}

static void
open_one(Pull *p)
{
    const Json *task = flow_row(p->t);
    const char *address = p->t->flow->team->spec.address;
    g_auto(GStrv) plan = step_titles(p->t->rows);
    g_autofree char *name = g_strdup_printf("task %" G_GINT64_FORMAT, row_int(task, "number"));
    g_autofree char *task_url = g_strdup_printf("%s/api/v1/tasks/%s", address, p->t->id);
    RepoInfo repo;

    repo_info(p->repo, &repo);
    g_autofree char *checks_url = pull_checks_url(address, &repo, row_text(task, "branch"));
    const PullBody text = {.summary = row_text(task, "request"),
                           .task_id = p->t->id,
                           .task_url = task_url,
                           .task_name = name,
                           .checks_url = checks_url,
                           .plan = (const char *const *)plan};
    g_autofree char *body = pull_body_format(&text);
    g_autofree char *title = pull_title_format(row_text(task, "title"), p->draft);
    const PullSpec spec = {.actor = "coop",
                           .head = row_text(task, "branch"),
                           .base = row_text(task, "base_branch"),
                           .title = title,
                           .body = body,
                           .draft = p->draft,
                           .task_id = p->t->id};

    pull_open(p->t->flow->team->spec.forge, p->repo, &spec, on_opened, p);
}

static void
on_listed(Json *value, const GError *error, void *data)
{
    Pull *p = data;
    const Json *thread;

    if (!flow_goes_on(p->t, error)) {
        pull_free(p);
        return;
    }
    thread = json_array_get(json_object_get(value, "items"), 0);
    if (thread == NULL)
        open_one(p);
    else if (flow_is(thread, "state", "closed") && !row_is(thread, "merged"))
        reopen(p, thread);
    else
        found(p, thread);
}

void
flow_pull_find(FlowTask *t, bool draft, FlowPullFunc then)
{
    g_autoptr(GError) error = NULL;
    Repo *repo = flow_repo(t, &error);

    if (repo == NULL) {
        flow_problem(t, error);
        return;
    }
    const ThreadFilter filter = {.kind = "pull", .task_id = t->id, .head = row_text(flow_row(t), "branch")};
    Pull *p = g_new0(Pull, 1);

    *p = (Pull){.t = t, .repo = repo_ref(repo), .draft = draft, .then = then};
    thread_list(t->flow->team->spec.forge, p->repo, &filter, on_listed, p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What Coop sees for itself once the agent's program has ended: the rest is committed, all is pushed, git
 * says what came of it, and the checks are run.  Each of them may be done again: after a restart it begins
 * anew, and finds nothing to commit and nothing to push. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/check-look.h"
#include "forge/records.h"
#include "forge/workspace.h"
#include "team/crew-private.h"
#include "team/flow-private.h"

static void push(Shift *s);

/* ---- the end ---- */

/* What scanners said before a reviewer began is part of what Coop saw. */
static bool
add_scans(Shift *s)
{
    Json *scans = shift_scans(s);
    bool passed = true;
    size_t i;
    const Json *scan;

    json_array_foreach(scans, i, scan) passed &= row_int(scan, "exit_code") == 0;
    if (json_array_size(scans) > 0)
        json_array_extend(json_object_get(s->result, "checks"), scans);
    return passed;
}

void
shift_proved(Shift *s)
{
    bool scanned = add_scans(s);
    Json *ran = json_object_get(s->result, "checks");
    Json *passed = json_array_size(ran) == 0 ? json_null() : json_boolean(!s->checks_failed && scanned);

    json_object_set_new(s->result, "passed", passed);
    FAILPOINT("crew-proved");
    if (shift_text(s, "repository_id") == NULL && !shift_only_checks(s))
        shift_keep_files(s);
    else
        shift_end(s, NULL, NULL);
}

/* What was not taken is the agent's to put right, unless Coop or the machine failed. */
static void
fail(Shift *s, const char *what, const GError *error)
{
    bool ours = err_kind(error) != ERR_INVALID && err_kind(error) != ERR_CONFLICT &&
                err_kind(error) != ERR_DENIED && err_kind(error) != ERR_LIMIT;
    g_autofree char *why = flow_cut(error->message, CREW_PROBLEM_MAX);
    g_autofree char *problem = g_strdup_printf("%s: %s", what, why);

    shift_end(s, ours ? "lost" : "failed", problem);
}

void
shift_kept(Shift *s, const char *path, const GError *error)
{
    if (path != NULL)
        json_object_set_new(s->result, "files", json_string(path));
    /* They are what it was asked for: without them nothing is done. */
    if (error != NULL && strcmp(s->state, "done") == 0)
        fail(s, "its files could not be kept", error);
    else
        shift_end(s, NULL, NULL);
}

/* ---- what git knows ---- */

typedef struct Look {
    Shift *shift;
    char *base;
    char head[GIT_OID_LEN + 1]; /* "": the base */
    CheckLook look;
    GPtrArray *commits; /* "OID TITLE" */
} Look;

static void
look_free(void *data)
{
    Look *look = data;

    check_look_clear(&look->look);
    g_clear_pointer(&look->commits, g_ptr_array_unref);
    shift_unref(look->shift);
    g_free(look->base);
    g_free(look);
}

/* In a thread. */
static bool
look_work(GitRepo *git, void *data, GError **error)
{
    Look *look = data;
    g_autofree char *base = look->base == NULL || git_oid_is_valid(look->base)
                                ? g_strdup(look->base)
                                : git_branch_oid(git, look->base, NULL);
    g_autofree char *without = g_strconcat("^", base, NULL);

    if (look->head[0] == '\0' && base == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no '%s'", look->base);
    if (look->head[0] == '\0')
        g_strlcpy(look->head, base, sizeof look->head);
    const RecordsSpec spec = {
        .args = base != NULL
                    ? GIT_ARGS("log", "-z", "--format=%H %s", "--end-of-options", look->look.head_oid,
                               without)
                    : GIT_ARGS("log", "-z", "-1", "--format=%H %s", "--end-of-options", look->look.head_oid),
        .separator = '\0',
        .max = CREW_COMMITS_MAX};

    g_clear_pointer(&look->commits, g_ptr_array_unref);
    look->commits = records_read(git, &spec, NULL, error);
    return look->commits != NULL && check_look(git, &look->look, error);
}

static Json *
commits_json(const GPtrArray *lines)
{
    Json *list = json_array();

    for (guint i = 0; i < lines->len; i++) {
        const char *line = lines->pdata[i];
        g_autofree char *oid = g_strndup(line, GIT_OID_LEN);
        g_autofree char *title = g_utf8_make_valid(strlen(line) > GIT_OID_LEN ? line + GIT_OID_LEN + 1 : "",
                                                   -1);

        json_array_append_new(list, json_pack("{s:s, s:s}", "oid", oid, "title", title));
    }
    return list;
}

/* What it says of its checks makes no sense: none of them passes. */
static void
refuse_checks(Shift *s, const char *problem)
{
    g_autofree char *said = flow_cut(problem, CREW_PROBLEM_MAX);

    s->checks_failed = true;
    json_array_append_new(json_object_get(s->result, "checks"),
                          json_pack("{s:s, s:s, s:i, s:n, s:s, s:s}", "name", plan_file_name, "run",
                                    "read the checks", "exit_code", 1, "tests", "output", said, "seen_by",
                                    "coop"));
}

/* The repository's, and behind them what was told. */
static void
plan_checks(Shift *s, const CheckPlan *plan)
{
    GPtrArray *told = g_steal_pointer(&s->checks);

    s->checks = shift_planned_checks(plan);
    if (told != NULL)
        g_ptr_array_extend_and_steal(s->checks, told);
}

static void
read_checks(Shift *s, const CheckLook *look)
{
    if (look->plan != NULL)
        plan_checks(s, look->plan);
    if (look->problem == NULL)
        return;
    g_clear_pointer(&s->checks, g_ptr_array_unref);
    refuse_checks(s, look->problem);
}

static void
on_looked(void *data, const GError *error)
{
    Look *look = data;
    Shift *s = look->shift;

    if (s->crew == NULL || s->phase != SHIFT_PROVING)
        return;
    if (error != NULL) {
        fail(s, "what it pushed could not be looked at", error);
        return;
    }
    json_object_set_new(s->result, "head_oid", json_string(look->head));
    s->commits = commits_json(look->commits);
    json_object_set(s->result, "commits", s->commits);
    if (strcmp(shift_text(s, "kind"), "review") != 0 && (shift_only_checks(s) || s->checks == NULL))
        read_checks(s, &look->look);
    if (s->checks != NULL)
        shift_check_all(s);
    else
        shift_proved(s);
}

static void
look(Shift *s)
{
    Look *look = g_new0(Look, 1);

    look->shift = shift_ref(s);
    look->base = g_strdup(shift_text(s, "git_base"));
    g_strlcpy(look->head, s->head_oid, sizeof look->head);
    look->look.base_oid = look->look.head_oid = look->head;
    /* Its commands come from where the task began, and not from what is looked at. */
    if (shift_only_checks(s))
        look->look.base_oid = row_text(json_object_get(s->row, "task"), "base_oid");
    forge_read(s->crew->team->spec.forge, shift_repo(s), "look at an agent's work", look_work, on_looked,
               look, look_free);
}

/* ---- commit and push ---- */

static void
on_pushed(Json *value, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;

    if (s->crew == NULL || s->phase != SHIFT_PROVING)
        return;
    if (error != NULL && err_kind(error) != ERR_INVALID && err_kind(error) != ERR_DENIED &&
        ++s->push_try < CREW_PUSH_TRIES) {
        shift_timer(s, CREW_PUSH_WAIT_MS << s->push_try);
        return;
    }
    if (error != NULL) {
        fail(s, "what it made could not be pushed", error);
        return;
    }
    FAILPOINT("crew-pushed");
    g_strlcpy(s->head_oid, row_text(value, "commit"), sizeof s->head_oid);
    look(s);
}

static void
push(Shift *s)
{
    workspace_push(s->crew->team->spec.forge, s->box, shift_repo(s), s->actor, on_pushed, shift_ref(s));
}

void
shift_prove_timer(Shift *s)
{
    push(s);
}

static void
on_committed(Json *value, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;

    if (s->crew == NULL || s->phase != SHIFT_PROVING)
        return;
    /* Nothing has changed since. */
    if (error != NULL && err_kind(error) != ERR_CONFLICT) {
        fail(s, "what it left could not be committed", error);
        return;
    }
    FAILPOINT("crew-committed");
    push(s);
}

void
shift_prove(Shift *s)
{
    Repo *repo = shift_repo(s);

    s->phase = SHIFT_PROVING;
    g_clear_pointer(&s->result, json_decref);
    s->result = json_pack("{s:n, s:[], s:n, s:[]}", "head_oid", "commits", "passed", "checks");
    s->checks = shift_told_checks(s);
    if (repo == NULL && shift_text(s, "repository_id") != NULL)
        shift_end(s, "failed", "its repository is gone");
    else if (repo == NULL && s->checks != NULL)
        shift_check_all(s);
    else if (repo == NULL)
        shift_proved(s);
    else if (shift_writes(s))
        workspace_commit(s->crew->team->spec.forge, s->box, &(CommitSpec){.repo = repo, .actor = s->actor},
                         on_committed, shift_ref(s));
    else /* who only looked has changed nothing that counts: the head is where it began */
        look(s);
}

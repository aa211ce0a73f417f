/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and requests for reviews that were changed there.  What does not fit here is left out. */
#include <string.h>

#include "forge/arrival.h"
#include "forge/label-private.h"
#include "forge/label.h"
#include "forge/pull-private.h"
#include "forge/thread-private.h"

static bool
has_label(const Json *pull, const char *name)
{
    g_autofree char *folded = g_utf8_casefold(name, -1);
    size_t i;
    Json *label;

    json_array_foreach(json_object_get(pull, "labels"), i, label)
    {
        g_autofree char *other = g_utf8_casefold(row_text(label, "name"), -1);

        if (strcmp(folded, other) == 0)
            return true;
    }
    return false;
}

static bool
has_reviewer(const Json *pull, const char *actor)
{
    size_t i;
    Json *person;

    json_array_foreach(json_object_get(pull, "reviewers"), i, person)
    {
        if (g_ascii_strcasecmp(row_text(person, "actor"), actor) == 0)
            return true;
    }
    return false;
}

/* What one of a list is here, and how it is changed. */
typedef struct NameKind {
    const char *start; /* before its name */
    bool (*has)(const Json *pull, const char *name);
    bool (*fits)(RowJob *job, const Json *pull, const char *name, GError **error);
    bool (*change)(RowJob *job, const ThreadNames *names, Json **ret_value, GError **error);
} NameKind;

static bool
label_fits(RowJob *job, const Json *pull, const char *name, GError **error)
{
    g_autofree char *clean = row_dup_line("the label", name, LABEL_NAME_MAX, ROW_TEXT_NEEDED, NULL);
    g_autofree char *folded = label_dup_folded(name);
    gint64 others = 0;

    return g_strcmp0(clean, name) == 0 &&
           json_array_size(json_object_get(pull, "labels")) < THREAD_LABELS_MAX &&
           row_ask_int(job, "SELECT COUNT(*) FROM labels WHERE repository_id = ? AND folded <> ?",
                       DB_ARGS(db_text(job->repository_id), db_text(folded)), &others, error) &&
           others < LABEL_COUNT_MAX;
}

static bool
reviewer_fits(RowJob *job, const Json *pull, const char *actor, GError **error)
{
    g_autofree char *found = people_find(job->people, actor, NULL);

    return found != NULL && strcmp(row_text(pull, "state"), "open") == 0 &&
           json_array_size(json_object_get(pull, "reviewers")) < THREAD_REVIEWERS_MAX;
}

static const NameKind label_kind = {"", has_label, label_fits, thread_label_row};
static const NameKind reviewer_kind = {"github:", has_reviewer, reviewer_fits, pull_reviewers_row};

static bool
change_one(RowJob *job, const Arrival *a, const NameKind *kind, ListChange how, const char *given,
           bool *ret_changed, GError **error)
{
    g_autofree char *name = g_strconcat(kind->start, given, NULL);
    g_autoptr(Json) pull = thread_load(job, a->number, "pull", error), new = NULL;
    g_autoptr(GError) failed = NULL;
    const char *names[] = {name, NULL};

    if (pull == NULL)
        return false;
    if (kind->has(pull, name) == (how == LIST_ADD) || !kind->fits(job, pull, name, &failed)) {
        if (failed != NULL)
            g_propagate_error(error, g_steal_pointer(&failed));
        return failed == NULL;
    }
    *ret_changed = true;
    return kind->change(job, &(ThreadNames){a->actor, a->number, how, names}, &new, error);
}

static bool
change_all(RowJob *job, const Arrival *a, const NameKind *kind, ListChange how, const Json *list,
           bool *ret_changed, GError **error)
{
    size_t i;
    Json *item;

    json_array_foreach(list, i, item)
    {
        if (!change_one(job, a, kind, how, json_string_value(item), ret_changed, error))
            return false;
    }
    return true;
}

bool
arrival_names(DbTx *tx, const Arrival *a, const ArrivalNames *names, Json **ret_pull, bool *ret_changed,
              GError **error)
{
    g_auto(RowJob) job = {0};

    row_job_init(&job, tx, a->repository_id);
    if (!change_all(&job, a, &label_kind, LIST_ADD, names->labels_added, ret_changed, error) ||
        !change_all(&job, a, &label_kind, LIST_REMOVE, names->labels_removed, ret_changed, error) ||
        !change_all(&job, a, &reviewer_kind, LIST_ADD, names->reviewers_added, ret_changed, error) ||
        !change_all(&job, a, &reviewer_kind, LIST_REMOVE, names->reviewers_removed, ret_changed, error))
        return false;
    *ret_pull = thread_load(&job, a->number, "pull", error);
    return *ret_pull != NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/event-filter.h"

#include <string.h>

struct FilterCopy {
    EventFilter filter;
    gatomicrefcount refs;
    const char *block[]; /* the list of kinds with its NULL, then all the texts */
};

static size_t
text_size(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static const char *
put_text(char **at, const char *text)
{
    char *start = *at;

    if (text == NULL)
        return NULL;
    *at = g_stpcpy(start, text) + 1;
    return start;
}

static size_t
count_kinds(const EventFilter *f)
{
    size_t n = 0;

    while (f->kinds != NULL && f->kinds[n] != NULL)
        n++;
    return n;
}

FilterCopy *
filter_copy_new(const EventFilter *f)
{
    if (f == NULL || (f->task_id == NULL && f->squad_id == NULL && f->box_id == NULL &&
                      f->execution_id == NULL && f->kinds == NULL && f->owner == NULL))
        return NULL;
    size_t n = count_kinds(f);
    size_t texts = text_size(f->task_id) + text_size(f->squad_id) + text_size(f->box_id) +
                   text_size(f->execution_id) + text_size(f->owner);
    for (size_t i = 0; i < n; i++)
        texts += text_size(f->kinds[i]);

    FilterCopy *copy = g_malloc(sizeof *copy + (n + 1) * sizeof(char *) + texts);
    char *at = (char *)&copy->block[n + 1];
    for (size_t i = 0; i < n; i++)
        copy->block[i] = put_text(&at, f->kinds[i]);
    copy->block[n] = NULL;
    copy->filter = (EventFilter){
        .task_id = put_text(&at, f->task_id),
        .squad_id = put_text(&at, f->squad_id),
        .box_id = put_text(&at, f->box_id),
        .execution_id = put_text(&at, f->execution_id),
        .kinds = f->kinds != NULL ? copy->block : NULL,
        .owner = put_text(&at, f->owner),
    };
    g_atomic_ref_count_init(&copy->refs);
    return copy;
}

FilterCopy *
filter_copy_ref(FilterCopy *copy)
{
    if (copy != NULL)
        g_atomic_ref_count_inc(&copy->refs);
    return copy;
}

void
filter_copy_unref(FilterCopy *copy)
{
    if (copy != NULL && g_atomic_ref_count_dec(&copy->refs))
        g_free(copy);
}

const EventFilter *
filter_copy_get(const FilterCopy *copy)
{
    return copy != NULL ? &copy->filter : NULL;
}

bool
event_kind_matches(const char *pattern, const char *kind)
{
    size_t len = strlen(pattern);

    /* "box.*": the star stands for what follows the dot. */
    if (len >= 2 && strcmp(pattern + len - 2, ".*") == 0)
        return strncmp(pattern, kind, len - 1) == 0;
    return strcmp(pattern, kind) == 0;
}

static bool
kind_passes(const FilterCopy *copy, const char *kind)
{
    if (copy == NULL || copy->filter.kinds == NULL)
        return true;
    for (const char *const *k = copy->filter.kinds; *k != NULL; k++) {
        if (event_kind_matches(*k, kind))
            return true;
    }
    return false;
}

static bool
id_passes(const char *wanted, const char *id)
{
    return wanted == NULL || (id != NULL && strcmp(wanted, id) == 0);
}

/* "" is nobody, also when it asks. */
static bool
owner_passes(const char *wanted, const char *owner)
{
    return wanted == NULL || (owner != NULL && owner[0] != '\0' &&
                              (strcmp(wanted, owner) == 0 || strcmp(owner, EVENT_FOR_ALL) == 0));
}

bool
filter_row_passes(const FilterCopy *copy, const EventRow *row)
{
    if (copy == NULL)
        return true;
    const EventFilter *f = &copy->filter;
    return id_passes(f->task_id, row->task_id) && id_passes(f->squad_id, row->squad_id) &&
           id_passes(f->box_id, row->box_id) && id_passes(f->execution_id, row->execution_id) &&
           owner_passes(f->owner, row->owner) && kind_passes(copy, row->kind);
}

bool
filter_event_passes(const FilterCopy *copy, const Event *e)
{
    const EventRow row = {.kind = e->kind,
                          .task_id = e->task_id,
                          .squad_id = e->squad_id,
                          .box_id = e->box_id,
                          .execution_id = e->execution_id,
                          .owner = e->owner};

    return filter_row_passes(copy, &row);
}

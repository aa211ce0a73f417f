/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/merge-parse.h"

#include <string.h>

#include "base/err.h"
#include "report/text.h"

typedef struct Records {
    const char *at, *end;
} Records;

static void
conflict_free(MergeConflict *conflict)
{
    g_free(conflict->path);
    g_free(conflict);
}

static void
note_free(MergeNote *note)
{
    g_strfreev(note->paths);
    g_free(note->kind);
    g_free(note->text);
    g_free(note);
}

void
merge_result_free(MergeResult *result)
{
    if (result == NULL)
        return;
    g_ptr_array_unref(result->conflicts);
    g_ptr_array_unref(result->notes);
    g_free(result);
}

static MergeResult *
result_new(bool clean)
{
    MergeResult *result = g_new0(MergeResult, 1);

    result->clean = clean;
    result->conflicts = g_ptr_array_new_with_free_func((GDestroyNotify)conflict_free);
    result->notes = g_ptr_array_new_with_free_func((GDestroyNotify)note_free);
    return result;
}

/* The next one, which ends with NUL; NULL: there is none. */
static const char *
next_record(Records *r)
{
    const char *record = r->at;
    const char *end = r->at < r->end ? memchr(r->at, '\0', (size_t)(r->end - r->at)) : NULL;

    if (end == NULL)
        return NULL;
    r->at = end + 1;
    return record;
}

static MergeSide *
side_of(MergeConflict *conflict, char stage)
{
    switch (stage) {
    case '1':
        return &conflict->base;
    case '2':
        return &conflict->ours;
    case '3':
        return &conflict->theirs;
    default:
        return NULL;
    }
}

/* The stages of a path come one after the other. */
static MergeConflict *
conflict_at(MergeResult *result, const char *path)
{
    GPtrArray *all = result->conflicts;
    MergeConflict *last = all->len > 0 ? all->pdata[all->len - 1] : NULL;

    if (last != NULL && strcmp(last->path, path) == 0)
        return last;
    if (all->len == MERGE_CONFLICTS_MAX || strlen(path) > MERGE_PATH_MAX) {
        result->truncated = true;
        return NULL;
    }
    MergeConflict *conflict = g_new0(MergeConflict, 1);

    conflict->path = g_strdup(path);
    g_ptr_array_add(all, conflict);
    return conflict;
}

/* "MODE OID STAGE\tPATH" */
static bool
take_stage(MergeResult *result, const char *record)
{
    const char *tab = strchr(record, '\t');
    g_autofree char *head = tab != NULL ? g_strndup(record, (size_t)(tab - record)) : g_strdup("");
    g_auto(GStrv) words = g_strsplit(head, " ", 4);
    guint64 mode;

    if (g_strv_length(words) != 3 || tab[1] == '\0' ||
        !g_ascii_string_to_unsigned(words[0], 8, 1, 0177777, &mode, NULL) || !git_oid_is_valid(words[1]) ||
        strlen(words[2]) != 1 || strchr("123", words[2][0]) == NULL)
        return false;
    MergeConflict *conflict = conflict_at(result, tab + 1);

    if (conflict == NULL)
        return true;
    MergeSide *side = side_of(conflict, words[2][0]);

    side->mode = (guint)mode;
    memcpy(side->oid, words[1], sizeof side->oid);
    return true;
}

/* "N", N paths, the kind and the text. */
static bool
take_note(MergeResult *result, Records *r)
{
    const char *count = next_record(r);
    g_autoptr(GStrvBuilder) paths = g_strv_builder_new();
    bool cut = false;
    guint64 n;

    if (count == NULL || !g_ascii_string_to_unsigned(count, 10, 0, G_MAXUINT32, &n, NULL))
        return false;
    for (guint64 i = 0; i < n; i++) {
        const char *path = next_record(r);

        if (path == NULL)
            return false;
        g_strv_builder_add(paths, path);
    }
    const char *kind = next_record(r), *text = next_record(r);

    if (text == NULL)
        return false;
    if (!g_str_has_prefix(kind, "CONFLICT") || result->notes->len == MERGE_NOTES_MAX)
        return true;
    MergeNote *note = g_new0(MergeNote, 1);

    note->paths = g_strv_builder_end(paths);
    note->kind = text_dup_name(kind, MERGE_NOTE_MAX, &cut);
    note->text = text_dup_name(text, MERGE_NOTE_MAX, &cut);
    g_ptr_array_add(result->notes, note);
    return true;
}

MergeResult *
merge_result_parse(const guint8 *bytes, size_t n, bool clean, GError **error)
{
    Records r = {(const char *)bytes, (const char *)bytes + n};
    g_autoptr(MergeResult) result = result_new(clean);
    const char *tree = next_record(&r), *record = NULL;
    bool good = tree != NULL && git_oid_is_valid(tree);

    if (good)
        memcpy(result->tree, tree, sizeof result->tree);
    while (good && (record = next_record(&r)) != NULL && record[0] != '\0')
        good = take_stage(result, record);
    while (good && r.at < r.end)
        good = take_note(result, &r);
    if (!good || clean != (result->conflicts->len == 0 && result->notes->len == 0 && !result->truncated)) {
        err_set(error, ERR_INTERNAL, "git's answer to a merge is none");
        return NULL;
    }
    return g_steal_pointer(&result);
}

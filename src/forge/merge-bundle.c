/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/batch.h"
#include "forge/merge-parse.h"

/* Each conflict asks for four objects: its three sides and what git made of them. */
enum { SIDES = 3, PER_FILE = SIDES + 1 };

static const MergeSide *
side_at(const MergeConflict *conflict, guint i)
{
    const MergeSide *const sides[SIDES] = {&conflict->base, &conflict->ours, &conflict->theirs};

    return sides[i];
}

/* A side that is not there asks for an object that is none. */
static GPtrArray *
names_of(const MergeResult *result, guint files)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < files; i++) {
        const MergeConflict *conflict = result->conflicts->pdata[i];

        for (guint s = 0; s < SIDES; s++)
            g_ptr_array_add(
                names, g_strdup(side_at(conflict, s)->mode != 0 ? side_at(conflict, s)->oid : git_oid_zero));
        g_ptr_array_add(names, g_strdup_printf("%s:%s", result->tree, conflict->path));
    }
    return names;
}

static Json *
text_json(const GByteArray *bytes)
{
    const char *text = (const char *)bytes->data;

    if (memchr(bytes->data, '\0', bytes->len) != NULL || !g_utf8_validate(text, bytes->len, NULL))
        return NULL;
    return json_stringn(text, bytes->len);
}

static Json *
version_json(const BatchObject *object, const MergeSide *side)
{
    if (side != NULL && side->mode == 0)
        return json_null();
    bool is_file = strcmp(object->type, "blob") == 0;

    if (side == NULL && !is_file)
        return json_null();
    Json *text = is_file && object->bytes != NULL ? text_json(object->bytes) : NULL;
    g_autofree char *mode = side != NULL ? g_strdup_printf("%06o", side->mode) : NULL;

    return json_pack("{s:s, s:s?, s:o, s:b, s:o}", "oid", side != NULL ? side->oid : object->oid, "mode",
                     mode, "size", is_file ? json_integer((json_int_t)object->size) : json_null(), "binary",
                     is_file && object->bytes != NULL && text == NULL, "text",
                     text != NULL ? text : json_null());
}

static Json *
file_json(const MergeConflict *conflict, void *const *objects)
{
    g_autofree char *path = g_utf8_make_valid(conflict->path, -1);

    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o}", "path", path, "base", version_json(objects[0], &conflict->base), "ours",
        version_json(objects[1], &conflict->ours), "theirs", version_json(objects[2], &conflict->theirs),
        "merged", version_json(objects[SIDES], NULL));
}

static Json *
notes_json(const MergeResult *result)
{
    Json *notes = json_array();

    for (guint i = 0; i < result->notes->len; i++) {
        const MergeNote *note = result->notes->pdata[i];
        Json *paths = json_array();

        for (guint j = 0; note->paths[j] != NULL; j++) {
            g_autofree char *path = g_utf8_make_valid(note->paths[j], -1);

            json_array_append_new(paths, json_string(path));
        }
        json_array_append_new(
            notes, json_pack("{s:s, s:o, s:s}", "kind", note->kind, "paths", paths, "text", note->text));
    }
    return notes;
}

static Json *
intent_json(const MergeIntent *intent)
{
    return json_pack("{s:s, s:s, s:s?, s:s?}", "name", intent->name, "oid", intent->oid, "title",
                     intent->title, "body", intent->body);
}

Json *
merge_bundle(GitRepo *repo, const MergeResult *result, const MergeIntent *ours, const MergeIntent *theirs,
             GError **error)
{
    guint n = MIN(result->conflicts->len, BUNDLE_FILES_MAX);
    g_autoptr(GPtrArray) names = names_of(result, n);
    g_autofree char *base = NULL;
    g_autoptr(Json) files = json_array();

    if (!commit_merge_base(repo, ours->oid, theirs->oid, &base, error))
        return NULL;
    g_autoptr(GPtrArray) objects = batch_read(repo, (const char *const *)names->pdata, names->len,
                                              BUNDLE_TEXT_MAX, BUNDLE_TOTAL_MAX, error);

    if (objects == NULL)
        return NULL;
    for (guint i = 0; i < n; i++)
        json_array_append_new(files, file_json(result->conflicts->pdata[i], objects->pdata + PER_FILE * i));
    bool truncated = result->truncated || n < result->conflicts->len;

    return json_pack("{s:s?, s:o, s:o, s:b, s:O, s:o}", "merge_base", base, "ours", intent_json(ours),
                     "theirs", intent_json(theirs), "truncated", truncated, "files", files, "notes",
                     notes_json(result));
}

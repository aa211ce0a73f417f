/* SPDX-License-Identifier: Apache-2.0 */
/* Tags that are objects of their own. */
#include <string.h>

#include "api/routes.h"
#include "api/v3/content.h"
#include "api/v3/scene.h"
#include "base/err.h"
#include "forge/batch.h"

typedef struct Tag {
    char *object, *type, *name;
    GitPerson tagger;
    const char *message; /* in the text */
} Tag;

static void
tag_clear(Tag *tag)
{
    g_free(tag->object);
    g_free(tag->type);
    g_free(tag->name);
    g_free(tag->tagger.name);
    g_free(tag->tagger.email);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Tag, tag_clear)

static void
take_header(Tag *tag, const char *line, const char *end)
{
    const struct {
        const char *key;
        char **ret;
    } words[] = {{"object ", &tag->object}, {"type ", &tag->type}, {"tag ", &tag->name}};

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        size_t n = strlen(words[i].key);

        if (*words[i].ret == NULL && g_str_has_prefix(line, words[i].key))
            *words[i].ret = g_strndup(line + n, (size_t)(end - line) - n);
    }
    if (tag->tagger.name == NULL && g_str_has_prefix(line, "tagger "))
        git_person_parse(line + strlen("tagger "), end, &tag->tagger);
}

static bool
tag_parse(const char *text, Tag *ret, GError **error)
{
    const char *line = text, *end;

    for (; *line != '\0' && *line != '\n'; line = *end != '\0' ? end + 1 : end) {
        end = strchrnul(line, '\n');
        take_header(ret, line, end);
    }
    ret->message = *line == '\n' ? line + 1 : line;
    return (ret->object != NULL && ret->type != NULL && ret->name != NULL) ||
           err_set(error, ERR_INTERNAL, "this is no tag that can be read");
}

static Json *
render(const V3Place *place, const char *oid, const Tag *tag)
{
    g_autofree char *kind = g_strconcat(tag->type, "s", NULL);
    bool signed_ = strstr(tag->message, "-----BEGIN ") != NULL;
    Json *tagger = tag->tagger.name == NULL ? json_null()
                                            : json_pack("{s:o, s:o, s:o}", "name", v3_text(tag->tagger.name),
                                                        "email", v3_text(tag->tagger.email), "date",
                                                        v3_time(tag->tagger.time_s * G_USEC_PER_SEC));

    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:{s:o, s:s, s:o}, s:{s:b, s:s, s:n, s:n}}", "node_id",
                     oid, "sha", oid, "url", v3_format("%s/git/tags/%s", place->api, oid), "tag",
                     v3_text(tag->name), "message", v3_text(tag->message), "tagger", tagger, "object", "type",
                     v3_text(tag->type), "sha", tag->object, "url",
                     v3_format("%s/git/%s/%s", place->api, kind, tag->object), "verification", "verified",
                     false, "reason", signed_ ? "unknown_key" : "unsigned", "signature", "payload");
}

Json *
v3_tag(GitRepo *git, const V3Place *place, const char *oid, GError **error)
{
    const char *const names[] = {oid};
    g_autoptr(GPtrArray) objects = batch_read(git, names, 1, COMMIT_OBJECT_MAX, COMMIT_OBJECT_MAX, error);
    g_auto(Tag) tag = {0};

    if (objects == NULL)
        return NULL;
    const BatchObject *object = objects->pdata[0];

    if (strcmp(object->type, "tag") != 0) {
        err_set(error, ERR_NOT_FOUND, "there is no tag %s", oid);
        return NULL;
    }
    if (object->bytes == NULL) {
        err_set(error, ERR_LIMIT, "the tag has more than %d bytes", COMMIT_OBJECT_MAX);
        return NULL;
    }
    g_autofree char *text = g_strndup((const char *)object->bytes->data, object->bytes->len);

    return tag_parse(text, &tag, error) ? render(place, oid, &tag) : NULL;
}

typedef struct TagWork {
    V3Work work;
    const char *oid;
} TagWork;

static bool
get_work(GitRepo *git, void *data, GError **error)
{
    TagWork *w = data;

    if (!git_oid_is_valid(w->oid))
        return err_set(error, ERR_NOT_FOUND, "this is no object's name");
    w->work.value = v3_tag(git, &w->work.place, w->oid, error);
    return w->work.value != NULL;
}

static void
get_tag(ApiCall *call)
{
    TagWork *w = V3_WORK_NEW(TagWork, call);

    if (w == NULL)
        return;
    w->oid = call_param(call, "sha");
    v3_work_read(&w->work, "show a tag", get_work);
}

const ApiRoute v3_tags_routes[] = {
    {"GET", V3_REPO "/git/tags/{sha}", SCOPE_READ, ROUTE_BASIC, get_tag},
    {NULL},
};

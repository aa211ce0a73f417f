/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/contents.h"
#include "report/text.h"
#include "team/plan.h"

/* Whoever wrote the plan, its words end up in prompts, commits and terminals: each is copied through
 * report/text.h, and nothing is taken over that was not read. */
typedef struct Checker {
    Json *features, *steps; /* in their whole form */
} Checker;

/* What may be left out may be null too. */
static Json *
without_nulls(Json *object)
{
    Json *copy = json_object(), *value;
    const char *key;

    json_object_foreach(object, key, value)
    {
        if (!json_is_null(value))
            (void)json_object_set(copy, key, value); /* fails for text that is not UTF-8: there is none */
    }
    return copy;
}

static bool
read_object(Json *value, const JsonField *fields, GError **error)
{
    return json_is_object(value) ? json_read(value, fields, error)
                                 : err_set(error, ERR_INVALID, "must be an object");
}

static char *
clean_line(const char *text)
{
    return text_dup_name(text, strlen(text), &(bool){false});
}

/* NULL, or nothing that can be seen: `otherwise`. */
static Json *
dup_line(const char *text, const char *otherwise)
{
    g_autofree char *line = clean_line(text != NULL ? text : "");

    return json_string(line[0] != '\0' ? line : otherwise);
}

static Json *
dup_lines(const char *text)
{
    g_autofree char *lines = text_dup_lines(text, strlen(text), &(bool){false});

    return json_string(g_strstrip(lines));
}

/* Names in small letters; blanks and underscores are written `join`. */
static char *
dup_word(const char *what, const char *text, char join, GError **error)
{
    g_autofree char *word = g_ascii_strdown(text, -1);

    g_strdelimit(word, " _-", join);
    for (const char *p = word; *p != '\0'; p++) {
        if (!g_ascii_isalnum(*p) && *p != join) {
            err_set(error, ERR_INVALID, "%s: letters, digits and '%c' only", what, join);
            return NULL;
        }
    }
    if (!g_ascii_isalnum(word[0]) || !g_ascii_isalnum(word[strlen(word) - 1])) {
        err_set(error, ERR_INVALID, "%s: must begin and end with a letter or digit", what);
        return NULL;
    }
    return g_steal_pointer(&word);
}

static Json *
find_named(Json *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        Json *item = json_array_get(list, i);

        if (strcmp(json_string_value(json_object_get(item, "name")), name) == 0)
            return item;
    }
    return NULL;
}

static char *
dup_new_name(Json *list, const char *name, GError **error)
{
    g_autofree char *word = dup_word("name", name, '-', error);

    if (word == NULL)
        return NULL;
    if (find_named(list, word) != NULL) {
        err_set(error, ERR_INVALID, "name: '%s' is there twice", word);
        return NULL;
    }
    return g_steal_pointer(&word);
}

/* ---- features ---- */

static bool
check_acceptance(Json *value, void *into, GError **error)
{
    Json *list = into;
    const char *name = NULL, *run = NULL;
    JsonField fields[] = {
        {"name", JSON_KIND_STRING, &name, false, 1, PLAN_WORD_MAX},
        {"run", JSON_KIND_STRING, &run, true, 1, PLAN_ACCEPTANCE_RUN_MAX},
        {NULL},
    };
    g_autofree char *made = g_strdup_printf("check-%zu", json_array_size(list) + 1);
    g_autoptr(Json) given = without_nulls(value);

    if (!read_object(json_is_object(value) ? given : value, fields, error))
        return false;
    g_autofree char *word = dup_new_name(list, name != NULL ? name : made, error);

    if (word == NULL)
        return false;
    /* By a shell: a blank in the place of a line break would be another command. */
    for (const char *p = run; *p != '\0'; p++) {
        if (g_ascii_iscntrl(*p))
            return err_set(error, ERR_INVALID, "run: one line without control characters");
    }
    g_autofree char *line = clean_line(run);

    if (line[0] == '\0')
        return err_set(error, ERR_INVALID, "run: is empty");
    return json_array_append_new(list, json_pack("{s:s, s:s}", "name", word, "run", line)) == 0;
}

typedef bool (*CheckFunc)(Json *value, void *into, GError **error);

static bool
check_each(const char *what, Json *list, CheckFunc func, void *into, GError **error)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!func(json_array_get(list, i), into, error)) {
            g_prefix_error(error, "%s[%zu]: ", what, i);
            return false;
        }
    }
    return true;
}

static bool
add_feature(Checker *c, const char *name, const char *title, Json *acceptance, GError **error)
{
    g_autofree char *word = dup_new_name(c->features, name, error);
    g_autoptr(Json) checks = json_array();

    if (word == NULL || !check_each("acceptance", acceptance, check_acceptance, checks, error))
        return false;
    if (json_array_size(c->features) == PLAN_FEATURES_MAX)
        return err_set(error, ERR_INVALID, "more than %d features", PLAN_FEATURES_MAX);
    (void)json_array_append_new(c->features, json_pack("{s:s, s:o, s:O}", "name", word, "title",
                                                       dup_line(title, word), "acceptance", checks));
    return true;
}

static bool
check_feature(Json *value, void *into, GError **error)
{
    const char *name = NULL, *title = NULL;
    Json *acceptance = NULL;
    JsonField fields[] = {
        {"name", JSON_KIND_STRING, &name, true, 1, PLAN_WORD_MAX},
        {"title", JSON_KIND_STRING, &title, false, 1, PLAN_TITLE_MAX},
        {"acceptance", JSON_KIND_ARRAY, &acceptance, false, 0, PLAN_ACCEPTANCE_MAX},
        {NULL},
    };
    g_autoptr(Json) given = without_nulls(value);

    return read_object(json_is_object(value) ? given : value, fields, error) &&
           add_feature(into, name, title, acceptance, error);
}

/* ---- steps ---- */

typedef struct StepRead {
    const char *name, *title, *feature, *role, *specialization, *details;
    Json *depends, *files;
} StepRead;

static bool
read_step(Json *value, StepRead *s, GError **error)
{
    JsonField fields[] = {
        {"name", JSON_KIND_STRING, &s->name, true, 1, PLAN_WORD_MAX},
        {"title", JSON_KIND_STRING, &s->title, false, 1, PLAN_TITLE_MAX},
        {"feature", JSON_KIND_STRING, &s->feature, false, 1, PLAN_WORD_MAX},
        {"role", JSON_KIND_STRING, &s->role, false, 1, PLAN_WORD_MAX},
        {"specialization", JSON_KIND_STRING, &s->specialization, false, 1, PLAN_WORD_MAX},
        {"depends", JSON_KIND_ARRAY, &s->depends, false, 0, PLAN_STEPS_MAX},
        {"files", JSON_KIND_ARRAY, &s->files, false, 0, PLAN_FILES_MAX},
        {"details", JSON_KIND_STRING, &s->details, false, 0, PLAN_DETAILS_MAX},
        {NULL},
    };

    return read_object(value, fields, error);
}

static void
append_once(Json *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
            return;
    }
    (void)json_array_append_new(list, json_string(text));
}

/* Whether there are such steps is known when all are read. */
static bool
check_dependency(Json *value, void *into, GError **error)
{
    if (!json_is_string(value) || json_string_length(value) == 0 || json_string_length(value) > PLAN_WORD_MAX)
        return err_set(error, ERR_INVALID, "must be the name of a step");
    g_autofree char *word = dup_word("name", json_string_value(value), '-', error);

    if (word == NULL)
        return false;
    append_once(into, word);
    return true;
}

static bool
check_file(Json *value, void *into, GError **error)
{
    const char *path = json_string_value(value);

    if (path == NULL || json_string_length(value) > PLAN_PATH_MAX)
        return err_set(error, ERR_INVALID, "must be a path of at most %d bytes", PLAN_PATH_MAX);
    if (g_str_has_prefix(path, "./"))
        path += 2;
    g_autofree char *clean = text_dup_name(path, PLAN_PATH_MAX, &(bool){false});

    if (g_str_has_suffix(clean, "/"))
        clean[strlen(clean) - 1] = '\0';
    if (clean[0] == '\0' || !contents_path_is_valid(clean, NULL))
        return err_set(error, ERR_INVALID, "'%s' is no path below the top of the tree", clean);
    append_once(into, clean);
    return true;
}

/* The feature's name; one that no feature has is made where the step named none. */
static char *
dup_feature(Checker *c, const StepRead *s, GError **error)
{
    g_autofree char *word = dup_word("feature", s->feature != NULL ? s->feature : s->name, '-', error);

    if (word == NULL || find_named(c->features, word) != NULL)
        return g_steal_pointer(&word);
    if (s->feature == NULL && json_array_size(c->features) == 1 && json_array_size(c->steps) == 0)
        return g_strdup(json_string_value(json_object_get(json_array_get(c->features, 0), "name")));
    if (s->feature != NULL) {
        err_set(error, ERR_INVALID, "feature: there is no '%s'", word);
        return NULL;
    }
    return add_feature(c, word, s->title, NULL, error) ? g_steal_pointer(&word) : NULL;
}

static Json *
dup_role(const char *what, const char *role, GError **error)
{
    g_autofree char *word = dup_word(what, role, '_', error);

    return word != NULL ? json_string(word) : NULL;
}

static bool
check_step(Json *value, void *into, GError **error)
{
    Checker *c = into;
    StepRead s = {.role = "coder"};
    g_autoptr(Json) given = without_nulls(value);
    g_autoptr(Json) depends = json_array();
    g_autoptr(Json) files = json_array();

    if (!read_step(json_is_object(value) ? given : value, &s, error) ||
        !check_each("depends", s.depends, check_dependency, depends, error) ||
        !check_each("files", s.files, check_file, files, error))
        return false;
    g_autofree char *name = dup_new_name(c->steps, s.name, error);
    g_autofree char *feature = name != NULL ? dup_feature(c, &s, error) : NULL;
    g_autoptr(Json) role = feature != NULL ? dup_role("role", s.role, error) : NULL;
    g_autoptr(Json) special = s.specialization == NULL ? json_null()
                              : role != NULL           ? dup_role("specialization", s.specialization, error)
                                                       : NULL;

    if (role == NULL || special == NULL)
        return false;
    return json_array_append_new(c->steps,
                                 json_pack("{s:s, s:o, s:s, s:O, s:O, s:O, s:O, s:o}", "name", name, "title",
                                           dup_line(s.title, name), "feature", feature, "role", role,
                                           "specialization", special, "depends", depends, "files", files,
                                           "details", dup_lines(s.details != NULL ? s.details : ""))) == 0;
}

/* ---- all together ---- */

/* Where only features are given, each is one step. */
static bool
steps_of_features(Checker *c, GError **error)
{
    for (size_t i = 0; i < json_array_size(c->features); i++) {
        Json *feature = json_array_get(c->features, i);
        g_autoptr(Json) step = json_pack("{s:O, s:O}", "name", json_object_get(feature, "name"), "title",
                                         json_object_get(feature, "title"));

        if (!check_step(step, c, error))
            return false;
    }
    return true;
}

static bool
features_have_steps(const Checker *c, GError **error)
{
    for (size_t i = 0; i < json_array_size(c->features); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(c->features, i), "name"));
        bool found = false;

        for (size_t k = 0; k < json_array_size(c->steps) && !found; k++)
            found = strcmp(json_string_value(json_object_get(json_array_get(c->steps, k), "feature")),
                           name) == 0;
        if (!found)
            return err_set(error, ERR_INVALID, "features[%zu]: no step works on '%s'", i, name);
    }
    return true;
}

/* `length` of a step: how many are on the longest way to its end; 0: not known yet. */
static bool
measure_step(const Checker *c, Json *step, GHashTable *lengths, GError **error)
{
    Json *depends = json_object_get(step, "depends");
    const char *name = json_string_value(json_object_get(step, "name"));
    guint longest = 0;

    for (size_t i = 0; i < json_array_size(depends); i++) {
        const char *other = json_string_value(json_array_get(depends, i));
        guint length = GPOINTER_TO_UINT(g_hash_table_lookup(lengths, other));

        if (find_named(c->steps, other) == NULL)
            return err_set(error, ERR_INVALID, "'%s' depends on '%s', which is no step", name, other);
        if (length == 0)
            return true;
        longest = MAX(longest, length);
    }
    g_hash_table_insert(lengths, g_strdup(name), GUINT_TO_POINTER(longest + 1));
    return true;
}

/* Each pass finds at least one length, or there is a cycle. */
static bool
measure_steps(const Checker *c, guint *ret_longest, GError **error)
{
    g_autoptr(GHashTable) lengths = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint longest = 0, before;

    do {
        before = g_hash_table_size(lengths);
        for (size_t i = 0; i < json_array_size(c->steps); i++) {
            Json *step = json_array_get(c->steps, i);
            const char *name = json_string_value(json_object_get(step, "name"));

            if (!g_hash_table_contains(lengths, name) && !measure_step(c, step, lengths, error))
                return false;
            longest = MAX(longest, GPOINTER_TO_UINT(g_hash_table_lookup(lengths, name)));
        }
    } while (g_hash_table_size(lengths) > before);
    for (size_t i = 0; i < json_array_size(c->steps); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(c->steps, i), "name"));

        if (!g_hash_table_contains(lengths, name))
            return err_set(error, ERR_INVALID, "steps: '%s' waits for itself through its dependencies", name);
    }
    *ret_longest = longest;
    return true;
}

static bool
check_risk(Json *value, void *into, GError **error)
{
    if (!json_is_string(value) || json_string_length(value) > PLAN_TITLE_MAX * 2)
        return err_set(error, ERR_INVALID, "must be a text of at most %d bytes", PLAN_TITLE_MAX * 2);
    return json_array_append_new(into, dup_line(json_string_value(value), "")) == 0;
}

static bool
check_work(Checker *c, Json *features, Json *steps, GError **error)
{
    if (!check_each("features", features, check_feature, c, error))
        return false;
    if (!(steps != NULL ? check_each("steps", steps, check_step, c, error) : steps_of_features(c, error)))
        return false;
    if (json_array_size(c->steps) == 0)
        return err_set(error, ERR_INVALID, "steps: there must be one at least");
    return features_have_steps(c, error);
}

static void
checker_clear(Checker *c)
{
    json_decref(c->features);
    json_decref(c->steps);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Checker, checker_clear)

static Json *
check_whole(Json *given, GError **error)
{
    const char *project = NULL, *summary = "";
    Json *features = NULL, *steps = NULL, *risks = NULL;
    gint64 minutes = 0;
    guint longest = 0;
    JsonField fields[] = {
        {"project", JSON_KIND_STRING, &project, true, 1, PLAN_TITLE_MAX},
        {"summary", JSON_KIND_STRING, &summary, false, 0, PLAN_DETAILS_MAX},
        {"features", JSON_KIND_ARRAY, &features, false, 0, PLAN_FEATURES_MAX},
        {"steps", JSON_KIND_ARRAY, &steps, false, 0, PLAN_STEPS_MAX},
        {"risks", JSON_KIND_ARRAY, &risks, false, 0, PLAN_RISKS_MAX},
        {"minutes", JSON_KIND_INT, &minutes, false, 1, PLAN_MINUTES_MAX},
        {NULL},
    };
    g_auto(Checker) c = {.features = json_array(), .steps = json_array()};
    g_autoptr(Json) dangers = json_array();

    if (!json_read(given, fields, error) || !check_work(&c, features, steps, error) ||
        !measure_steps(&c, &longest, error) || !check_each("risks", risks, check_risk, dangers, error))
        return NULL;
    g_autofree char *title = clean_line(project);

    if (title[0] == '\0') {
        err_set(error, ERR_INVALID, "project: is empty");
        return NULL;
    }
    if (minutes == 0)
        minutes = (gint64)longest * PLAN_STEP_MINUTES + PLAN_END_MINUTES;
    return json_pack("{s:s, s:o, s:O, s:O, s:O, s:I}", "project", title, "summary", dup_lines(summary),
                     "features", c.features, "steps", c.steps, "risks", dangers, "minutes",
                     (json_int_t)minutes);
}

Json *
plan_check(Json *plan, GError **error)
{
    g_autoptr(Json) given = NULL, whole = NULL;

    if (!json_is_object(plan)) {
        err_set(error, ERR_INVALID, "a plan is an object");
        return NULL;
    }
    given = without_nulls(plan);
    whole = check_whole(given, error);
    if (whole == NULL)
        return NULL;
    g_autofree char *text = json_encode(whole);

    if (strlen(text) > PLAN_BYTES_MAX) {
        err_set(error, ERR_INVALID, "a plan has at most %d bytes", PLAN_BYTES_MAX);
        return NULL;
    }
    return g_steal_pointer(&whole);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of an agent's output become events.  The output is a program's of somebody else, and hostile: what is
 * no object, or fits no rule, is passed over. */
#include <string.h>

#include "team/adapter-private.h"

enum { LINE_VALUES_MAX = 20000, TEXT_LINE_MAX = 8192, EACH_MAX = 50 };

struct AdapterLines {
    const Adapter *adapter;
    GString *line;
    size_t rest; /* bytes since the last whole line */
    bool skip;   /* the rest of this line */
    char *summary;
};

AdapterLines *
adapter_lines_new(const Adapter *adapter)
{
    AdapterLines *l = g_new0(AdapterLines, 1);

    l->adapter = adapter;
    l->line = g_string_new(NULL);
    l->summary = g_strdup("");
    return l;
}

void
adapter_lines_free(AdapterLines *l)
{
    if (l == NULL)
        return;
    g_string_free(l->line, TRUE);
    g_free(l->summary);
    g_free(l);
}

size_t
adapter_lines_rest(const AdapterLines *l)
{
    return l->rest;
}

const char *
adapter_lines_summary(const AdapterLines *l)
{
    return l->summary;
}

/* Whatever else is on the line, such as the stars of Markdown, says nothing. */
static char *
dup_letters(const char *line)
{
    GString *letters = g_string_new(NULL);

    for (const char *p = line; *p != '\0'; p++) {
        if (g_ascii_isalpha(*p))
            g_string_append_c(letters, g_ascii_tolower(*p));
    }
    return g_string_free(letters, FALSE);
}

const char *
adapter_verdict(const char *summary)
{
    static const char *const verdicts[] = {"approve", "changes"};
    g_autofree char *text = g_strchomp(g_strdup(summary));
    const char *last = strrchr(text, '\n');
    g_autofree char *letters = dup_letters(last != NULL ? last : text);
    const char *word = g_str_has_prefix(letters, "verdict") ? letters + strlen("verdict") : letters;

    for (size_t i = 0; i < G_N_ELEMENTS(verdicts); i++) {
        if (strcmp(word, verdicts[i]) == 0)
            return verdicts[i];
    }
    return NULL;
}

/* ---- rules ---- */

static const Json *
at_path(const Json *value, const char *path)
{
    g_auto(GStrv) names = g_strsplit(path, ".", -1);

    for (char **name = names; *name != NULL && value != NULL; name++)
        value = json_object_get(value, *name);
    return value;
}

static bool
is(const Json *value, const char *want)
{
    g_autofree char *text = value == NULL || json_is_string(value) ? NULL : json_encode(value);

    return value != NULL && strcmp(text != NULL ? text : json_string_value(value), want) == 0;
}

static bool
fits(const Json *value, char **pairs)
{
    for (; pairs != NULL && pairs[0] != NULL; pairs += 2) {
        if (!is(at_path(value, pairs[0]), pairs[1]))
            return false;
    }
    return true;
}

static void
keep_summary(AdapterLines *l, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    size_t n = strlen(valid);

    if (n == 0)
        return;
    if (n > ADAPTER_SUMMARY_MAX)
        n = (size_t)(g_utf8_find_prev_char(valid, valid + ADAPTER_SUMMARY_MAX + 1) - valid);
    g_free(l->summary);
    l->summary = g_strndup(valid, n);
}

static void
add_event(AdapterLines *l, const AdapterRule *rule, const Json *from, Json *events)
{
    Json *event = json_pack("{s:s}", "kind", rule->kind);

    for (char **m = rule->members; m[0] != NULL; m += 2) {
        const Json *value = at_path(from, m[1]);

        if (value != NULL && !json_is_null(value))
            json_object_set(event, m[0], (Json *)(guintptr)value);
    }
    const char *text = json_string_value(json_object_get(event, "text"));

    if (text != NULL && (strcmp(rule->kind, "said") == 0 || strcmp(rule->kind, "summary") == 0))
        keep_summary(l, text);
    json_array_append_new(events, event);
}

static const AdapterRule *
rule_for(const AdapterLines *l, const Json *line, const Json *element, const char *each)
{
    for (guint i = 0; i < l->adapter->rules->len; i++) {
        const AdapterRule *rule = l->adapter->rules->pdata[i];

        if (g_strcmp0(rule->each, each) == 0 && fits(line, rule->where) && fits(element, rule->of))
            return rule;
    }
    return NULL;
}

/* Every list that some rule looks into, once. */
static void
take_lists(AdapterLines *l, const Json *line, Json *events)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < l->adapter->rules->len; i++) {
        const AdapterRule *one = l->adapter->rules->pdata[i];

        if (one->each == NULL || !g_hash_table_add(seen, one->each))
            continue;
        const Json *list = at_path(line, one->each);

        for (size_t k = 0; k < MIN(json_array_size(list), (size_t)EACH_MAX); k++) {
            const Json *element = json_array_get(list, k);
            const AdapterRule *rule = rule_for(l, line, element, one->each);

            if (rule != NULL)
                add_event(l, rule, element, events);
        }
    }
}

static void
take_json(AdapterLines *l, Json *events)
{
    g_autoptr(Json) line = json_decode_foreign(l->line->str, l->line->len, LINE_VALUES_MAX, NULL, NULL);
    const AdapterRule *rule = json_is_object(line) ? rule_for(l, line, line, NULL) : NULL;

    if (!json_is_object(line))
        return;
    if (rule != NULL)
        add_event(l, rule, line, events);
    take_lists(l, line, events);
}

static void
take_text(AdapterLines *l, Json *events)
{
    g_autofree char *text = g_utf8_make_valid(l->line->str, (gssize)MIN(l->line->len, (gsize)TEXT_LINE_MAX));

    g_strchomp(text);
    if (text[0] == '\0')
        return;
    keep_summary(l, text);
    json_array_append_new(events, json_pack("{s:s, s:s}", "kind", "said", "text", text));
}

static void
take_line(AdapterLines *l, Json *events)
{
    if (l->skip)
        ;
    else if (strcmp(l->adapter->output, "json") == 0)
        take_json(l, events);
    else
        take_text(l, events);
    g_string_truncate(l->line, 0);
    l->skip = false;
    l->rest = 0;
}

/* ---- bytes ---- */

void
adapter_lines_feed(AdapterLines *l, const void *bytes, size_t n, Json *events)
{
    const char *at = bytes, *end = at + n;

    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t piece = (size_t)((line != NULL ? line : end) - at);

        l->skip |= l->line->len + piece > ADAPTER_LINE_MAX;
        if (!l->skip)
            g_string_append_len(l->line, at, (gssize)piece);
        l->rest += piece + (line != NULL);
        at += piece + (line != NULL);
        if (line != NULL)
            take_line(l, events);
    }
}

void
adapter_lines_gap(AdapterLines *l)
{
    l->skip = true;
}

void
adapter_lines_end(AdapterLines *l, Json *events)
{
    if (l->line->len > 0 || l->skip)
        take_line(l, events);
}

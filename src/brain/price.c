/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "brain/price-private.h"
#include "brain/usage.h"
#include "json/yaml.h"

enum {
    MILLION = 1000 * 1000,
    DOLLARS_MAX = 100 * 1000, /* for a million tokens */
    ROWS_MAX = 4096,
    TEXT_MAX = 200,
};

typedef enum PriceItem { PRICE_INPUT, PRICE_OUTPUT, PRICE_CACHED, PRICE_CACHE_WRITE, PRICE_MAX } PriceItem;

static const char *const item_names[PRICE_MAX] = {
    [PRICE_INPUT] = "input",
    [PRICE_OUTPUT] = "output",
    [PRICE_CACHED] = "cached",
    [PRICE_CACHE_WRITE] = "cache_write",
};

typedef struct PriceRow {
    GPatternSpec *match;
    char *provider;              /* NULL: any */
    guint64 microusd[PRICE_MAX]; /* for a million tokens */
} PriceRow;

struct PriceTable {
    GPtrArray *rows; /* the first that fits decides */
};

static void
row_free(void *data)
{
    PriceRow *row = data;

    if (row->match != NULL)
        g_pattern_spec_free(row->match);
    g_free(row->provider);
    g_free(row);
}

static bool
fail(GError **error, YamlPlace place, const char *what)
{
    return err_set(error, ERR_INVALID, "prices, line %u: %s", place.line, what);
}

static bool
read_dollars(const YamlNode *node, guint64 *ret, GError **error)
{
    char *end = NULL;
    double dollars = node->kind == YAML_TEXT ? g_ascii_strtod(node->text, &end) : -1;

    if (end == NULL || end == node->text || *end != '\0' || !(dollars >= 0 && dollars <= DOLLARS_MAX))
        return fail(error, node->place, "a price is a number of dollars, from 0 to 100000");
    *ret = (guint64)llround(dollars * MILLION);
    return true;
}

static bool
read_member(PriceRow *row, const YamlNode *key, const YamlNode *value, GError **error)
{
    for (guint i = 0; i < PRICE_MAX; i++) {
        if (strcmp(key->text, item_names[i]) == 0)
            return read_dollars(value, &row->microusd[i], error);
    }
    if (value->kind != YAML_TEXT)
        return fail(error, value->place, "a text is wanted here");
    if (strcmp(key->text, "match") == 0 && row->match == NULL)
        row->match = g_pattern_spec_new(value->text);
    else if (strcmp(key->text, "provider") == 0 && row->provider == NULL)
        row->provider = g_strdup(value->text);
    else
        return fail(error, key->place, "a row has match, provider, input, output, cached and cache_write");
    return true;
}

static bool
read_row(PriceRow *row, const YamlNode *node, GError **error)
{
    if (node->kind != YAML_MAP)
        return fail(error, node->place, "a row is a map");
    for (guint i = 0; i < node->items->len; i++) {
        if (!read_member(row, node->keys->pdata[i], node->items->pdata[i], error))
            return false;
    }
    if (row->match == NULL || yaml_member(node, "input") == NULL || yaml_member(node, "output") == NULL)
        return fail(error, node->place, "a row needs match, input and output");
    if (yaml_member(node, "cached") == NULL)
        row->microusd[PRICE_CACHED] = row->microusd[PRICE_INPUT];
    if (yaml_member(node, "cache_write") == NULL)
        row->microusd[PRICE_CACHE_WRITE] = row->microusd[PRICE_INPUT];
    return true;
}

static bool
read_rows(GPtrArray *rows, const YamlNode *top, GError **error)
{
    const YamlNode *models = yaml_member(top, "models");

    if (models == NULL || models->kind != YAML_LIST)
        return fail(error, top->place, "'models' must be a list");
    for (guint i = 0; i < models->items->len; i++) {
        PriceRow *row = g_new0(PriceRow, 1);

        g_ptr_array_add(rows, row);
        if (!read_row(row, models->items->pdata[i], error))
            return false;
    }
    return true;
}

bool
price_table_load(PriceTable *table, const char *yaml, size_t n, GError **error)
{
    const YamlLimits limits = {.depth = 4, .values = ROWS_MAX * 12, .text_max = TEXT_MAX};
    g_auto(YamlProblem) problem = {0};
    g_autoptr(YamlNode) top = yaml_read(yaml, n, &limits, "prices are a map with 'models'", &problem);
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(row_free);

    if (problem.message != NULL)
        return fail(error, problem.place, problem.message);
    if (top == NULL)
        return true;
    if (!read_rows(rows, top, error))
        return false;
    /* In front of those that were there. */
    for (guint i = 0; i < rows->len; i++)
        g_ptr_array_insert(table->rows, (int)i, rows->pdata[i]);
    g_ptr_array_set_free_func(rows, NULL);
    return true;
}

PriceTable *
price_table_new(GError **error)
{
    g_autoptr(PriceTable) table = g_new0(PriceTable, 1);

    table->rows = g_ptr_array_new_with_free_func(row_free);
    if (!price_table_load(table, price_builtin, strlen(price_builtin), error))
        return NULL;
    return g_steal_pointer(&table);
}

void
price_table_free(PriceTable *table)
{
    if (table == NULL)
        return;
    g_ptr_array_unref(table->rows);
    g_free(table);
}

static const PriceRow *
find_row(const PriceTable *table, const char *provider, const char *model)
{
    /* Some providers sell others' models, as "maker/model". */
    const char *slash = strrchr(model, '/');

    for (guint i = 0; i < table->rows->len; i++) {
        const PriceRow *row = table->rows->pdata[i];

        if (row->provider != NULL && g_strcmp0(row->provider, provider) != 0)
            continue;
        if (g_pattern_spec_match_string(row->match, model) ||
            (slash != NULL && g_pattern_spec_match_string(row->match, slash + 1)))
            return row;
    }
    return NULL;
}

guint64
price_cost_microusd(const PriceTable *table, const char *provider, const char *model, const Usage *usage,
                    bool *ret_known)
{
    const PriceRow *row = find_row(table, provider, model);

    *ret_known = row != NULL;
    if (row == NULL)
        return 0;
    /* Up to 1e9 tokens at 1e11 each would pass 64 bits. */
    double sum = (double)usage->input_tokens * (double)row->microusd[PRICE_INPUT] +
                 (double)usage->output_tokens * (double)row->microusd[PRICE_OUTPUT] +
                 (double)usage->cached_tokens * (double)row->microusd[PRICE_CACHED] +
                 (double)usage->cache_write_tokens * (double)row->microusd[PRICE_CACHE_WRITE];

    return (guint64)ceil(sum / MILLION);
}

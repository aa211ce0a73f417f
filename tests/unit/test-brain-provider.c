/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "brain/provider-private.h"
#include "brain/script.h"
#include "brain/usage.h"

static Provider *
make(const char *text, GError **error)
{
    g_autoptr(Json) object = json_decode(text, strlen(text), NULL);

    g_assert_nonnull(object);
    return provider_new(object, error);
}

static void
test_refused(void)
{
    static const char *const texts[] = {
        "{\"kind\":\"openai\"}",
        "{\"name\":\"a\"}",
        "{\"name\":\"a\",\"kind\":\"other\"}",
        "{\"name\":\"A b\",\"kind\":\"openai\"}",
        "{\"name\":\"a/b\",\"kind\":\"openai\"}",
        "{\"name\":\"-a\",\"kind\":\"openai\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"key\":\"x\"}",
        "{\"name\":\"a\",\"kind\":\"compatible\"}",
        "{\"name\":\"a\",\"kind\":\"script\",\"base_url\":\"https://a\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"http://example.org/v1\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"http://10.0.0.1/v1\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"http://localhost.example.org/v1\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"http://127.0.0.1.example.org/v1\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"ftp://127.0.0.1/v1\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"https://user:pass@example.org\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"https://example.org/v1?x=1\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"https://example.org/v1#x\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"https://example.org/../v1\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"https://example.org/%2e\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"https:///v1\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"base_url\":\"example.org\"}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"models\":[5]}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"default_for\":[\"anthropic\"]}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"default_for\":[\"x\"]}",
        "{\"name\":\"a\",\"kind\":\"openai\",\"record\":\"yes\"}",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", texts[i]);
        g_assert_null(make(texts[i], &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
}

static void
test_places(void)
{
    static const struct {
        const char *text, *base_url;
    } rows[] = {
        {"{\"name\":\"a\",\"kind\":\"openai\"}", "https://api.openai.com/v1"},
        {"{\"name\":\"a\",\"kind\":\"anthropic\"}", "https://api.anthropic.com/v1"},
        {"{\"name\":\"a\",\"kind\":\"anthropic\",\"base_url\":\"https://example.org\"}",
         "https://example.org/v1"},
        {"{\"name\":\"a\",\"kind\":\"compatible\",\"base_url\":\"http://[::1]:11434/\"}",
         "http://[::1]:11434/v1"},
        {"{\"name\":\"a\",\"kind\":\"compatible\",\"base_url\":\"http://127.1.2.3/api/v2//\"}", NULL},
        {"{\"name\":\"a\",\"kind\":\"compatible\",\"base_url\":\"http://LOCALHOST:80/api/v2/\"}",
         "http://LOCALHOST:80/api/v2"},
        {"{\"name\":\"a\",\"kind\":\"script\"}", ""},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(Provider) provider = make(rows[i].text, NULL);

        if (rows[i].base_url == NULL)
            g_assert_null(provider);
        else
            g_assert_cmpstr(provider_base_url(provider), ==,
                            *rows[i].base_url != '\0' ? rows[i].base_url : NULL);
    }
}

static void
test_models(void)
{
    g_autoptr(Provider) any = make("{\"name\":\"a\",\"kind\":\"openai\"}", NULL);
    g_autoptr(Provider) some = make("{\"name\":\"a\",\"kind\":\"script\",\"models\":[\"gpt-*\",\"o3\"],"
                                    "\"default_for\":[\"openai\",\"anthropic\"],\"record\":\"replay\"}",
                                    NULL);

    g_assert_true(provider_has_model(any, "x"));
    g_assert_false(provider_lists_models(any));
    g_assert_true(provider_has_model(some, "gpt-4o"));
    g_assert_true(provider_has_model(some, "o3"));
    g_assert_false(provider_has_model(some, "o3-mini"));
    g_assert_true(provider_is_default(some, DIALECT_ANTHROPIC));
    g_assert_cmpint(provider_tape(some), ==, TAPE_REPLAY);
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

/* The pages of the key are marked: locked, and left out of dumps. */
static bool
page_has_flags(const void *address, const char *const *flags)
{
    g_autofree char *text = NULL;
    bool inside = false;

    g_assert_true(g_file_get_contents("/proc/self/smaps", &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        unsigned long from, to;

        if (sscanf(*line, "%lx-%lx ", &from, &to) == 2)
            inside = (gsize)address >= from && (gsize)address < to;
        if (!inside || !g_str_has_prefix(*line, "VmFlags:"))
            continue;
        for (; *flags != NULL; flags++) {
            if (strstr(*line, *flags) == NULL)
                return false;
        }
        return true;
    }
    return false;
}

static void
test_key(void)
{
    /* ASan lets nobody lock memory. */
    static const char *const flags[] = {" dd", SANITIZED ? NULL : " lo", NULL};
    g_autoptr(Provider) provider = make("{\"name\":\"a\",\"kind\":\"openai\"}", NULL);

    g_assert_false(provider_has_key(provider));
    char **none = provider_auth_headers(provider, DIALECT_OPENAI);
    g_assert_null(none[0]);
    provider_wipe(none);
    provider_take_key(provider, g_strdup("sk-0123456789\n"));
    g_assert_true(provider_has_key(provider));
    char **bearer = provider_auth_headers(provider, DIALECT_OPENAI);
    g_assert_cmpstr(bearer[0], ==, "Authorization: Bearer sk-0123456789");
    g_assert_null(bearer[1]);
    provider_wipe(bearer);
    char **key = provider_auth_headers(provider, DIALECT_ANTHROPIC);
    g_assert_cmpstr(key[0], ==, "x-api-key: sk-0123456789");
    provider_wipe(key);
    g_assert_true(page_has_flags(provider_key_address(provider), flags));
    char text[] = "a sk-0123456789 b sk-0123456789sk-012345678";
    provider_scrub(provider, text, strlen(text));
    g_assert_cmpstr(text, ==, "a ************* b *************sk-012345678");
    provider_take_key(provider, g_strdup("short"));
    char word[] = "in short";
    provider_scrub(provider, word, strlen(word));
    g_assert_cmpstr(word, ==, "in short");
    provider_take_key(provider, g_strdup(" \n"));
    g_assert_false(provider_has_key(provider));
}

/* ---- prices ---- */

static void
test_prices(void)
{
    static const char mine[] = "models:\n  - {match: gpt-4o, input: 1, output: 2}\n"
                               "  - {match: \"local-*\", provider: here, input: 0, output: 0}\n";
    static const struct {
        const char *provider, *model;
        guint64 microusd;
        bool known;
    } rows[] = {
        {"openai", "gpt-4o-mini-2024-07-18", 150000 + 600000 + 75000 + 150000, true},
        {"openrouter", "openai/gpt-4o-mini", 150000 + 600000 + 75000 + 150000, true},
        {"anthropic", "claude-sonnet-4-5-20250929", 3000000 + 15000000 + 300000 + 3750000, true},
        {"x", "gpt-4o", 1000000 + 2000000 + 1000000 + 1000000, true},
        {"x", "gpt-4o-2024-08-06", 2500000 + 10000000 + 1250000 + 2500000, true},
        {"here", "local-7b", 0, true},
        {"there", "local-7b", 0, false},
        {"openai", "unheard-of", 0, false},
    };
    const Usage million = {1000000, 1000000, 1000000, 1000000, false};
    g_autoptr(GError) error = NULL;
    g_autoptr(PriceTable) table = price_table_new(&error);

    g_assert_no_error(error);
    g_assert_true(price_table_load(table, mine, strlen(mine), NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        bool known = !rows[i].known;

        g_test_message("%s", rows[i].model);
        g_assert_cmpuint(price_cost_microusd(table, rows[i].provider, rows[i].model, &million, &known), ==,
                         rows[i].microusd);
        g_assert_cmpint(known, ==, rows[i].known);
    }
    /* A part of a micro-dollar is one. */
    bool known;
    g_assert_cmpuint(price_cost_microusd(table, "x", "gpt-4o", &(Usage){.input_tokens = 1}, &known), ==, 1);
    const Usage most = {1000000000, 1000000000, 1000000000, 1000000000, false};
    g_assert_cmpuint(price_cost_microusd(table, "x", "claude-opus-4-1", &most, &known), <, G_MAXINT64);
}

static void
test_bad_prices(void)
{
    static const char *const texts[] = {
        "models: 5",
        "rows: []",
        "models: [{match: a, input: 1}]",
        "models: [{match: a, output: 1}]",
        "models: [{input: 1, output: 1}]",
        "models: [{match: a, input: -1, output: 1}]",
        "models: [{match: a, input: nan, output: 1}]",
        "models: [{match: a, input: 1e9, output: 1}]",
        "models: [{match: a, input: 1x, output: 1}]",
        "models: [{match: a, input: 1, output: 1, more: 1}]",
        "models: [{match: [a], input: 1, output: 1}]",
        "models: [{match: a, input: 1, output: 1}",
    };
    g_autoptr(PriceTable) table = price_table_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        bool known;

        g_assert_false(price_table_load(table, texts[i], strlen(texts[i]), &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        /* Nothing of a bad file counts. */
        price_cost_microusd(table, "x", "a", &(Usage){.input_tokens = 1}, &known);
        g_assert_false(known);
    }
}

/* ---- scripts ---- */

static void
test_bad_scripts(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "empty"},
        {"5", "map"},
        {"conversations: 5", "list"},
        {"conversations: [{match: a}]", "needs turns"},
        {"conversations: [{turns: []}]", "needs turns"},
        {"conversations: [{turns: [{}]}]", "needs a text"},
        {"conversations: [{turns: [{text: a, more: b}]}]", "no 'more'"},
        {"conversations: [{turns: [{text: '{{what}}'}]}]", "{{what}}"},
        {"conversations: [{turns: [{text: '{{match.10}}'}]}]", "{{match.10}}"},
        {"conversations: [{match: '(', turns: [{text: a}]}]", "line 1"},
        {"conversations: [{turns: [{tools: [{arguments: '{}'}]}]}]", "needs a name"},
        {"conversations: [{turns: [{tools: [{name: a, arguments: '[1]'}]}]}]", "JSON object"},
        {"conversations: [{turns: [{tools: [{name: a, arguments: '{'}]}]}]", "not valid JSON"},
        {"conversations: [{turns: [{error: {status: 200}}]}]", "from 400"},
        {"conversations: [{last: me, turns: [{text: a}]}]", "user or tool"},
        {"conversations: [{turn: x, turns: [{text: a}]}]", "number"},
        {"conversations: [{turns: [{text: a, delay_ms: 99999999}]}]", "number"},
        {"conversations: [{turns: [{text: a, cut: maybe}]}]", "true or false"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(brain_script_new(rows[i].text, strlen(rows[i].text), &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, rows[i].why));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/brain/provider/refused", test_refused);
    g_test_add_func("/brain/provider/places", test_places);
    g_test_add_func("/brain/provider/models", test_models);
    g_test_add_func("/brain/provider/key", test_key);
    g_test_add_func("/brain/prices/cost", test_prices);
    g_test_add_func("/brain/prices/bad", test_bad_prices);
    g_test_add_func("/brain/script/bad", test_bad_scripts);
    return g_test_run();
}

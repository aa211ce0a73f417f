/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/provider.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sodium.h>
#include <string.h>

#include "base/err.h"
#include "brain/dialect.h"
#include "brain/provider-private.h"

enum {
    BASE_URL_MAX = 1024,
    MODEL_PATTERN_MAX = 128,
    /* What is shorter is a stand-in for servers that want no key, and part of ordinary words. */
    SECRET_LEN_MIN = 8,
};

static const struct {
    const char *name, *base_url;
    bool speaks[DIALECT_MAX];
} kinds[PROVIDER_KIND_MAX] = {
    [PROVIDER_OPENAI] = {"openai", "https://api.openai.com/v1", {[DIALECT_OPENAI] = true}},
    [PROVIDER_ANTHROPIC] = {"anthropic", "https://api.anthropic.com/v1", {[DIALECT_ANTHROPIC] = true}},
    [PROVIDER_OPENROUTER] = {"openrouter", "https://openrouter.ai/api/v1", {[DIALECT_OPENAI] = true}},
    [PROVIDER_GROQ] = {"groq", "https://api.groq.com/openai/v1", {[DIALECT_OPENAI] = true}},
    [PROVIDER_COMPATIBLE] = {"compatible", NULL, {[DIALECT_OPENAI] = true}},
    [PROVIDER_SCRIPT] = {"script", NULL, {[DIALECT_OPENAI] = true, [DIALECT_ANTHROPIC] = true}},
};

static const char *const tape_names[TAPE_MODE_MAX] = {
    [TAPE_OFF] = "off",
    [TAPE_RECORD] = "record",
    [TAPE_REPLAY] = "replay",
};

struct Provider {
    guint refs;
    char *name;
    ProviderKind kind;
    char *base_url;
    GPtrArray *patterns; /* GPatternSpec; empty: every model */
    bool default_for[DIALECT_MAX];
    ProviderTape tape;
    char *key; /* sodium_malloc: locked, left out of dumps, between guard pages; NULL: none */
    size_t key_len;
};

const char *
provider_kind_name(ProviderKind kind)
{
    return kinds[kind].name;
}

bool
provider_kind_from_name(const char *name, ProviderKind *ret)
{
    for (guint i = 0; i < PROVIDER_KIND_MAX; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *ret = (ProviderKind)i;
            return true;
        }
    }
    return false;
}

/* ---- what `coop serve` says of it ---- */

static bool
set_name(Provider *p, const char *name, GError **error)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";

    if (strspn(name, allowed) != strlen(name) || !g_ascii_isalnum(name[0]))
        return err_set(error, ERR_INVALID,
                       "the provider's name '%s' must be of lower-case letters, digits, '-', '_' and '.'",
                       name);
    p->name = g_strdup(name);
    return true;
}

static bool
host_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    /* curl never asks a name server for this one. */
    return g_ascii_strcasecmp(host, "localhost") == 0;
}

/* Nothing that one parser could take for something else than another: curl reads it again. */
static bool
url_is_plain(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:[]";
    const char *after = strstr(text, "://");

    return after != NULL && strspn(text, allowed) == strlen(text) && strstr(after, "/.") == NULL &&
           strstr(after + 3, "//") == NULL;
}

/* The key goes to this scheme, host and port and nowhere else. */
static bool
set_base_url(Provider *p, const char *text, GError **error)
{
    g_autoptr(GUri) uri = g_uri_parse(text, G_URI_FLAGS_NONE, NULL);
    const char *host = uri != NULL ? g_uri_get_host(uri) : NULL;

    if (host == NULL || *host == '\0' || !url_is_plain(text))
        return err_set(error, ERR_INVALID, "the base URL '%s' is not of the form https://host[:port]/path",
                       text);
    bool https = strcmp(g_uri_get_scheme(uri), "https") == 0;
    if (!https && strcmp(g_uri_get_scheme(uri), "http") != 0)
        return err_set(error, ERR_INVALID, "the base URL '%s' is neither https nor http", text);
    if (!https && !host_is_loopback(host))
        return err_set(error, ERR_INVALID,
                       "the base URL '%s' must be https: plain http is only for this machine itself", text);
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '/')
        n--;
    /* Who gives only the host means the place where every one of these servers has it. */
    bool bare = strspn(g_uri_get_path(uri), "/") == strlen(g_uri_get_path(uri));
    p->base_url = g_strdup_printf("%.*s%s", (int)n, text, bare ? "/v1" : "");
    return true;
}

static bool
add_patterns(Provider *p, Json *models, GError **error)
{
    size_t i;
    Json *value;

    json_array_foreach(models, i, value)
    {
        const char *pattern = json_string_value(value);

        if (pattern == NULL || *pattern == '\0' || strlen(pattern) > MODEL_PATTERN_MAX)
            return err_set(error, ERR_INVALID,
                           "'models' must be a list of names or patterns of up to %d bytes",
                           MODEL_PATTERN_MAX);
        g_ptr_array_add(p->patterns, g_pattern_spec_new(pattern));
    }
    return true;
}

static bool
set_defaults(Provider *p, Json *dialects, GError **error)
{
    size_t i;
    Json *value;

    json_array_foreach(dialects, i, value)
    {
        Dialect dialect;

        if (!json_is_string(value) || !dialect_from_name(json_string_value(value), &dialect))
            return err_set(error, ERR_INVALID, "'default_for' is a list of 'openai' and 'anthropic'");
        if (!provider_speaks(p, dialect))
            return err_set(error, ERR_INVALID, "a provider of kind '%s' does not speak the dialect '%s'",
                           kinds[p->kind].name, dialect_name(dialect));
        p->default_for[dialect] = true;
    }
    return true;
}

static bool
set_tape(Provider *p, const char *name, GError **error)
{
    for (guint i = 0; i < TAPE_MODE_MAX; i++) {
        if (strcmp(tape_names[i], name) == 0) {
            p->tape = (ProviderTape)i;
            return true;
        }
    }
    return err_set(error, ERR_INVALID, "'record' is 'off', 'record' or 'replay'");
}

static bool
set_place(Provider *p, const char *kind, const char *base_url, GError **error)
{
    if (!provider_kind_from_name(kind, &p->kind))
        return err_set(error, ERR_INVALID, "there is no provider kind '%s'", kind);
    if (p->kind == PROVIDER_SCRIPT)
        return base_url == NULL || err_set(error, ERR_INVALID, "a script has no base URL");
    if (base_url == NULL)
        base_url = kinds[p->kind].base_url;
    if (base_url == NULL)
        return err_set(error, ERR_INVALID, "a provider of kind '%s' needs a base URL", kind);
    return set_base_url(p, base_url, error);
}

Provider *
provider_new(Json *object, GError **error)
{
    const char *name = NULL, *kind = NULL, *base_url = NULL, *tape = tape_names[TAPE_OFF];
    Json *models = NULL, *default_for = NULL;
    const JsonField fields[] = {
        {"name", JSON_KIND_STRING, &name, true, 1, PROVIDER_NAME_MAX},
        {"kind", JSON_KIND_STRING, &kind, true, 1, PROVIDER_NAME_MAX},
        {"base_url", JSON_KIND_STRING, &base_url, false, 1, BASE_URL_MAX},
        {"models", JSON_KIND_ARRAY, &models, false, 0, PROVIDER_MODELS_MAX},
        {"default_for", JSON_KIND_ARRAY, &default_for, false, 0, DIALECT_MAX},
        {"record", JSON_KIND_STRING, &tape, false, 1, PROVIDER_NAME_MAX},
        {NULL},
    };

    if (!json_read(object, fields, error))
        return NULL;
    g_autoptr(Provider) p = g_new0(Provider, 1);
    p->refs = 1;
    p->patterns = g_ptr_array_new_with_free_func((GDestroyNotify)g_pattern_spec_free);
    if (!set_name(p, name, error) || !set_place(p, kind, base_url, error) ||
        !add_patterns(p, models, error) || !set_defaults(p, default_for, error) || !set_tape(p, tape, error))
        return NULL;
    return g_steal_pointer(&p);
}

Provider *
provider_ref(Provider *provider)
{
    provider->refs++;
    return provider;
}

void
provider_unref(Provider *provider)
{
    if (provider == NULL || --provider->refs > 0)
        return;
    sodium_free(provider->key); /* wipes it */
    g_ptr_array_unref(provider->patterns);
    g_free(provider->base_url);
    g_free(provider->name);
    g_free(provider);
}

const char *
provider_name(const Provider *provider)
{
    return provider->name;
}

ProviderKind
provider_kind(const Provider *provider)
{
    return provider->kind;
}

const char *
provider_base_url(const Provider *provider)
{
    return provider->base_url;
}

ProviderTape
provider_tape(const Provider *provider)
{
    return provider->tape;
}

bool
provider_speaks(const Provider *provider, Dialect dialect)
{
    return kinds[provider->kind].speaks[dialect];
}

bool
provider_lists_models(const Provider *provider)
{
    return provider->patterns->len > 0;
}

bool
provider_is_default(const Provider *provider, Dialect dialect)
{
    return provider->default_for[dialect];
}

bool
provider_has_model(const Provider *provider, const char *model)
{
    for (guint i = 0; i < provider->patterns->len; i++) {
        if (g_pattern_spec_match_string(provider->patterns->pdata[i], model))
            return true;
    }
    return !provider_lists_models(provider);
}

/* ---- the key ---- */

void
provider_take_key(Provider *provider, char *key)
{
    size_t n = strlen(key);

    if (sodium_init() < 0)
        g_error("libsodium cannot start");
    sodium_free(provider->key);
    provider->key = NULL;
    provider->key_len = 0;
    /* A line read from a file has its end with it. */
    size_t len = n;
    while (len > 0 && g_ascii_isspace(key[len - 1]))
        len--;
    if (len > 0 && len <= PROVIDER_KEY_MAX) {
        provider->key = sodium_malloc(len);
        if (provider->key == NULL)
            g_error("no memory for a key");
        memcpy(provider->key, key, len);
        provider->key_len = len;
        (void)sodium_mprotect_readonly(provider->key); /* best effort: it is locked already */
    }
    sodium_memzero(key, n);
    g_free(key);
}

bool
provider_has_key(const Provider *provider)
{
    return provider->key != NULL;
}

const void *
provider_key_address(const Provider *provider)
{
    return provider->key;
}

char **
provider_auth_headers(const Provider *provider, Dialect dialect)
{
    const char *prefix = dialect == DIALECT_ANTHROPIC ? "x-api-key: " : "Authorization: Bearer ";
    size_t n = strlen(prefix);
    char **headers = g_new0(char *, 2);

    if (provider->key == NULL)
        return headers;
    /* By hand: a formatter would leave copies in buffers of its own. */
    headers[0] = g_malloc(n + provider->key_len + 1);
    memcpy(headers[0], prefix, n);
    memcpy(headers[0] + n, provider->key, provider->key_len);
    headers[0][n + provider->key_len] = '\0';
    return headers;
}

void
provider_wipe(char **headers)
{
    for (char **h = headers; h != NULL && *h != NULL; h++)
        sodium_memzero(*h, strlen(*h));
    g_strfreev(headers);
}

void
provider_scrub(const Provider *provider, char *bytes, size_t n)
{
    char *at;

    if (provider->key_len < SECRET_LEN_MIN)
        return;
    while ((at = memmem(bytes, n, provider->key, provider->key_len)) != NULL) {
        memset(at, '*', provider->key_len);
        n -= (size_t)(at - bytes) + provider->key_len;
        bytes = at + provider->key_len;
    }
}

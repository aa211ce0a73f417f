/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* A place where a model answers.  Immutable; a change is a new one. */
typedef struct Provider Provider;

typedef enum Dialect {
    DIALECT_OPENAI,    /* /chat/completions, /responses, /models, /embeddings */
    DIALECT_ANTHROPIC, /* /messages, /messages/count_tokens, /models */
    DIALECT_MAX,
} Dialect;

typedef enum ProviderKind {
    PROVIDER_OPENAI,
    PROVIDER_ANTHROPIC,
    PROVIDER_OPENROUTER,
    PROVIDER_GROQ,
    PROVIDER_COMPATIBLE, /* any base URL that speaks OpenAI's dialect: Ollama, llama.cpp, vLLM */
    PROVIDER_SCRIPT,     /* conversations of a file; speaks both dialects */
    PROVIDER_KIND_MAX,
} ProviderKind;

enum { PROVIDER_NAME_MAX = 63, PROVIDER_KEY_MAX = 512, PROVIDER_MODELS_MAX = 64 };

/* {"name", "kind", "base_url", "models": ["gpt-*", …] (none: all), "default_for": ["openai"],
 *  "record": "off" | "record" | "replay"} as `coop serve` keeps it; without the key.
 * ERR_INVALID: an unknown kind, a base URL that is not https and not on loopback, … */
Provider *provider_new(Json *object, GError **error);
Provider *provider_ref(Provider *provider);
void provider_unref(Provider *provider);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Provider, provider_unref)

const char *provider_name(const Provider *provider);
ProviderKind provider_kind(const Provider *provider);
const char *provider_kind_name(ProviderKind kind);
bool provider_kind_from_name(const char *name, ProviderKind *ret);
const char *provider_base_url(const Provider *provider); /* without a slash at its end; NULL: script */
bool provider_speaks(const Provider *provider, Dialect dialect);
bool provider_has_model(const Provider *provider, const char *model);

/* Takes the key: copied into locked memory that no dump shows; `key` is wiped and freed. */
void provider_take_key(Provider *provider, char *key);
bool provider_has_key(const Provider *provider);
/* "Authorization: Bearer …" or "x-api-key: …" and the like, for one call; wiped by
 * provider_wipe(). */
char **provider_auth_headers(const Provider *provider, Dialect dialect);
void provider_wipe(char **headers);
/* Overwrites every occurrence of the key in `bytes` with '*'; for what an upstream echoes. */
void provider_scrub(const Provider *provider, char *bytes, size_t n);

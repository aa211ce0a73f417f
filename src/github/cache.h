/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "json/json.h"

/* Answers with their ETags, so that asking again costs nothing while nothing has changed.  The ones used
 * longest ago make room. */
typedef struct GithubCache GithubCache;

typedef struct GithubCached {
    const char *etag;
    Json *json;       /* borrowed */
    const char *next; /* page; NULL: none */
} GithubCached;

GithubCache *github_cache_new(guint entries_max, size_t bytes_max);
void github_cache_free(GithubCache *cache);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GithubCache, github_cache_free)

/* NULL: not there.  Borrowed until the cache is changed. */
const GithubCached *github_cache_find(GithubCache *cache, const char *key);
/* `size` is what the body had. */
void github_cache_put(GithubCache *cache, const char *key, const GithubCached *item, size_t size);
void github_cache_clear(GithubCache *cache);
guint github_cache_count(const GithubCache *cache);

/* SPDX-License-Identifier: Apache-2.0 */
#include "github/cache.h"

typedef struct Entry {
    GithubCached item; /* what it points to is ours */
    char *key;
    size_t size;
    GList link;
} Entry;

struct GithubCache {
    GHashTable *entries; /* key -> Entry */
    GQueue order;        /* used last comes first */
    size_t bytes, bytes_max;
    guint entries_max;
};

static void
entry_free(gpointer data)
{
    Entry *e = data;

    g_free((gpointer)(guintptr)e->item.etag);
    g_free((gpointer)(guintptr)e->item.next);
    json_decref(e->item.json);
    g_free(e->key);
    g_free(e);
}

GithubCache *
github_cache_new(guint entries_max, size_t bytes_max)
{
    GithubCache *cache = g_new0(GithubCache, 1);

    cache->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    cache->entries_max = entries_max;
    cache->bytes_max = bytes_max;
    return cache;
}

void
github_cache_free(GithubCache *cache)
{
    g_hash_table_unref(cache->entries);
    g_free(cache);
}

const GithubCached *
github_cache_find(GithubCache *cache, const char *key)
{
    Entry *e = g_hash_table_lookup(cache->entries, key);

    if (e == NULL)
        return NULL;
    g_queue_unlink(&cache->order, &e->link);
    g_queue_push_head_link(&cache->order, &e->link);
    return &e->item;
}

static void
drop(GithubCache *cache, Entry *e)
{
    g_queue_unlink(&cache->order, &e->link);
    cache->bytes -= e->size;
    g_hash_table_remove(cache->entries, e->key);
}

void
github_cache_put(GithubCache *cache, const char *key, const GithubCached *item, size_t size)
{
    Entry *old = g_hash_table_lookup(cache->entries, key);

    if (old != NULL)
        drop(cache, old);
    if (size > cache->bytes_max)
        return;
    while (cache->bytes + size > cache->bytes_max || g_hash_table_size(cache->entries) >= cache->entries_max)
        drop(cache, g_queue_peek_tail(&cache->order));
    Entry *e = g_new0(Entry, 1);

    *e = (Entry){.item = {g_strdup(item->etag), json_incref(item->json), g_strdup(item->next)},
                 .key = g_strdup(key),
                 .size = size};
    e->link.data = e;
    cache->bytes += size;
    g_queue_push_head_link(&cache->order, &e->link);
    g_hash_table_insert(cache->entries, e->key, e);
}

void
github_cache_clear(GithubCache *cache)
{
    g_hash_table_remove_all(cache->entries);
    g_queue_init(&cache->order);
    cache->bytes = 0;
}

guint
github_cache_count(const GithubCache *cache)
{
    return g_hash_table_size(cache->entries);
}

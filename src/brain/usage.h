/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "brain/provider.h"

/* What one call used, read from the answer as it passes by: whole bodies and streams, of both
 * dialects, without changing a byte. */
typedef struct Usage {
    guint64 input_tokens; /* without the cached ones */
    guint64 output_tokens;
    guint64 cached_tokens; /* read from the provider's cache */
    guint64 cache_write_tokens;
    bool estimated; /* the answer did not say: four bytes count as a token */
} Usage;

typedef struct UsageReader UsageReader;

enum {
    USAGE_LINE_MAX = 4 * 1024 * 1024, /* an event of a stream; longer: ERR_LIMIT */
    USAGE_BODY_MAX = 8 * 1024 * 1024,
    USAGE_VALUES_MAX = 4 * 1024 * 1024, /* of an answer: many embeddings are many numbers */
};

UsageReader *usage_reader_new(Dialect dialect, bool stream);
void usage_reader_free(UsageReader *reader);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UsageReader, usage_reader_free)
/* False for good: ERR_LIMIT, or ERR_INVALID for an event that is not JSON. */
bool usage_reader_feed(UsageReader *reader, const void *bytes, size_t n, GError **error);
/* A stream's own end was seen ([DONE], message_stop, response.completed). */
bool usage_reader_is_complete(const UsageReader *reader);
void usage_reader_result(UsageReader *reader, size_t request_bytes, Usage *ret);

/* Prices of templates/prices.yaml, compiled in, and of prices.yaml in the door's state folder over them:
 * micro-dollars per million tokens by model pattern. */
typedef struct PriceTable PriceTable;
PriceTable *price_table_new(GError **error); /* those compiled in */
bool price_table_load(PriceTable *table, const char *yaml, size_t n, GError **error);
void price_table_free(PriceTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PriceTable, price_table_free)
/* `*ret_known` false: no row for this model, and the cost is 0. */
guint64 price_cost_microusd(const PriceTable *table, const char *provider, const char *model,
                            const Usage *usage, bool *ret_known);

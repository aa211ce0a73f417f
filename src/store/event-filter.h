/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/event-row.h"

/* A copied filter in one block, shared between a cursor and the read it has under way in
 * another thread.  NULL everywhere means "passes everything" and costs nothing. */
typedef struct FilterCopy FilterCopy;

FilterCopy *filter_copy_new(const EventFilter *filter); /* NULL in, or nothing asked: NULL */
FilterCopy *filter_copy_ref(FilterCopy *filter);
void filter_copy_unref(FilterCopy *filter);
const EventFilter *filter_copy_get(const FilterCopy *filter);

bool filter_row_passes(const FilterCopy *filter, const EventRow *row);
bool filter_event_passes(const FilterCopy *filter, const Event *event);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "agent/model.h"

/* The messages 1..to-1 in a few words of the model's, as the message that takes their place; at most
 * `bytes_max` of them are shown to it.  A model that cannot is replaced by a list of what was called.  NULL:
 * it must not be asked any more (budget, breaker), or we are to end. */
char *summary_make(Model *model, Json *messages, size_t to, gint64 bytes_max, ModelReason *ret_reason,
                   GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "agent/model.h"
#include "agent/talk.h"

/* Keeps a conversation within what the model can take in. */
typedef struct Keep {
    const Brief *brief;
    Model *model;
    Talk *talk;
} Keep;

void keep_init(Keep *keep, const Brief *brief, Model *model, Talk *talk);
/* The next answer of the model. */
bool keep_ask(Keep *keep, Json *tools, Answer *ret_answer, ModelReason *ret_reason, GError **error);

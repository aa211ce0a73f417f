/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/keep.h"

void
keep_init(Keep *keep, const Brief *brief, Model *model, Talk *talk)
{
    *keep = (Keep){.brief = brief, .model = model, .talk = talk};
}

bool
keep_ask(Keep *keep, Json *tools, Answer *ret_answer, ModelReason *ret_reason, GError **error)
{
    return model_ask(keep->model, keep->brief->system, talk_messages(keep->talk), tools, ret_answer,
                     ret_reason, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "box/box.h"

/* What the caller of a command that was started is told: at once, at its end, or with its
 * output as it comes, if that is what the call accepts. */
typedef struct CommandAnswer CommandAnswer;

/* Right after the start, of whose run it takes a reference. */
CommandAnswer *command_answer_new(ApiCall *call, Box *box, Run *run, bool wait);
/* The caller is not told; the command goes on. */
void command_answer_free(CommandAnswer *answer);
/* Takes `answer`.  With a `box` that is what is told, the command as its member or as further
 * events; NULL: the command alone. */
void command_answer_give(CommandAnswer *answer, int status, Box *box);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/box.h"

/* A command as a body asks for it: that of POST …/commands, or `command` of a new sandbox. */
typedef struct CommandForm CommandForm;

CommandForm *command_form_read(Json *body, GError **error);
void command_form_free(CommandForm *form);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CommandForm, command_form_free)

bool command_form_waits(const CommandForm *form);
/* As box_start(); ERR_DENIED also where it asks for root and the template lets nobody be that. */
Run *command_form_start(CommandForm *form, Box *box, const char *actor, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/attach.h"

/* Our end of the command's input: bytes, the size of the window, signals.  One thing is on its
 * way at a time, so that the order stays. */
typedef struct AttachInput AttachInput;

/* `path` is that of the command. */
AttachInput *attach_input_new(const AttachSpec *spec, const char *path);
/* Gives the terminal back as it was. */
void attach_input_free(AttachInput *input);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AttachInput, attach_input_free)

/* Ctrl-P Ctrl-Q was typed, or an interrupt came for the third time. */
bool attach_input_has_left(const AttachInput *input);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "init/box.h"

/* pid 1's part of wire/sudo.h: it accepts, looks who it is, and gives the connection away.  It
 * reads nothing from a client, so none can keep it. */

/* A box whose template allows it. */
bool sudo_open(Box *box);
void sudo_on_connect(Box *box);
/* A slot's holder has ended. */
void sudo_on_lease(Box *box, uint32_t slot);

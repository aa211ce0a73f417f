/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* What stands in for a box where tests need coop-init and no keeper: pid and mount namespaces on
 * the host's files. */

/* True: this process may make namespaces; else the test was skipped. */
bool room_possible(void);
/* In the new namespaces: the host's users and its /tmp are not the test's. */
bool room_furnish(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who runs a command for one client of sudo (wire/sudo.h), in a fork of init or of a leader.
 * `lease` is held open as long as it lives.  Every signal is blocked. */
_Noreturn void sudoer_run(int connection, int lease);

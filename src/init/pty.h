/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* A terminal of the box's own devpts.  Both ends are close-on-exec, the master non-blocking.
 * Nobody looks the other end up by its name, which code in the box could have replaced. */
bool pty_open(uint16_t rows, uint16_t columns, int *ret_master, int *ret_slave);
void pty_resize(int master, uint16_t rows, uint16_t columns);

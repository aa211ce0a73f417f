/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "builder/cell.h"

enum { CELL_CODE_SETUP = 125 }; /* the cell could not be made; it said why */

/* After the clone: waits for its ids, builds its view, closes itself in and runs. */
_Noreturn void cell_child(const CellSpec *spec, int ready_fd, int output_fd);

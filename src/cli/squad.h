/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

/* Commands below `coop squad` that have a file of their own. */
extern const Command squad_hook;

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

extern const Command task_kept; /* task-kept.c */

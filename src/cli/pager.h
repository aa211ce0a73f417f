/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

/* Where a long text goes.  On a terminal: line by line cleaned of what would steer it, through $PAGER (less,
 * if that is not set) or, where there is none, straight to it.  Elsewhere: as it is. */
typedef struct Pager Pager;

Pager *pager_open(Cli *cli);
/* False: whoever reads has had enough, or it cannot be written. */
bool pager_write(Pager *pager, const guint8 *bytes, size_t n);
/* Waits for the reader; false: something could not be written. */
bool pager_close(Pager *pager);

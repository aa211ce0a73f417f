/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A /proc through which the keeper sets what belongs to the namespaces of boxes.  The kernel keeps
 * an entry under the same name in the same folder for every namespace that such a file was opened
 * in, as long as that namespace lives, and looks through all of them at each open.  So one /proc
 * serves a few boxes, then the next. */
typedef struct ProcView {
    int fd;
    unsigned uses;
} ProcView;
#define PROC_VIEW_INIT                                                                                       \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }

/* Its root, which stays the view's; -1: errno. */
int proc_view_use(ProcView *view);
void proc_view_clear(ProcView *view);

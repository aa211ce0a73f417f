/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <unistd.h>

/* GLib 2.74 has g_steal_fd but no g_autofd. */
static inline void
auto_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
#define autofd __attribute__((cleanup(auto_close))) int

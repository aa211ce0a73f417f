/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* One session: question, tools, results, until `done` or a limit. */

enum {
    SESSION_SILENT_MAX = 3,    /* answers in a row without a call */
    SESSION_REFUSED_MAX = 3,   /* reports that the server does not take */
    SESSION_MALFORMED_MAX = 6, /* answers in a row whose calls were all no good */
};

/* `cancel_fd`: readable when we shall end; -1: none.  True: it ended with outcome "done", and the server
 * knows. */
bool session_run(int cancel_fd, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failpoint.h"

#ifdef COOP_FAILPOINTS
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef struct Armed {
    char *name; /* NULL: none */
    gint left;
} Armed;

static Armed *
parse_environment(void)
{
    const char *spec = g_getenv("COOP_FAIL_AT");
    Armed *a = g_new0(Armed, 1);

    if (spec == NULL)
        return a;
    const char *colon = strrchr(spec, ':');
    a->name = colon != NULL ? g_strndup(spec, (gsize)(colon - spec)) : g_strdup(spec);
    a->left = colon != NULL ? (gint)g_ascii_strtoll(colon + 1, NULL, 10) : 1;
    return a;
}

void
failpoint_hit(const char *name)
{
    static gsize once;
    static Armed *armed;

    if (g_once_init_enter(&once)) {
        armed = parse_environment();
        g_once_init_leave(&once, 1);
    }
    if (armed->name == NULL || strcmp(armed->name, name) != 0)
        return;
    if (g_atomic_int_dec_and_test(&armed->left)) {
        raise(SIGKILL);
        _exit(128 + SIGKILL); /* pid 1 of a namespace is not killed by its own signal */
    }
}
#else
typedef int failpoint_compiled_out;
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "base/err.h"
#include "json/json.h"

static void
test_depth(void)
{
    g_autofree char *deep = g_strnfill(100000, '[');
    g_autoptr(GError) error = NULL;

    g_assert_null(json_decode(deep, strlen(deep), &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json/depth", test_depth);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>

#include "http/status.h"

static void
test_reasons(void)
{
    static const struct {
        int status;
        const char *reason;
    } cases[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {204, "No Content"},
        {206, "Partial Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {511, "Network Authentication Required"},
        {0, "Unknown"},
        {-1, "Unknown"},
        {99, "Unknown"},
        {299, "Unknown"},
        {512, "Unknown"},
        {999, "Unknown"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpstr(http_status_reason(cases[i].status), ==, cases[i].reason);
}

/* The lookup halves a sorted table: one row out of place hides its neighbours. */
static void
test_table_is_sorted(void)
{
    guint known = 0;

    for (int status = 0; status < 1000; status++) {
        if (g_strcmp0(http_status_reason(status), "Unknown") != 0)
            known++;
    }
    g_assert_cmpuint(known, ==, 54);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http/status/reasons", test_reasons);
    g_test_add_func("/http/status/sorted", test_table_is_sorted);
    return g_test_run();
}

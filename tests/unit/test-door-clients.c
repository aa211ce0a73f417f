/* SPDX-License-Identifier: Apache-2.0 */
#include <glib/gstdio.h>
#include <unistd.h>

#include "door/clients.h"

/* "pattern", or "pattern!" where it may lead inside, of what these clients were found to use. */
static char *
rules_of(const char *found)
{
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("coop-clients-XXXXXX", &path, NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    Json *rule;
    size_t i;

    g_assert_cmpint(fd, >=, 0);
    close(fd);
    g_assert_true(g_file_set_contents(path, found, -1, NULL));
    DoorClients *clients = door_clients_new(NULL, path, NULL, NULL);
    g_autoptr(Json) rules = door_clients_rules(clients);

    json_array_foreach(rules, i, rule)
    {
        g_string_append_printf(text, "%s%s%s", i > 0 ? " " : "",
                               json_string_value(json_object_get(rule, "allow")),
                               json_is_true(json_object_get(rule, "inside")) ? "!" : "");
    }
    door_clients_free(clients);
    g_unlink(path);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void
test_rules(void)
{
    static const struct {
        const char *found, *rules;
    } cases[] = {
        {"{}", ""},
        {"not JSON", ""},
        {"{\"npm\": {\"urls\": [\"https://packages.example.org/npm/\"]}}", "packages.example.org!"},
        {"{\"pip\": {\"urls\": [\"https://index.example.org/simple\"]}}", "index.example.org!"},
        {"{\"cargo\": {\"urls\": [\"https://index.example.org/config.json\"]}}",
         "index.example.org! static.example.org! *.example.org"},
        {"{\"cargo\": {\"urls\": [\"https://index.internal/\"]}}", "index.internal!"},
        {"{\"cargo\": {\"urls\": [\"https://mirror.example.org/\"]}}", "mirror.example.org!"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *rules = rules_of(cases[i].found);

        g_assert_cmpstr(rules, ==, cases[i].rules);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/door/clients/rules", test_rules);
    return g_test_run();
}

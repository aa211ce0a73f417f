/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "daemon/config.h"
#include "daemon/setting.h"
#include "fuzz.h"

/* The input is a configuration file.  It is refused with messages that all point into the
 * file, or it gives values that stay the same when they are read again from the form in which
 * they are shown. */

static void
check_again(const ConfigEntry *entry)
{
    const Setting *s = entry->setting;
    g_auto(GStrv) texts = setting_is_list(s) ? g_strsplit(entry->value, ",", -1) : NULL;
    const char *one[] = {entry->value, NULL};
    g_auto(SettingValue) value = {0};
    size_t bad;

    if (s->secret) {
        g_assert_cmpstr(entry->value, ==, "********");
        return;
    }
    bool good = setting_parse(s, UNIT_NONE, texts != NULL ? (const char *const *)texts : one, &value, &bad);
    g_assert_true(good);
    g_autofree char *shown = setting_dup_shown(s, &value);
    g_assert_cmpstr(shown, ==, entry->value);
}

static void
check_config(const Config *config)
{
    g_autoptr(GPtrArray) entries = config_entries(config);

    for (guint i = 0; i < entries->len; i++) {
        const ConfigEntry *entry = entries->pdata[i];

        if (entry->value != NULL)
            check_again(entry);
    }
    g_assert_true(config->home[0] == '/' && config->database_file[0] == '/');
    g_assert_true(g_str_has_prefix(config->server_url, "http"));
    g_assert_cmpuint(config->addresses->len, >, 0);
    g_assert_cmpint(config->http.body_limit, >, 0);
}

static void
check_problems(const char *message, const char *path)
{
    g_auto(GStrv) lines = g_strsplit(message, "\n", -1);
    guint n = g_strv_length(lines);

    g_assert_cmpuint(n, >, 0);
    for (guint i = 0; i < n; i++)
        g_assert_true(g_str_has_prefix(lines[i], path) || g_str_has_prefix(lines[i], "... and "));
    g_assert_true(g_utf8_validate(message, -1, NULL));
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    static const char *const no_env[] = {NULL};
    const ConfigFlag home = {"home", "/nonexistent/coop", "--home"};
    autofd fd = memfd_create("config", MFD_CLOEXEC);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    g_autoptr(GError) error = NULL;

    if (cut != n) /* it is read whole */
        return;
    g_assert_true(io_write_all(fd, data, n) && fchmod(fd, 0600) == 0);
    g_autoptr(Config) config = config_load(
        &(ConfigSpec){.system_file = path, .env = no_env, .flags = &home, .n_flags = 1}, &error);
    g_assert_true((config != NULL) == (error == NULL));
    if (config != NULL)
        check_config(config);
    else
        check_problems(error->message, path);
}

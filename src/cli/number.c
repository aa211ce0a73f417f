/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/number.h"

#include "base/err.h"

bool
cli_read_number(Cli *cli, const char *option, SettingType type, gint64 min, gint64 max, gint64 *ret_value,
                GError **error)
{
    const Setting setting = {.name = option, .type = type, .min = min, .max = max};
    const char *const texts[] = {cli_option(cli, option), NULL};
    g_auto(SettingValue) value = {0};
    size_t bad;

    if (texts[0] == NULL)
        return true;
    if (!setting_parse(&setting, UNIT_NONE, texts, &value, &bad)) {
        g_autofree char *expects = setting_dup_expects(&setting, UNIT_NONE);

        return err_set(error, ERR_INVALID, "option --%s: '%s' is not %s", option, texts[0], expects);
    }
    *ret_value = value.number;
    return true;
}

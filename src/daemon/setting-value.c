/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "daemon/setting-net.h"
#include "daemon/setting.h"

enum { API_KEY_HEX = 40 };
#define API_KEY_PREFIX "e2b_"

typedef struct NumberUnit {
    const char *suffix;
    gint64 factor;
} NumberUnit;

/* Largest first, for printing. */
static const NumberUnit duration_units[] = {
    {"d", 24 * 3600 * 1000}, {"h", 3600 * 1000}, {"m", 60 * 1000}, {"s", 1000}, {"ms", 1}, {NULL},
};
static const NumberUnit size_units[] = {
    {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {NULL},
};

void
setting_value_clear(SettingValue *value)
{
    g_strfreev(value->items);
    *value = (SettingValue){0};
}

/* `bare` is the factor of a number without a unit; 0: it needs one. */
static bool
parse_number(const char *text, const NumberUnit *units, gint64 bare, gint64 *ret_number)
{
    size_t digits = strspn(text, "0123456789");
    gint64 factor = text[digits] == '\0' ? bare : 0;
    g_autofree char *head = g_strndup(text, digits);
    gint64 n;

    for (const NumberUnit *u = units; u != NULL && u->suffix != NULL; u++) {
        if (strcmp(u->suffix, text + digits) == 0)
            factor = u->factor;
    }
    if (factor == 0 || !g_ascii_string_to_signed(head, 10, 0, G_MAXINT64, &n, NULL))
        return false;
    return !__builtin_mul_overflow(n, factor, ret_number);
}

static char *
format_number(gint64 number, const NumberUnit *units)
{
    for (const NumberUnit *u = units; u->suffix != NULL; u++) {
        if (number != 0 && number % u->factor == 0)
            return g_strdup_printf("%" G_GINT64_FORMAT "%s", number / u->factor, u->suffix);
    }
    return g_strdup("0");
}

static bool
parse_bool(const char *text, gint64 *ret_number)
{
    static const char *const yes[] = {"true", "yes", "on", "1", NULL};
    static const char *const no[] = {"false", "no", "off", "0", NULL};
    g_autofree char *lower = g_ascii_strdown(text, -1);

    *ret_number = g_strv_contains(yes, lower);
    return *ret_number != 0 || g_strv_contains(no, lower);
}

static bool
is_text(const char *text, bool spaces)
{
    if (text[0] == '\0' || strlen(text) > SETTING_TEXT_MAX || !g_utf8_validate(text, -1, NULL))
        return false;
    for (const char *p = text; *p != '\0'; p++) {
        if ((guchar)*p < ' ' || *p == 0x7f || (*p == ' ' && !spaces))
            return false;
    }
    return true;
}

static bool
is_api_key(const char *text)
{
    const char *hex = text + strlen(API_KEY_PREFIX);

    return g_str_has_prefix(text, API_KEY_PREFIX) && strlen(hex) == API_KEY_HEX &&
           strspn(hex, "0123456789abcdefABCDEF") == API_KEY_HEX;
}

static bool
parse_path(const char *text, GPtrArray *items)
{
    if (!is_text(text, true))
        return false;
    g_autofree char *path = g_canonicalize_filename(text, NULL);
    if (!path_is_normal(path))
        return false;
    g_ptr_array_add(items, g_steal_pointer(&path));
    return true;
}

/* The canonical text of a number goes to `items` too, so that every value has one. */
static bool
parse_numeric(const Setting *s, SettingUnit unit, const char *text, gint64 *ret_number, GPtrArray *items)
{
    const NumberUnit *units = s->type == SETTING_DURATION ? duration_units
                              : s->type == SETTING_SIZE   ? size_units
                                                          : NULL;
    gint64 bare = s->type != SETTING_DURATION || unit == UNIT_MS ? 1 : 0;

    if (s->type == SETTING_BOOL) {
        if (!parse_bool(text, ret_number))
            return false;
        g_ptr_array_add(items, g_strdup(*ret_number != 0 ? "true" : "false"));
        return true;
    }
    if (!parse_number(text, units, bare, ret_number) || *ret_number < s->min || *ret_number > s->max)
        return false;
    g_ptr_array_add(items, units != NULL ? format_number(*ret_number, units)
                                         : g_strdup_printf("%" G_GINT64_FORMAT, *ret_number));
    return true;
}

static bool
add_if(bool good, const char *text, GPtrArray *items)
{
    if (good)
        g_ptr_array_add(items, g_strdup(text));
    return good;
}

static bool
parse_one(const Setting *s, SettingUnit unit, const char *text, gint64 *ret_number, GPtrArray *items)
{
    if (!is_text(text, true))
        return false;
    switch (s->type) {
    case SETTING_STRING:
        return add_if(true, text, items);
    case SETTING_WORD:
        return add_if(is_text(text, false), text, items);
    case SETTING_PATH:
        return parse_path(text, items);
    case SETTING_INT:
    case SETTING_SIZE:
    case SETTING_DURATION:
    case SETTING_BOOL:
        return parse_numeric(s, unit, text, ret_number, items);
    case SETTING_ADDRESSES:
        return net_parse_listen(text, items);
    case SETTING_HOSTS:
        return net_parse_host(text, items);
    case SETTING_ORIGINS:
        return net_parse_origin(text, items);
    case SETTING_URL:
        return is_text(text, false) && net_parse_url(text, s->schemes, items);
    case SETTING_DATABASE:
        return net_parse_database(text, items);
    case SETTING_API_KEY:
        return add_if(is_api_key(text), text, items);
    case SETTING_LOG_LEVELS:
        return add_if(log_check_levels(text), text, items);
    case SETTING_TYPE_MAX:
        break;
    }
    g_assert_not_reached();
}

static void
drop_repeated(GPtrArray *items)
{
    for (guint i = 0; i < items->len; i++) {
        for (guint j = items->len - 1; j > i; j--) {
            if (strcmp(items->pdata[i], items->pdata[j]) == 0)
                g_ptr_array_remove_index(items, j);
        }
    }
}

bool
setting_parse(const Setting *setting, SettingUnit unit, const char *const *texts, SettingValue *ret_value,
              size_t *ret_bad)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(g_free);
    gint64 number = 0;
    size_t n = 0;

    for (; texts[n] != NULL; n++) {
        if (n < SETTING_ITEMS_MAX && parse_one(setting, unit, texts[n], &number, items))
            continue;
        *ret_bad = n;
        return false;
    }
    if (n == 0 && setting->type == SETTING_ADDRESSES) {
        *ret_bad = 0;
        return false;
    }
    drop_repeated(items);
    g_ptr_array_add(items, NULL);
    *ret_value = (SettingValue){(char **)g_ptr_array_free(g_steal_pointer(&items), FALSE), number};
    return true;
}

static char *
range_text(const Setting *s, const NumberUnit *units)
{
    g_autofree char *min = format_number(s->min, units);
    g_autofree char *max = format_number(s->max, units);

    return g_strdup_printf("from %s to %s", min, max);
}

static char *
expects_number(const Setting *s, SettingUnit unit)
{
    if (s->type == SETTING_INT)
        return g_strdup_printf("a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, s->min,
                               s->max);
    if (s->type == SETTING_SIZE) {
        g_autofree char *range = range_text(s, size_units);

        return g_strdup_printf("a size %s, such as 512KiB, 8MiB or 1GiB", range);
    }
    g_autofree char *range = range_text(s, duration_units);
    return g_strdup_printf("a duration %s, such as 500ms, 30s, 15m, 24h or 30d%s", range,
                           unit == UNIT_MS ? "; a number without a unit counts milliseconds" : "");
}

char *
setting_dup_expects(const Setting *s, SettingUnit unit)
{
    static const char *const texts[SETTING_TYPE_MAX] = {
        [SETTING_STRING] = "a line of text",
        [SETTING_WORD] = "a text without spaces",
        [SETTING_PATH] = "the path of a folder or file below /",
        [SETTING_BOOL] = "true or false",
        [SETTING_ADDRESSES] = "an address and a port, such as 127.0.0.1:8003, [::1]:8003, localhost:8003 "
                              "or *:8003",
        [SETTING_HOSTS] = "the name of a host, such as coop.example.com or coop.example.com:8003",
        [SETTING_ORIGINS] = "an origin, such as https://board.example.com or http://localhost:3000",
        [SETTING_DATABASE] = "sqlite:FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME",
        [SETTING_API_KEY] = "e2b_ and 40 hexadecimal digits",
        [SETTING_LOG_LEVELS] = "a list of levels, such as info or info,http=debug "
                               "(debug, info, warn, error)",
    };

    if (s->type == SETTING_URL) {
        g_auto(GStrv) schemes = g_strsplit(s->schemes, ",", -1);
        g_autofree char *joined = g_strjoinv("://, ", schemes);

        return g_strdup_printf("a URL that begins with %s://", joined);
    }
    return texts[s->type] != NULL ? g_strdup(texts[s->type]) : expects_number(s, unit);
}

char *
setting_dup_shown(const Setting *setting, const SettingValue *value)
{
    if (value->items == NULL)
        return NULL;
    if (setting->secret)
        return g_strdup("********");
    g_autofree char *joined = g_strjoinv(",", value->items);
    if (setting->type == SETTING_URL || setting->type == SETTING_DATABASE)
        return net_dup_without_password(joined);
    return g_steal_pointer(&joined);
}

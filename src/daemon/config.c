/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/config-private.h"
#include "daemon/setting-net.h"

enum {
    CONFIG_SHOWN_MAX = 80,  /* characters of a bad value that a message repeats */
    CONFIG_LINE_MAX = 2000, /* bytes of a message */
};

static const guint compat_ports[] = {8000, 8002, 8004};

static char *dup_line(const char *fmt, va_list ap) G_GNUC_PRINTF(1, 0);

/* One line of printable text: names and values in it come from files. */
static char *
dup_line(const char *fmt, va_list ap)
{
    g_autofree char *raw = g_strdup_vprintf(fmt, ap);
    g_autofree char *text = g_utf8_make_valid(raw, -1);
    GString *line = g_string_new(NULL);

    for (char *p = text; *p != '\0' && line->len < CONFIG_LINE_MAX; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);

        if (g_unichar_isprint(c))
            g_string_append_unichar(line, c);
        else
            g_string_append_printf(line, "\\x%02x", c);
    }
    return g_string_free(line, FALSE);
}

void
config_problem(ConfigLoader *loader, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_ptr_array_add(loader->problems, dup_line(fmt, ap));
    va_end(ap);
}

void
config_notice(ConfigLoader *loader, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_ptr_array_add(loader->config->notices, dup_line(fmt, ap));
    va_end(ap);
}

/* The value as a message may repeat it: secrets and URLs that may hold a password are left
 * out. */
static char *
dup_quoted(const Setting *setting, const char *text)
{
    bool is_url = setting->type == SETTING_URL || setting->type == SETTING_DATABASE;

    if (setting->secret || (is_url && strpbrk(text, "@?") != NULL))
        return g_strdup("the value (not shown)");
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    if (g_utf8_strlen(valid, -1) <= CONFIG_SHOWN_MAX)
        return g_strdup_printf("'%s'", valid);
    g_autofree char *start = g_utf8_substring(valid, 0, CONFIG_SHOWN_MAX);
    return g_strdup_printf("'%s...'", start);
}

void
config_take(ConfigLoader *loader, const ConfigGiven *given)
{
    const Setting *setting = given->setting;
    ConfigSlot *slot = &loader->config->priv->slots[setting - settings][given->source];
    g_auto(SettingValue) value = {0};
    size_t bad;

    if (!setting_parse(setting, given->unit, given->texts, &value, &bad)) {
        g_autofree char *expects = setting_dup_expects(setting, given->unit);
        g_autofree char *quoted = given->texts[0] != NULL ? dup_quoted(setting, given->texts[bad])
                                                          : g_strdup("an empty list");

        if (bad >= SETTING_ITEMS_MAX)
            config_problem(loader, "%s: more than %d entries", given->place, SETTING_ITEMS_MAX);
        else
            config_problem(loader, "%s: %s is not %s", given->place, quoted, expects);
        return;
    }
    if (setting->later != NULL && given->source != SOURCE_DEFAULT)
        config_notice(loader, "%s is accepted but has no effect yet: %s will come with a later version",
                      given->place, setting->later);
    setting_value_clear(&slot->value);
    g_free(slot->origin);
    slot->value = value;
    slot->origin = g_strdup(given->origin);
    value = (SettingValue){0};
}

const ConfigSlot *
config_slot(const Config *config, const Setting *setting)
{
    const ConfigSlot *row = config->priv->slots[setting - settings];

    for (int s = CONFIG_SOURCE_MAX - 1; s >= 0; s--) {
        if (row[s].value.items != NULL)
            return &row[s];
    }
    return NULL;
}

static void
read_defaults(ConfigLoader *loader)
{
    for (size_t i = 0; i < n_settings; i++) {
        const Setting *s = &settings[i];

        if (s->fallback == NULL)
            continue;
        g_auto(GStrv) texts = g_strsplit(s->fallback, setting_is_list(s) ? "," : "\n", -1);
        config_take(loader, &(ConfigGiven){.setting = s,
                                           .source = SOURCE_DEFAULT,
                                           .texts = (const char *const *)texts,
                                           .origin = "default",
                                           .place = s->name});
    }
}

static const char *
get_env(const ConfigSpec *spec, const char *name)
{
    return spec->env != NULL ? g_environ_getenv((char **)(guintptr)spec->env, name) : g_getenv(name);
}

/* /var/lib/coop for root; for others the XDG base folder of data. */
static char *
default_home(const ConfigSpec *spec)
{
    const char *xdg = get_env(spec, "XDG_DATA_HOME");
    const char *home = get_env(spec, "HOME");

    if (geteuid() == 0)
        return g_strdup("/var/lib/coop");
    if (xdg != NULL && xdg[0] == '/')
        return g_build_filename(xdg, "coop", NULL);
    if (home == NULL || home[0] != '/') {
        const struct passwd *user = getpwuid(geteuid());

        home = user != NULL ? user->pw_dir : NULL;
    }
    return home != NULL && home[0] == '/' ? g_build_filename(home, ".local/share/coop", NULL) : NULL;
}

static void
read_home(ConfigLoader *loader)
{
    const Setting *setting = setting_find("home");
    g_autofree char *home = default_home(loader->spec);
    const char *texts[] = {home, NULL};

    if (home != NULL)
        config_take(loader, &(ConfigGiven){.setting = setting,
                                           .source = SOURCE_DEFAULT,
                                           .texts = texts,
                                           .origin = "default",
                                           .place = "home"});
    const ConfigSlot *slot = config_slot(loader->config, setting);
    if (slot == NULL) {
        config_problem(loader, "home: this user has no home folder: set COOP_HOME to the data folder");
        return;
    }
    g_autofree char *file = g_build_filename(slot->value.items[0], CONFIG_FILE_NAME, NULL);
    config_read_file(loader, file, SOURCE_HOME_FILE);
}

static void
fill_field(Config *config, const Setting *s, const SettingValue *value)
{
    guint8 *at = (guint8 *)config + s->field;

    if (setting_is_list(s))
        *(const char *const **)(void *)at = (const char *const *)value->items;
    else if (s->type == SETTING_BOOL)
        *(bool *)(void *)at = value->number != 0;
    else if (s->type == SETTING_INT || s->type == SETTING_SIZE || s->type == SETTING_DURATION)
        *(gint64 *)(void *)at = value->number;
    else
        *(const char **)(void *)at = value->items[0];
}

static void
add_address(Config *config, const char *text, bool compat)
{
    ConfigAddress a = {.compat = compat};

    for (guint i = 0; i < config->addresses->len; i++) {
        if (strcmp(g_array_index(config->addresses, ConfigAddress, i).text, text) == 0)
            return;
    }
    net_address(text, &a.addr, &a.addr_len);
    g_strlcpy(a.text, text, sizeof a.text);
    g_array_append_val(config->addresses, a);
}

static void
fill_addresses(Config *config)
{
    for (const char *const *a = config->http.listen; *a != NULL; a++)
        add_address(config, *a, false);
    for (size_t i = 0; config->http.compat && i < G_N_ELEMENTS(compat_ports); i++) {
        for (const char *const *a = config->http.listen; *a != NULL; a++) {
            g_autofree char *text = net_dup_with_port(*a, compat_ports[i]);

            add_address(config, text, true);
        }
    }
}

/* A wildcard address is no place to connect to. */
static char *
url_of_listen(const Config *config)
{
    const char *first = config->http.listen[0];

    if (g_str_has_prefix(first, "0.0.0.0:"))
        return g_strdup_printf("http://127.0.0.1:%u", net_port(first));
    if (g_str_has_prefix(first, "[::]:"))
        return g_strdup_printf("http://[::1]:%u", net_port(first));
    return g_strconcat("http://", first, NULL);
}

static char *
file_of_database(ConfigLoader *loader)
{
    const Setting *setting = setting_find("database.url");
    const ConfigSlot *slot = config_slot(loader->config, setting);
    const char *url = slot->value.items[0];

    if (!g_str_has_prefix(url, "sqlite:")) {
        url = setting->fallback;
        config_notice(loader, "%s: PostgreSQL will come with a later version; %s in the data folder is used",
                      slot->origin, url);
    }
    const char *file = url + strlen("sqlite:");
    return file[0] == '/' ? g_strdup(file) : g_build_filename(loader->config->home, file, NULL);
}

static void
fill(ConfigLoader *loader)
{
    Config *config = loader->config;

    for (size_t i = 0; i < n_settings; i++) {
        const ConfigSlot *slot = config_slot(config, &settings[i]);

        if (slot != NULL && settings[i].field != SETTING_NO_FIELD)
            fill_field(config, &settings[i], &slot->value);
    }
    fill_addresses(config);
    const ConfigSlot *url = config_slot(config, setting_find("server.url"));
    config->priv->server_url = url != NULL ? g_strdup(url->value.items[0]) : url_of_listen(config);
    config->server_url = config->priv->server_url;
    config->server_url_is_set = url != NULL;
    config->priv->database_file = file_of_database(loader);
    config->database_file = config->priv->database_file;
    const ConfigSlot *dir = config_slot(config, setting_find("templates.dir"));
    config->priv->templates_dir = dir != NULL ? g_strdup(dir->value.items[0])
                                              : g_build_filename(config->home, "templates", NULL);
    config->templates_dir = config->priv->templates_dir;
}

static bool
report(const ConfigLoader *loader, GError **error)
{
    guint n = loader->problems->len, shown = MIN(n, CONFIG_PROBLEMS_MAX);
    g_autoptr(GString) text = g_string_new(NULL);

    if (n == 0)
        return true;
    for (guint i = 0; i < shown; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? "\n" : "", (const char *)loader->problems->pdata[i]);
    if (n > shown)
        g_string_append_printf(text, "\n... and %u more", n - shown);
    return err_set(error, ERR_INVALID, "%s", text->str);
}

Config *
config_load(const ConfigSpec *spec, GError **error)
{
    g_autoptr(Config) config = g_new0(Config, 1);
    g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);
    ConfigLoader loader = {.spec = spec, .config = config, .problems = problems};

    config->priv = g_new0(ConfigPrivate, 1);
    config->priv->slots = g_malloc0_n(n_settings, sizeof *config->priv->slots);
    config->addresses = g_array_new(FALSE, TRUE, sizeof(ConfigAddress));
    config->notices = g_ptr_array_new_with_free_func(g_free);

    read_defaults(&loader);
    config_read_file(&loader, spec->system_file != NULL ? spec->system_file : CONFIG_SYSTEM_FILE,
                     SOURCE_SYSTEM_FILE);
    config_read_env(&loader);
    config_read_flags(&loader);
    read_home(&loader);
    if (!report(&loader, error))
        return NULL;
    fill(&loader);
    return g_steal_pointer(&config);
}

void
config_free(Config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < n_settings; i++) {
        for (int s = 0; s < CONFIG_SOURCE_MAX; s++) {
            setting_value_clear(&config->priv->slots[i][s].value);
            g_free(config->priv->slots[i][s].origin);
        }
    }
    g_free(config->priv->slots);
    g_free(config->priv->server_url);
    g_free(config->priv->database_file);
    g_free(config->priv->templates_dir);
    g_free(config->priv);
    g_array_unref(config->addresses);
    g_ptr_array_unref(config->notices);
    g_free(config);
}

static void
entry_free(void *data)
{
    ConfigEntry *entry = data;

    g_free(entry->value);
    g_free(entry->origin);
    g_free(entry);
}

GPtrArray *
config_entries(const Config *config)
{
    GPtrArray *entries = g_ptr_array_new_with_free_func(entry_free);

    for (size_t i = 0; i < n_settings; i++) {
        const ConfigSlot *slot = config_slot(config, &settings[i]);
        ConfigEntry *entry = g_new0(ConfigEntry, 1);

        entry->setting = &settings[i];
        entry->value = slot != NULL ? setting_dup_shown(&settings[i], &slot->value) : NULL;
        entry->origin = g_strdup(slot != NULL ? slot->origin : "not set");
        g_ptr_array_add(entries, entry);
    }
    return entries;
}

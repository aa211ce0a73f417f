/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/nearest.h"
#include "daemon/config-private.h"
#include "daemon/config-yaml.h"

#define ENV_PREFIX "COOP_"

typedef struct FileSource {
    ConfigLoader *loader;
    const char *path;
    ConfigSource source;
} FileSource;

static void
fail_unknown(FileSource *file, const char *name, ConfigPlace place)
{
    g_autofree const char **names = g_new(const char *, n_settings);
    g_autofree char *prefix = g_strconcat(name, ".", NULL);
    bool is_section = false;

    for (size_t i = 0; i < n_settings; i++) {
        names[i] = settings[i].name;
        is_section = is_section || g_str_has_prefix(names[i], prefix);
    }
    const char *near = nearest(name, names, n_settings);
    if (is_section)
        config_problem(file->loader, "%s:%u:%u: %s is a section: its settings go below it, indented",
                       file->path, place.line, place.column, name);
    else if (near != NULL)
        config_problem(file->loader, "%s:%u:%u: unknown setting %s: did you mean %s?", file->path, place.line,
                       place.column, name, near);
    else
        config_problem(file->loader, "%s:%u:%u: unknown setting %s", file->path, place.line, place.column,
                       name);
}

static void
on_value(const char *name, const char *const *texts, bool is_list, ConfigPlace place, void *data)
{
    FileSource *file = data;
    const Setting *setting = setting_find(name);

    if (setting == NULL) {
        fail_unknown(file, name, place);
        return;
    }
    g_autofree char *at = g_strdup_printf("%s:%u:%u: %s", file->path, place.line, place.column, name);
    if (is_list && !setting_is_list(setting)) {
        config_problem(file->loader, "%s takes one value, not a list", at);
        return;
    }
    if (file->source == SOURCE_HOME_FILE && strcmp(name, "home") == 0) {
        config_problem(file->loader, "%s cannot be set from inside the data folder", at);
        return;
    }
    g_autofree char *origin = g_strdup_printf("%s:%u", file->path, place.line);
    config_take(
        file->loader,
        &(ConfigGiven){
            .setting = setting, .source = file->source, .texts = texts, .origin = origin, .place = at});
}

static void
on_problem(const char *message, ConfigPlace place, void *data)
{
    FileSource *file = data;

    config_problem(file->loader, "%s:%u:%u: %s", file->path, place.line, place.column, message);
}

void
config_read_text(ConfigLoader *loader, const char *text, size_t len, const char *path, ConfigSource source)
{
    FileSource file = {loader, path, source};

    config_yaml_read(text, len, &(ConfigYamlSink){on_value, on_problem, &file});
}

static bool
has_secret(const Config *config, ConfigSource source)
{
    for (size_t i = 0; i < n_settings; i++) {
        if (settings[i].secret && config->priv->slots[i][source].value.items != NULL)
            return true;
    }
    return false;
}

static void
read_open_file(ConfigLoader *loader, int fd, const char *path, ConfigSource source)
{
    g_autofree char *text = g_malloc(CONFIG_FILE_MAX + 1);
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        config_problem(loader, "%s is not a regular file", path);
        return;
    }
    if ((st.st_mode & S_IWOTH) != 0) {
        config_problem(loader, "%s can be written by everybody: run chmod o-w '%s'", path, path);
        return;
    }
    ssize_t n = io_read_full(fd, text, CONFIG_FILE_MAX + 1);
    if (n < 0)
        config_problem(loader, "read %s: %s", path, g_strerror(errno));
    else if (n > CONFIG_FILE_MAX)
        config_problem(loader, "%s is larger than %d KiB", path, CONFIG_FILE_MAX / 1024);
    else
        config_read_text(loader, text, (size_t)n, path, source);
    if ((st.st_mode & (S_IRGRP | S_IROTH)) != 0 && has_secret(loader->config, source))
        config_notice(loader, "%s holds a secret and can be read by others: run chmod 600 '%s'", path, path);
}

void
config_read_file(ConfigLoader *loader, const char *path, ConfigSource source)
{
    /* The data folder may belong to a less trusted user than the one who reads it. */
    int follow = source == SOURCE_HOME_FILE ? O_NOFOLLOW : 0;
    autofd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | follow);

    if (fd >= 0)
        read_open_file(loader, fd, path, source);
    else if (errno == EACCES && source == SOURCE_SYSTEM_FILE)
        config_notice(loader, "%s may not be read by this user and is left out", path);
    else if (errno == ELOOP)
        config_problem(loader, "%s is a link: put the file itself there", path);
    else if (errno != ENOENT && errno != ENOTDIR)
        config_problem(loader, "open %s: %s", path, g_strerror(errno));
}

/* A list in one text: "a, b". */
static char **
split_list(const char *text)
{
    char **items = g_strsplit(text, ",", SETTING_ITEMS_MAX + 1);

    for (char **item = items; *item != NULL; item++)
        g_strstrip(*item);
    return items;
}

static void
take_text(ConfigLoader *loader, ConfigGiven given, const char *text)
{
    const char *one[] = {text, NULL};
    g_auto(GStrv) items = setting_is_list(given.setting) ? split_list(text) : NULL;

    given.texts = items != NULL ? (const char *const *)items : one;
    config_take(loader, &given);
}

/* An empty variable counts as not set: that is how .env files leave something out. */
static bool
take_variable(ConfigLoader *loader, char **env, const Setting *setting, const char *name, SettingUnit unit)
{
    const char *text = g_environ_getenv(env, name);

    if (text == NULL || text[0] == '\0')
        return false;
    g_autofree char *origin = g_strconcat("environment ", name, NULL);
    g_autofree char *place = g_strconcat("environment variable ", name, NULL);
    take_text(loader,
              (ConfigGiven){
                  .setting = setting, .source = SOURCE_ENV, .unit = unit, .origin = origin, .place = place},
              text);
    return true;
}

/* A name that looks like a slip of the pen would otherwise be passed over in silence.
 * `known` has the names without their prefix, which would make all of them look alike. */
static void
notice_unknown_variables(ConfigLoader *loader, char **env, GPtrArray *known)
{
    for (char **e = env; *e != NULL; e++) {
        g_autofree char *name = g_strndup(*e, strcspn(*e, "="));
        const char *rest = name + strlen(ENV_PREFIX);

        if (!g_str_has_prefix(name, ENV_PREFIX) ||
            g_ptr_array_find_with_equal_func(known, rest, g_str_equal, NULL))
            continue;
        const char *near = nearest(rest, (const char *const *)known->pdata, known->len);
        if (near != NULL)
            config_notice(loader, "environment variable %s is not known: did you mean " ENV_PREFIX "%s?",
                          name, near);
    }
}

static void
add_known(GPtrArray *known, const char *variable)
{
    if (g_str_has_prefix(variable, ENV_PREFIX))
        g_ptr_array_add(known, g_strdup(variable + strlen(ENV_PREFIX)));
}

/* The first of its names that is set decides. */
static void
read_variables(ConfigLoader *loader, char **env, const Setting *setting, GPtrArray *known)
{
    g_autofree char *own_name = setting_dup_env_name(setting);
    const char *used = take_variable(loader, env, setting, own_name, UNIT_NONE) ? own_name : NULL;

    add_known(known, own_name);
    for (size_t i = 0; i < SETTING_ENVS_MAX && setting->env[i].name != NULL; i++) {
        const SettingEnv *other = &setting->env[i];
        const char *text = g_environ_getenv(env, other->name);

        add_known(known, other->name);
        if (used == NULL)
            used = take_variable(loader, env, setting, other->name, other->unit) ? other->name : NULL;
        else if (text != NULL && text[0] != '\0')
            config_notice(loader, "environment variable %s is left out because %s is set", other->name, used);
    }
}

void
config_read_env(ConfigLoader *loader)
{
    g_autoptr(GPtrArray) known = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) own = loader->spec->env == NULL ? g_get_environ() : NULL;
    char **env = own != NULL ? own : (char **)(guintptr)loader->spec->env;

    for (size_t i = 0; i < n_settings; i++)
        read_variables(loader, env, &settings[i], known);
    notice_unknown_variables(loader, env, known);
}

/* A list takes the texts of all its options together; anything else takes the last one. */
void
config_read_flags(ConfigLoader *loader)
{
    for (size_t i = 0; i < n_settings; i++) {
        g_autoptr(GString) joined = NULL;
        const ConfigFlag *last = NULL;

        for (size_t j = 0; j < loader->spec->n_flags; j++) {
            const ConfigFlag *flag = &loader->spec->flags[j];

            if (strcmp(flag->name, settings[i].name) != 0)
                continue;
            if (joined == NULL)
                joined = g_string_new(flag->value);
            else if (setting_is_list(&settings[i]))
                g_string_append_printf(joined, ",%s", flag->value);
            else
                g_string_assign(joined, flag->value);
            last = flag;
        }
        if (last == NULL)
            continue;
        g_autofree char *place = g_strconcat("option ", last->shown_as, NULL);
        take_text(
            loader,
            (ConfigGiven){.setting = &settings[i], .source = SOURCE_FLAG, .origin = place, .place = place},
            joined->str);
    }
}

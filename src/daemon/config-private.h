/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "daemon/config.h"
#include "daemon/setting.h"

/* In rising order: the last one that has a value decides. */
typedef enum ConfigSource {
    SOURCE_DEFAULT,
    SOURCE_SYSTEM_FILE,
    SOURCE_HOME_FILE,
    SOURCE_ENV,
    SOURCE_FLAG,
    CONFIG_SOURCE_MAX,
} ConfigSource;

typedef struct ConfigSlot {
    SettingValue value; /* items NULL: not set by this source */
    char *origin;
} ConfigSlot;

struct ConfigPrivate {
    ConfigSlot (*slots)[CONFIG_SOURCE_MAX]; /* one row for each setting */
    char *server_url;
    char *database_file;
    char *templates_dir;
};

enum { CONFIG_PROBLEMS_MAX = 50 };

typedef struct ConfigLoader {
    const ConfigSpec *spec;
    Config *config;
    GPtrArray *problems; /* of char * */
} ConfigLoader;

/* Where a value comes from: `origin` is kept for `config show`, `place` opens messages. */
typedef struct ConfigGiven {
    const Setting *setting;
    ConfigSource source;
    SettingUnit unit;
    const char *const *texts;
    const char *origin;
    const char *place;
} ConfigGiven;

void config_take(ConfigLoader *loader, const ConfigGiven *given);
void config_problem(ConfigLoader *loader, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
void config_notice(ConfigLoader *loader, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* The deciding slot of a setting; NULL when no source sets it. */
const ConfigSlot *config_slot(const Config *config, const Setting *setting);

void config_read_file(ConfigLoader *loader, const char *path, ConfigSource source);
void config_read_env(ConfigLoader *loader);
void config_read_flags(ConfigLoader *loader);

/* config-sources.c; also what the fuzzer calls. */
void
config_read_text(ConfigLoader *loader, const char *text, size_t len, const char *path, ConfigSource source);

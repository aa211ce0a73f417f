/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* One row for each setting: its name in config.yaml, the environment variables and the
 * option that also set it, what it may be, and where the daemon finds it.  Everything that
 * reads, checks, prints or documents the configuration walks this table. */

typedef enum SettingType {
    SETTING_STRING,   /* printable text */
    SETTING_WORD,     /* the same without white space */
    SETTING_PATH,     /* absolute; a relative one counts from the working folder */
    SETTING_INT,      /* min..max */
    SETTING_SIZE,     /* bytes; "8MiB" */
    SETTING_DURATION, /* milliseconds; "30s", "30d" */
    SETTING_BOOL,
    SETTING_ADDRESSES, /* list of ADDRESS:PORT to listen on */
    SETTING_HOSTS,     /* list of NAME or NAME:PORT as in a Host header */
    SETTING_ORIGINS,   /* list of SCHEME://HOST[:PORT] as in an Origin header */
    SETTING_URL,       /* with one of `schemes` */
    SETTING_DATABASE,  /* sqlite:FILE or a PostgreSQL URL */
    SETTING_API_KEY,
    SETTING_LOG_LEVELS,
    SETTING_TYPE_MAX,
} SettingType;

/* What a bare number means in an environment variable that brings its own unit. */
typedef enum SettingUnit { UNIT_NONE, UNIT_MS } SettingUnit;

typedef struct SettingEnv {
    const char *name; /* NULL: no more */
    SettingUnit unit;
} SettingEnv;

enum { SETTING_ENVS_MAX = 2, SETTING_NO_FIELD = -1 };

typedef struct Setting {
    const char *name; /* "http.listen": section and key of config.yaml */
    SettingType type;
    const char *fallback; /* default, as it would be written in the file; NULL: unset */
    gint64 min, max;
    const char *schemes; /* of a URL: "redis,rediss" */
    /* Beside COOP_ + the name in capitals with '_' for '.', which all settings have. */
    SettingEnv env[SETTING_ENVS_MAX];
    const char *flag;
    const char *flag_value; /* what the option's value is called in the help */
    bool secret;            /* never shown */
    const char *later;      /* the part that will use it; NULL: used */
    gssize field;           /* offset in Config, or SETTING_NO_FIELD */
    const char *help;
} Setting;

extern const Setting settings[];
extern const size_t n_settings;

const Setting *setting_find(const char *name);
bool setting_is_list(const Setting *setting);
char *setting_dup_env_name(const Setting *setting); /* "COOP_HTTP_LISTEN" */

/* "a whole number from 1 to 100": completes "'x' is not ...". */
char *setting_dup_expects(const Setting *setting, SettingUnit unit);

/* A value that passed its checks. */
typedef struct SettingValue {
    char **items;  /* canonical text; exactly one unless the setting is a list */
    gint64 number; /* of INT, SIZE, DURATION (ms), BOOL */
} SettingValue;

void setting_value_clear(SettingValue *value);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SettingValue, setting_value_clear)

enum { SETTING_TEXT_MAX = 4096, SETTING_ITEMS_MAX = 64 };

/* `texts` are the items of a list, or one text.  On failure `ret_bad` is the index of the
 * text that is wrong. */
bool setting_parse(const Setting *setting, SettingUnit unit, const char *const *texts,
                   SettingValue *ret_value, size_t *ret_bad);

/* The value as people may see it: a secret and the password in a URL are stars.  NULL for a
 * value that is not set. */
char *setting_dup_shown(const Setting *setting, const SettingValue *value);

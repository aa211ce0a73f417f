/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

/* The configuration: defaults, then /etc/coop/config.yaml, then config.yaml in the data
 * folder, then the environment, then options; the last one that names a setting decides.
 * Every source is checked, also where a later one overrides it, and everything that is wrong
 * is reported at once.
 *
 * The rows are in config-table.c; a setting the daemon uses has a member here. */

typedef struct ConfigHttp {
    const char *const *listen; /* as written; `addresses` is what to open */
    bool compat;
    const char *const *allowed_hosts;   /* lower case, with or without a port */
    const char *const *allowed_origins; /* lower case */
    gint64 max_connections;
    gint64 header_timeout_ms;
    gint64 idle_timeout_ms;
    gint64 body_limit;
    gint64 rate_per_key; /* requests a second */
    gint64 rate_burst;
    gint64 streams_per_key;
} ConfigHttp;

/* What a box gets, and what one may ask for. */
typedef struct ConfigLimits {
    gint64 cpu_milli, memory, disk, inodes, processes;
} ConfigLimits;

typedef struct ConfigBoxes {
    bool enabled;
    ConfigLimits limits, max;
    gint64 lifetime_ms, idle_ms, keep_ms;
    gint64 per_key, count;
    gint64 pool, disks;
    gint64 memory_floor, disk_floor;
    gint64 price_cents; /* of an hour */
} ConfigBoxes;

/* 0: no such bound. */
typedef struct ConfigDoorLimits {
    gint64 bytes_per_day, bytes_per_s, requests_per_min, lookups_per_min;
} ConfigDoorLimits;

typedef struct ConfigDoor {
    bool enabled, ask_clients;
    ConfigDoorLimits limits, max;
    const char *socket; /* NULL: see door_socket() */
} ConfigDoor;

typedef struct ConfigForge {
    gint64 mirror_ms, fetch_max;
    const char *agent_prefix; /* NULL: none */
    bool hooks_to_loopback;
} ConfigForge;

typedef struct ConfigGithub {
    const char *token;   /* of the environment or a file; NULL: none */
    const char *api_url; /* where that token is for; NULL: GitHub */
    gint64 write_pause_ms, poll_ms;
} ConfigGithub;

typedef struct ConfigTeam {
    gint64 concurrent_tasks, agents_per_task;
    gint64 tries, rounds, turns;
    gint64 agent_ms, keep_ms, retry_ms;
    gint64 kept_max;   /* bytes */
    const char *model; /* "provider/model" of members that name none; NULL: as usual */
    const char *template_coder, *template_reviewer, *template_tester; /* NULL: the role's */
} ConfigTeam;

typedef struct ConfigAddress {
    struct sockaddr_storage addr;
    socklen_t addr_len;
    bool compat;   /* one of the ports that --compat adds */
    char text[64]; /* "127.0.0.1:8003", "[::1]:8003" */
} ConfigAddress;

typedef struct ConfigPrivate ConfigPrivate;

/* Strings and lists are borrowed from the Config. */
typedef struct Config {
    const char *home;
    ConfigHttp http;
    ConfigBoxes boxes;
    ConfigDoor door;
    ConfigForge forge;
    ConfigGithub github;
    const char *slack_secret; /* NULL: Slack is not set up */
    const char *const *slack_origins;
    ConfigTeam team;
    const char *template_default;
    const char *templates_dir; /* never NULL */
    bool templates_build;
    const char *keeper_socket; /* NULL: see keeper_socket() */
    gint64 keeper_memory_disk;
    gint64 events_retention_ms;
    const char *log_levels; /* for log_set_levels() */
    const char *key;        /* the API key of E2B_API_KEY, or NULL */
    const char *server_url; /* where commands find the server; never NULL */
    const char *server_key; /* what they show there, or NULL */
    bool server_url_is_set;
    const char *database_file; /* SQLite */
    GArray *addresses;         /* of ConfigAddress: listen, then the compat ports */
    GPtrArray *notices;        /* of char *: accepted, but the user should know */
    ConfigPrivate *priv;
} Config;

typedef struct ConfigFlag {
    const char *name; /* of the setting */
    const char *value;
    const char *shown_as; /* "--listen" */
} ConfigFlag;

typedef struct ConfigSpec {
    const char *system_file; /* NULL: CONFIG_SYSTEM_FILE */
    const char *const *env;  /* "NAME=value"; NULL: the process's own */
    const ConfigFlag *flags;
    size_t n_flags;
} ConfigSpec;

#define CONFIG_SYSTEM_FILE "/etc/coop/config.yaml"
#define CONFIG_FILE_NAME "config.yaml" /* in the data folder */

/* ERR_INVALID with one line for each problem. */
Config *config_load(const ConfigSpec *spec, GError **error);
void config_free(Config *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Config, config_free)

typedef struct ConfigEntry {
    const struct Setting *setting;
    char *value;  /* as shown; NULL: not set */
    char *origin; /* "default", "/etc/coop/config.yaml:3", "environment E2B_TIMEOUT", "option --listen" */
} ConfigEntry;

/* Of ConfigEntry *, in the order of the table. */
GPtrArray *config_entries(const Config *config);

/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/config.h"

#include <getopt.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "keeper/ids.h"
#include "wire/record.h"

enum {
    /* Between the ranges that systemd gives to containers and the end of what fits an int. */
    ID_BASE_DEFAULT = 0x70000000,
    ID_RANGES_DEFAULT = KEEPER_BOXES_MAX,
    USER_DISK_MEMORY = 256 << 20,
    DEVICE_IDLE_S = 60,
};

typedef enum OptionKind { OPTION_TEXT, OPTION_U32, OPTION_U64, OPTION_FLAG } OptionKind;

static const struct {
    const char *name;
    const char *value;
    OptionKind kind;
    size_t offset;
    guint64 max;
    bool needed;
} table[] = {
    {"socket", "PATH", OPTION_TEXT, offsetof(KeeperConfig, socket_path), 0, true},
    {"state", "DIR", OPTION_TEXT, offsetof(KeeperConfig, state_dir), 0, true},
    {"templates", "DIR", OPTION_TEXT, offsetof(KeeperConfig, template_dir), 0, true},
    {"init", "FILE", OPTION_TEXT, offsetof(KeeperConfig, init_path), 0, true},
    {"generations", "DIR", OPTION_TEXT, offsetof(KeeperConfig, generation_dir), 0, false},
    {"server-uid", "UID", OPTION_U32, offsetof(KeeperConfig, server_uid), UINT32_MAX - 1, false},
    {"id-base", "ID", OPTION_U32, offsetof(KeeperConfig, id_base), UINT32_MAX, false},
    {"id-ranges", "N", OPTION_U32, offsetof(KeeperConfig, id_ranges), KEEPER_BOXES_MAX, false},
    {"max-memory", "BYTES", OPTION_U64, offsetof(KeeperConfig, ceiling.memory_bytes), G_MAXINT64, false},
    {"max-pids", "N", OPTION_U64, offsetof(KeeperConfig, ceiling.pids), G_MAXINT32, false},
    {"disk-floor", "BYTES", OPTION_U64, offsetof(KeeperConfig, disk_floor), G_MAXINT64, false},
    {"user-disk", "tmpfs|folder", OPTION_TEXT, offsetof(KeeperConfig, user_disk), 0, false},
    {"user-disk-memory", "BYTES", OPTION_U64, offsetof(KeeperConfig, user_disk_memory), G_MAXINT64, false},
    {"device-idle", "SECONDS", OPTION_U32, offsetof(KeeperConfig, device_idle), G_MAXINT32, false},
    {"cgroup-leaf", NULL, OPTION_FLAG, offsetof(KeeperConfig, in_leaf), 0, false},
    {"template-base", "ID", OPTION_U32, offsetof(KeeperConfig, template_base), UINT32_MAX - ID_RANGE, false},
};

static bool
usage(GError **error)
{
    g_autoptr(GString) text = g_string_new("usage: coop-keeper");

    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        g_string_append_printf(text, table[i].needed ? " --%s%s%s" : " [--%s%s%s]", table[i].name,
                               table[i].value != NULL ? " " : "",
                               table[i].value != NULL ? table[i].value : "");
    return err_set(error, ERR_INVALID, "%s", text->str);
}

static bool
set_option(KeeperConfig *config, size_t i, const char *value, GError **error)
{
    void *field = (char *)config + table[i].offset;
    guint64 number;

    if (table[i].kind == OPTION_TEXT) {
        char **text = field;

        g_free(*text);
        *text = g_strdup(value);
        return true;
    }
    if (table[i].kind == OPTION_FLAG) {
        *(bool *)field = true;
        return true;
    }
    if (!g_ascii_string_to_unsigned(value, 10, 0, table[i].max, &number, NULL))
        return err_set(error, ERR_INVALID, "--%s: '%s' is not a number up to %" G_GUINT64_FORMAT,
                       table[i].name, value, table[i].max);
    if (table[i].kind == OPTION_U64)
        *(uint64_t *)field = number;
    else
        *(uint32_t *)field = (uint32_t)number;
    return true;
}

bool
config_parse(KeeperConfig *config, int argc, char **argv, GError **error)
{
    struct option options[G_N_ELEMENTS(table) + 1] = {0};
    int at;

    *config = (KeeperConfig){.server_uid = geteuid(),
                             .id_base = ID_BASE_DEFAULT,
                             .id_ranges = ID_RANGES_DEFAULT,
                             .disk_floor = UINT64_MAX,
                             .user_disk_memory = USER_DISK_MEMORY,
                             .device_idle = DEVICE_IDLE_S};
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        options[i] = (struct option){.name = table[i].name,
                                     .has_arg = table[i].kind == OPTION_FLAG ? no_argument
                                                                             : required_argument,
                                     .val = (int)i};
    opterr = 0;
    while ((at = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (at == '?')
            return usage(error);
        if (!set_option(config, (size_t)at, optarg, error))
            return false;
    }
    if (optind < argc || config->socket_path == NULL || config->state_dir == NULL ||
        config->template_dir == NULL || config->init_path == NULL)
        return usage(error);
    if (config->user_disk != NULL && strcmp(config->user_disk, "tmpfs") != 0 &&
        strcmp(config->user_disk, "folder") != 0)
        return err_set(error, ERR_INVALID, "--user-disk: '%s' is neither tmpfs nor folder",
                       config->user_disk);
    if (g_strcmp0(config->user_disk, "folder") == 0)
        config->user_disk_memory = 0;
    return true;
}

void
config_clear(KeeperConfig *config)
{
    g_free(config->socket_path);
    g_free(config->state_dir);
    g_free(config->template_dir);
    g_free(config->generation_dir);
    g_free(config->init_path);
    g_free(config->user_disk);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/ceiling.h"

/* What the keeper was told when it was started. */
typedef struct KeeperConfig {
    char *socket_path;
    char *state_dir; /* absolute, without links, once it is open */
    char *template_dir;
    char *generation_dir; /* NULL: none, and nothing can be attached */
    char *init_path;
    uid_t server_uid;
    uint32_t id_base, id_ranges;
    Ceiling ceiling;           /* 0: what the host has but for a floor */
    uint64_t disk_floor;       /* UINT64_MAX: a part of the file system */
    char *user_disk;           /* without root: "tmpfs", or "folder" */
    uint64_t user_disk_memory; /* of a tmpfs; a larger disk is a folder */
    uint32_t device_idle;      /* seconds until loop devices that nobody needs are removed */
    bool in_leaf;              /* the group we are in was made for us: boxes go beside it */
    uint32_t template_base;    /* the id of root in the files of layers and disks */
} KeeperConfig;

bool config_parse(KeeperConfig *config, int argc, char **argv, GError **error);
void config_clear(KeeperConfig *config);

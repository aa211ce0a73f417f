/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "keeper/cgroup.h"
#include "keeper/disk.h"
#include "keeper/loop.h"
#include "wire/record.h"

typedef struct Keeper Keeper;

typedef enum BoxState { BOX_CREATING, BOX_RUNNING, BOX_KILLING, BOX_GONE, BOX_STATE_MAX } BoxState;

/* What there is of a box besides this struct, in the order it comes to be. */
typedef enum BoxHolds {
    HOLDS_RECORD = 1 << 0,
    HOLDS_SLOT = 1 << 1,
    HOLDS_GROUP = 1 << 2,
    HOLDS_DISK_JOB = 1 << 3, /* a helper works for it */
    HOLDS_DISK = 1 << 4,
    HOLDS_PROCESS = 1 << 5,
    HOLDS_ATTACH = 1 << 6, /* a helper is in its mount namespace */
} BoxHolds;

enum { BOX_KILLERS_MAX = 4 };

typedef struct Box {
    struct Box *next;
    Keeper *keeper;
    char id[KEEPER_ID_LEN + 1];
    BoxState state;
    unsigned holds; /* BoxHolds */
    KeeperRequest request;

    int slot;
    char group[CGROUP_NAME_MAX + 1];
    CgroupEntry entry; /* open until the child has said something */
    int idmap_fd;      /* of its disk, if that has one already */
    int disk_mount_fd; /* detached, until the child has it */
    int disk_dir_fd;   /* its root, for as long as the box lives */
    int disk_image_fd; /* its file, to be given back last; -1 in memory */
    int disk_device;   /* as in DiskFds */
    int pidfd, channel_fd, sync_fd, door_fd;
    int handed[2]; /* the child's ends of channel and sync, until it has said something */
    bool frozen;
    int trouble; /* with its storage: an errno, until THAW */
    uint64_t fsid, disk_seen;
    bool in_folder;         /* its disk: measured now and then */
    DiskShape disk_used;    /* at the last measure */
    int64_t measure_due_us; /* CLOCK_MONOTONIC */
    uint64_t netns_cookie;
    int64_t born_us;
    int64_t deadline_us; /* CREATING and KILLING: when to try harder; CLOCK_MONOTONIC */
    Watch process_watch, sync_watch;
    Watch attach_watch; /* the helper's pidfd */
    uint32_t attach_serial;
    bool attaches;       /* else it detaches */
    unsigned n_attached; /* as the helpers found it: a box can hide a mount, not undo it */

    /* Why and how it ended. */
    KeeperStage failed_stage; /* 0: it was made */
    int failed_error;
    int exit_code;
    uint32_t oom_kills;
    uint32_t killers[BOX_KILLERS_MAX]; /* serials of KILLs to be answered */
    int n_killers;
} Box;

Box *box_new(Keeper *keeper, const KeeperRequest *request);
Box *box_find(Keeper *keeper, const char *id);
void box_set_state(Box *box, BoxState to);
const char *box_state_name(BoxState state);
bool box_state_may_follow(BoxState from, BoxState to);
/* What was the child's is not needed any more: it has it, or is dead. */
void box_close_handed(Box *box);
/* Out of the list, fds closed, memory gone; only when GONE. */
void box_free(Box *box);

/* create.c */
void box_create(Keeper *keeper, const KeeperRequest *request);
void box_create_on_disk(Box *box, int error, DiskFds fds);

/* spawn.c: on failure errno and the stage; what was made is in the box. */
bool box_spawn(Box *box, KeeperStage *ret_stage);

/* attach.c: ATTACH and DETACH */
void box_attach(Keeper *keeper, const KeeperRequest *request);
/* Its helper ends; box_clean() is called when it has. */
void box_attach_cancel(Box *box);

/* reap.c */
void box_fail(Box *box, KeeperStage stage, int error);
void box_kill(Box *box);
/* Goes on with the end of a box as far as it can. */
void box_clean(Box *box);
void box_on_exit(void *ctx, uint32_t events);
/* Boxes whose deadline has passed. */
void box_check_deadlines(Keeper *keeper);

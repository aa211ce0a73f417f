/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* What the server asks of the keeper: fixed records, one packet each.  The keeper parses
 * nothing else.  Strings are NUL-terminated inside their arrays, checked by
 * keeper_request_check().
 *
 * The keeper has one server at a time (the socket's peer must be the server's user or root);
 * a new connection takes the place of the old one, asks LIST, and gets a BOX record with the
 * box's fds for each box that lives, GONE for each that ended while nobody was there to be
 * told, and then LISTED.  Records with serial 0 may come at any time. */

enum {
    KEEPER_VERSION = 4,
    KEEPER_ID_LEN = 20,
    KEEPER_NAME_MAX = 63,
    KEEPER_LAYERS_MAX = 16,
    KEEPER_BOXES_MAX = 4096,
    KEEPER_POOL_MAX = 256,
    KEEPER_HOLDS_MAX = 128,
    KEEPER_ATTACHED_MAX = 16, /* generations in one box */
};

/* What a box may ask for; less cannot work, more no machine has. */
#define KEEPER_MEMORY_MIN (UINT64_C(8) << 20)
#define KEEPER_MEMORY_MAX (UINT64_C(1) << 44)
#define KEEPER_DISK_MIN (UINT64_C(8) << 20)
#define KEEPER_DISK_MAX (UINT64_C(1) << 43)
enum {
    KEEPER_INODES_MIN = 256,
    KEEPER_INODES_MAX = 1 << 28,
    KEEPER_PIDS_MIN = 4,
    KEEPER_PIDS_MAX = 1 << 20,
    KEEPER_CPU_MIN = 10,
    KEEPER_CPU_MAX = 1024 * 1000,
};

/* Only root inside may write there, and a folder on the way that others may write is refused. */
#define KEEPER_ATTACH_DIR "/run/coop/git"

typedef enum KeeperVerb {
    KEEPER_HELLO = 1, /* answered by OK with version and degraded */
    KEEPER_CREATE,    /* answered by BOX (with fds) or FAILED */
    KEEPER_KILL,      /* answered by GONE when nothing of it is left */
    KEEPER_FREEZE,    /* answered by OK or FAILED */
    KEEPER_THAW,      /* answered by OK or FAILED */
    KEEPER_STAT,      /* answered by STATS or FAILED */
    KEEPER_LIST,
    KEEPER_PREPARE, /* have `count` disks of these limits ready; answered by OK at once */
    /* The folder layers[0] of the generations, read-only at KEEPER_ATTACH_DIR/NAME in the box; once
     * more is no error.  Answered by OK or FAILED: EBUSY, another is under way there; ENOSPC, it has
     * KEEPER_ATTACHED_MAX; ENOENT, no such folder, or the keeper was given none; EPERM, ENOTDIR: what
     * the box has in that place. */
    KEEPER_ATTACH,
    KEEPER_DETACH, /* the same in reverse; one that is not there is no error */
    /* A process of the server's user, whose pidfd comes along, gets a group of its own with `limits`
     * (disk and inodes 0), and what it starts from then on too; they end with it.  Answered by OK or
     * FAILED: EPERM, it is somebody else's; ESRCH, it is over; EUSERS, there are too many; EOPNOTSUPP,
     * this machine has no such groups. */
    KEEPER_HOLD,
    /* from the keeper */
    KEEPER_OK = 64,
    KEEPER_BOX,
    KEEPER_FAILED,
    KEEPER_GONE, /* serial 0: it ended by itself */
    KEEPER_STATS,
    KEEPER_LISTED,  /* the end of a LIST */
    KEEPER_TROUBLE, /* serial 0: something befell a box that lives; see KeeperTrouble */
} KeeperVerb;

typedef struct KeeperLimits {
    uint64_t memory_bytes;
    uint64_t disk_bytes;
    uint32_t inodes;
    uint32_t pids;
    uint32_t cpu_milli; /* 2000: two cores */
    uint32_t reserved;
} KeeperLimits;

typedef struct KeeperRequest {
    uint32_t verb;
    uint32_t serial; /* comes back in the answer */
    char box[KEEPER_ID_LEN + 4];
    char hostname[KEEPER_NAME_MAX + 1];
    /* Folders below the template store, top layer first: hex digits only, so no path can be
     * smuggled in. */
    char layers[KEEPER_LAYERS_MAX][KEEPER_NAME_MAX + 1];
    uint32_t n_layers;
    uint32_t flags;     /* KeeperFlags */
    uint16_t door_port; /* 0: no door */
    uint16_t low_ports; /* 1: ports below 1024 may be bound inside */
    uint32_t count;     /* PREPARE: how many; HELLO: KEEPER_VERSION */
    KeeperLimits limits;
} KeeperRequest;
_Static_assert(sizeof(KeeperRequest) == 1168, "a request has no padding");

typedef enum KeeperFlags { KEEPER_KEEP_DISK = 1 << 0, KEEPER_SUDO = 1 << 1 } KeeperFlags;

/* Which fds come with BOX, in this order; a box without a door sends the first two. */
typedef enum KeeperFd { KEEPER_FD_CHANNEL, KEEPER_FD_PIDFD, KEEPER_FD_DOOR, KEEPER_FDS } KeeperFd;

typedef enum KeeperStage {
    STAGE_REQUEST = 1, /* refused before anything was made */
    STAGE_RECORD,
    STAGE_CGROUP,
    STAGE_IDS,
    STAGE_DISK,
    STAGE_LAYERS,
    STAGE_CLONE,
    STAGE_MAPS,
    STAGE_NETWORK,
    STAGE_MOUNTS,
    STAGE_PIVOT,
    STAGE_MASKS,
    STAGE_LIMITS,
    STAGE_CAPABILITIES,
    STAGE_LANDLOCK,
    STAGE_FILTER,
    STAGE_EXEC,
    STAGE_ATTACH,
    STAGE_MAX,
} KeeperStage;

/* In `stage` of TROUBLE; told again after the BOX of a LIST, until THAW. */
typedef enum KeeperTrouble {
    /* The box was frozen.  error: ENOSPC, it wrote most while the host's disk ran full; EIO, its
     * own disk has failed. */
    TROUBLE_STORAGE = 1,
} KeeperTrouble;

typedef struct KeeperAnswer {
    uint32_t verb;
    uint32_t serial; /* 0: nobody asked */
    char box[KEEPER_ID_LEN + 4];
    uint32_t version; /* KEEPER_VERSION */
    uint32_t stage;   /* FAILED: KeeperStage; TROUBLE: KeeperTrouble */
    int32_t error;    /* FAILED, TROUBLE: errno */
    /* GONE */
    int32_t exit_code; /* of pid 1; 128 + signal when one ended it */
    uint32_t oom_kills;
    /* BOX, STATS, OK */
    uint32_t degraded; /* KeeperDegraded */
    uint32_t id_base;  /* host uid of root inside */
    uint32_t frozen;   /* 1: by FREEZE, or in TROUBLE */
    uint64_t netns_cookie;
    uint64_t memory_bytes, memory_peak_bytes, cpu_us, disk_bytes;
    uint32_t pids, inodes;
    int64_t born_us; /* CLOCK_BOOTTIME */
} KeeperAnswer;
_Static_assert(sizeof(KeeperAnswer) == 120, "an answer has no padding");

/* What this box lacks; told wherever the box is shown. */
typedef enum KeeperDegraded {
    DEGRADED_IDS = 1 << 0,
    DEGRADED_MEMORY = 1 << 1,
    DEGRADED_CPU = 1 << 2,
    DEGRADED_DEVICES = 1 << 3,
    DEGRADED_DISK = 1 << 4,
    DEGRADED_PIDS = 1 << 5,
    DEGRADED_LANDLOCK = 1 << 6,
    DEGRADED_FREEZE = 1 << 7,
} KeeperDegraded;

/* Whether the keeper may act on it.  Every field its verb uses is within its bounds. */
bool keeper_request_check(const KeeperRequest *request);
const char *keeper_stage_name(KeeperStage stage);

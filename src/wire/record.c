/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/record.h"

#include <stddef.h>
#include <string.h>

static bool
is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool
is_hex(char c)
{
    return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9');
}

static bool
is_box_id(const char *id, size_t size)
{
    if (strnlen(id, size) != KEEPER_ID_LEN)
        return false;
    for (size_t i = 0; i < KEEPER_ID_LEN; i++) {
        if (!is_lower_alnum(id[i]))
            return false;
    }
    return true;
}

static bool
is_hostname(const char *name, size_t size)
{
    size_t n = strnlen(name, size);

    if (n == 0 || n == size || name[0] == '-' || name[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_lower_alnum(name[i]) && name[i] != '-')
            return false;
    }
    return true;
}

static bool
is_layer(const char *name, size_t size)
{
    size_t n = strnlen(name, size);

    if (n == 0 || n == size)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_hex(name[i]))
            return false;
    }
    return true;
}

static bool
group_limits_check(const KeeperLimits *l)
{
    return l->memory_bytes >= KEEPER_MEMORY_MIN && l->memory_bytes <= KEEPER_MEMORY_MAX &&
           l->pids >= KEEPER_PIDS_MIN && l->pids <= KEEPER_PIDS_MAX && l->cpu_milli >= KEEPER_CPU_MIN &&
           l->cpu_milli <= KEEPER_CPU_MAX && l->reserved == 0;
}

static bool
limits_check(const KeeperLimits *l)
{
    return group_limits_check(l) && l->disk_bytes >= KEEPER_DISK_MIN && l->disk_bytes <= KEEPER_DISK_MAX &&
           l->inodes >= KEEPER_INODES_MIN && l->inodes <= KEEPER_INODES_MAX;
}

static bool
create_check(const KeeperRequest *r)
{
    if (!is_box_id(r->box, sizeof r->box) || !is_hostname(r->hostname, sizeof r->hostname))
        return false;
    if (r->n_layers == 0 || r->n_layers > KEEPER_LAYERS_MAX)
        return false;
    for (uint32_t i = 0; i < r->n_layers; i++) {
        if (!is_layer(r->layers[i], sizeof r->layers[i]))
            return false;
    }
    return (r->flags & ~(uint32_t)(KEEPER_KEEP_DISK | KEEPER_SUDO)) == 0 && r->low_ports <= 1 &&
           limits_check(&r->limits);
}

bool
keeper_request_check(const KeeperRequest *request)
{
    switch (request->verb) {
    case KEEPER_HELLO:
        return request->count == KEEPER_VERSION;
    case KEEPER_LIST:
        return true;
    case KEEPER_CREATE:
        return create_check(request);
    case KEEPER_KILL:
    case KEEPER_FREEZE:
    case KEEPER_THAW:
    case KEEPER_STAT:
        return is_box_id(request->box, sizeof request->box);
    case KEEPER_ATTACH:
    case KEEPER_DETACH:
        return is_box_id(request->box, sizeof request->box) && request->n_layers == 1 &&
               is_layer(request->layers[0], sizeof request->layers[0]);
    case KEEPER_HOLD:
        return request->limits.disk_bytes == 0 && request->limits.inodes == 0 &&
               group_limits_check(&request->limits);
    case KEEPER_PREPARE:
        return request->count <= KEEPER_POOL_MAX && limits_check(&request->limits);
    default:
        return false;
    }
}

const char *
keeper_stage_name(KeeperStage stage)
{
    static const char *const names[STAGE_MAX] = {
        [STAGE_REQUEST] = "request",
        [STAGE_RECORD] = "record",
        [STAGE_CGROUP] = "cgroup",
        [STAGE_IDS] = "ids",
        [STAGE_DISK] = "disk",
        [STAGE_LAYERS] = "layers",
        [STAGE_CLONE] = "clone",
        [STAGE_MAPS] = "id maps",
        [STAGE_NETWORK] = "network",
        [STAGE_MOUNTS] = "mounts",
        [STAGE_PIVOT] = "change of root",
        [STAGE_MASKS] = "masks",
        [STAGE_LIMITS] = "limits",
        [STAGE_CAPABILITIES] = "capabilities",
        [STAGE_LANDLOCK] = "landlock",
        [STAGE_FILTER] = "system call filter",
        [STAGE_EXEC] = "exec",
        [STAGE_ATTACH] = "attach",
    };

    return stage > 0 && stage < STAGE_MAX ? names[stage] : "unknown";
}

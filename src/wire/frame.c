/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include <string.h>

#include "wire/channel.h"

/* A packed start: this, then user, cwd, argv and env, each with its NUL. */
typedef struct StartHead {
    uint32_t flags, timeout_ms;
    uint16_t rows, columns;
    uint32_t ring_bytes, spill_bytes;
    uint32_t argc, envc;
} StartHead;
_Static_assert(sizeof(StartHead) == 28, "no padding goes over the wire");

enum {
    START_FDS = START_IN_FD | START_OUT_FD,
    START_FLAGS = START_TTY | START_STDIN | START_BLOCK | START_BUILTIN | START_ROOT | START_FDS
};

/* What one type needs. */
typedef struct Rule {
    uint32_t least, most; /* of the payload */
    bool run, stream;
} Rule;

_Static_assert(FRAME_RUNS_MAX * sizeof(FrameRun) + sizeof(FrameHead) <= CHANNEL_PACKET_MAX, "HELLO fits");
_Static_assert(FRAME_DATA_MAX + sizeof(FrameHead) <= CHANNEL_PACKET_MAX, "so do input and output");

enum { START_PAYLOAD_MAX = CHANNEL_PACKET_MAX - sizeof(FrameHead) };

static bool
rule_of(uint16_t type, Rule *ret_rule)
{
    static const struct {
        uint16_t type;
        Rule rule;
    } rules[] = {
        {FRAME_HELLO, {0, FRAME_RUNS_MAX * sizeof(FrameRun), false, false}},
        {FRAME_START, {sizeof(StartHead), START_PAYLOAD_MAX, true, false}},
        {FRAME_STDIN, {1, FRAME_DATA_MAX, true, false}},
        {FRAME_STDIN_CLOSE, {0, 0, true, false}},
        {FRAME_RESIZE, {0, 0, true, false}},
        {FRAME_SIGNAL, {0, 0, true, false}},
        {FRAME_ACK, {0, 0, true, true}},
        {FRAME_FORGET, {0, 0, true, false}},
        {FRAME_CONNECT, {0, 0, false, false}},
        {FRAME_SHUTDOWN, {0, 0, false, false}},
        {FRAME_STARTED, {0, 0, true, false}},
        {FRAME_OUTPUT, {1, FRAME_DATA_MAX, true, true}},
        {FRAME_GAP, {0, 0, true, true}},
        {FRAME_STDIN_ACK, {0, 0, true, false}},
        {FRAME_ENDED, {sizeof(FrameEnd), sizeof(FrameEnd), true, false}},
        {FRAME_CONNECTED, {0, 0, false, false}},
        {FRAME_FAILED, {0, 0, false, false}},
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].type == type) {
            *ret_rule = rules[i].rule;
            return true;
        }
    }
    return false;
}

bool
frame_check(const void *packet, size_t n)
{
    FrameHead head;
    Rule rule;

    if (n < sizeof head || n > CHANNEL_PACKET_MAX)
        return false;
    memcpy(&head, packet, sizeof head);
    if (!rule_of(head.type, &rule) || head.length != n - sizeof head || head.length < rule.least ||
        head.length > rule.most)
        return false;
    if (head.type == FRAME_HELLO && head.length % sizeof(FrameRun) != 0)
        return false;
    if (rule.run && head.run == 0)
        return false;
    return !rule.stream || head.stream == STREAM_STDOUT || head.stream == STREAM_STDERR;
}

/* Room that shrinks; after the first string that does not fit nothing fits. */
typedef struct Room {
    char *at;
    size_t left;
    bool full;
} Room;

static void
put(Room *room, const void *bytes, size_t n)
{
    if (room->full || n > room->left) {
        room->full = true;
        return;
    }
    memcpy(room->at, bytes, n);
    room->at += n;
    room->left -= n;
}

size_t
frame_start_pack(const FrameStart *start, void *out, size_t size)
{
    StartHead head = {
        .flags = start->flags,
        .timeout_ms = start->timeout_ms,
        .rows = start->rows,
        .columns = start->columns,
        .ring_bytes = start->ring_bytes,
        .spill_bytes = start->spill_bytes,
        .argc = start->argc,
        .envc = start->envc,
    };
    Room room = {out, size < START_PAYLOAD_MAX ? size : START_PAYLOAD_MAX, false};

    if (start->argc == 0 || start->argc > FRAME_ARGS_MAX || start->envc > FRAME_ARGS_MAX)
        return 0;
    put(&room, &head, sizeof head);
    put(&room, start->user, strlen(start->user) + 1);
    put(&room, start->cwd, strlen(start->cwd) + 1);
    for (uint32_t i = 0; i < start->argc; i++)
        put(&room, start->argv[i], strlen(start->argv[i]) + 1);
    for (uint32_t i = 0; i < start->envc; i++)
        put(&room, start->envp[i], strlen(start->envp[i]) + 1);
    return room.full ? 0 : (size_t)(room.at - (char *)out);
}

/* One descriptor at most, in place of what would be framed, and only for a built-in. */
static bool
flags_agree(uint32_t flags)
{
    if ((flags & ~(uint32_t)START_FLAGS) != 0)
        return false;
    if ((flags & START_FDS) == 0)
        return true;
    return (flags & START_FDS) != START_FDS && (flags & START_BUILTIN) != 0 &&
           (flags & (START_TTY | START_STDIN)) == 0;
}

/* The string at `*at`, which then stands behind it; NULL: no NUL before the end. */
static const char *
take(const char **at, const char *end)
{
    const char *text = *at;
    const char *nul = memchr(text, '\0', (size_t)(end - text));

    if (nul == NULL)
        return NULL;
    *at = nul + 1;
    return text;
}

static bool
take_list(const char **at, const char *end, const char **list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        list[i] = take(at, end);
        if (list[i] == NULL)
            return false;
    }
    list[n] = NULL;
    return true;
}

bool
frame_start_unpack(void *bytes, size_t n, FrameStart *ret_start)
{
    const char *at = (const char *)bytes + sizeof(StartHead);
    const char *end = (const char *)bytes + n;
    StartHead head;

    if (n < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (head.argc == 0 || head.argc > FRAME_ARGS_MAX || head.envc > FRAME_ARGS_MAX ||
        !flags_agree(head.flags))
        return false;
    ret_start->flags = head.flags;
    ret_start->timeout_ms = head.timeout_ms;
    ret_start->rows = head.rows;
    ret_start->columns = head.columns;
    ret_start->ring_bytes = head.ring_bytes;
    ret_start->spill_bytes = head.spill_bytes;
    ret_start->argc = head.argc;
    ret_start->envc = head.envc;
    ret_start->user = take(&at, end);
    ret_start->cwd = ret_start->user != NULL ? take(&at, end) : NULL;
    return ret_start->cwd != NULL && strlen(ret_start->cwd) < FRAME_PATH_MAX &&
           take_list(&at, end, ret_start->argv, head.argc) &&
           take_list(&at, end, ret_start->envp, head.envc) && at == end;
}

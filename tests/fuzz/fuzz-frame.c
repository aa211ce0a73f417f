/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "wire/channel.h"
#include "wire/frame.h"

/* The input is a packed start, and a packet. */

static bool
inside(const char *text, const guint8 *bytes, size_t n)
{
    const guint8 *p = (const guint8 *)text;

    return p >= bytes && p < bytes + n && memchr(p, '\0', (size_t)(bytes + n - p)) != NULL;
}

/* What was unpacked lies in the input and packs to the same bytes. */
static void
check_start(const guint8 *data, size_t n)
{
    g_autofree guint8 *exact = g_memdup2(data, MAX(n, 1));
    g_autofree FrameStart *start = g_new0(FrameStart, 1);

    if (!frame_start_unpack(exact, n, start))
        return;
    g_assert(inside(start->user, exact, n) && inside(start->cwd, exact, n));
    for (guint i = 0; i < start->argc; i++)
        g_assert(inside(start->argv[i], exact, n));
    for (guint i = 0; i < start->envc; i++)
        g_assert(inside(start->envp[i], exact, n));
    g_assert(start->argv[start->argc] == NULL && start->envp[start->envc] == NULL);
    g_autofree guint8 *again = g_malloc(n);
    size_t packed = frame_start_pack(start, again, n);

    g_assert(n > CHANNEL_PACKET_MAX - sizeof(FrameHead) || packed == n);
    g_assert(packed == 0 || memcmp(again, exact, n) == 0);
}

static void
check_packet(const guint8 *data, size_t n)
{
    g_autofree guint8 *exact = g_memdup2(data, MAX(n, 1));
    FrameHead head;

    if (!frame_check(exact, n))
        return;
    memcpy(&head, exact, sizeof head);
    g_assert(n == sizeof head + head.length && n <= CHANNEL_PACKET_MAX);
    g_assert(head.type != FRAME_HELLO || head.length / sizeof(FrameRun) <= FRAME_RUNS_MAX);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    size_t whole = cut == FUZZ_EACH_BYTE ? n : MIN(cut, n);

    check_start(data, whole);
    check_packet(data, whole);
    if (whole > sizeof(FrameHead))
        check_start(data + sizeof(FrameHead), whole - sizeof(FrameHead));
}

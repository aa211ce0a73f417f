/* SPDX-License-Identifier: Apache-2.0 */
#include "init/input.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/frame.h"

/* A terminal has no end of its own; this is what a person would type. */
static const char end_of_file = 4;

void
input_init(Input *in, int fd, bool tty)
{
    *in = (Input){.fd = fd, .tty = tty};
}

static void
swallow(Input *in)
{
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
    in->written = in->taken;
    if (in->ring != NULL)
        munmap(in->ring, FRAME_WINDOW);
    in->ring = NULL;
}

void
input_clear(Input *in)
{
    swallow(in);
}

static bool
map_ring(Input *in)
{
    if (in->ring != NULL)
        return true;
    void *ring = mmap(NULL, FRAME_WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED)
        return false;
    in->ring = ring;
    return true;
}

void
input_put(Input *in, uint64_t offset, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;

    if (offset > in->taken || in->taken - offset >= n || in->closing)
        return;
    from += in->taken - offset;
    n -= (size_t)(in->taken - offset);
    if (in->fd < 0) {
        in->taken += n;
        in->written = in->taken;
        return;
    }
    if (n > FRAME_WINDOW - (in->taken - in->written) || !map_ring(in))
        return;
    size_t at = (size_t)(in->taken % FRAME_WINDOW);
    size_t first = n < FRAME_WINDOW - at ? n : FRAME_WINDOW - at;
    memcpy(in->ring + at, from, first);
    memcpy(in->ring, from + first, n - first);
    in->taken += n;
}

void
input_close(Input *in)
{
    if (in->closing)
        return;
    in->closing = true;
    input_drain(in);
}

bool
input_wants_room(const Input *in)
{
    return in->fd >= 0 && (in->written < in->taken || in->closing);
}

/* Everything is written. */
static void
finish(Input *in)
{
    if (in->tty && write(in->fd, &end_of_file, 1) < 0 && errno == EAGAIN)
        return;
    swallow(in);
}

void
input_drain(Input *in)
{
    while (in->fd >= 0 && in->written < in->taken) {
        size_t at = (size_t)(in->written % FRAME_WINDOW);
        size_t n = (size_t)(in->taken - in->written);
        ssize_t put = write(in->fd, in->ring + at, n < FRAME_WINDOW - at ? n : FRAME_WINDOW - at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN)
            return;
        if (put < 0)
            swallow(in);
        else
            in->written += (uint64_t)put;
    }
    if (in->fd >= 0 && in->closing)
        finish(in);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A stream against a model: every byte's value is a function of its offset, so what is lost,
 * doubled or moved shows. */
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "init/input.h"
#include "init/output.h"
#include "wire/frame.h"

enum { RING = STREAM_RING_MIN, SPILL = 3 * STREAM_RING_MIN, STEPS = 20000 };

typedef struct Model {
    Stream stream;
    int write_fd;
    uint64_t written;      /* into the pipe */
    uint64_t heard, known; /* by the server: received, written down */
    uint64_t dropped;
    guint8 scratch[FRAME_DATA_MAX];
} Model;

static guint8
byte_at(uint64_t offset)
{
    return (guint8)(offset * 2654435761u >> 13);
}

static void
model_open(Model *m, uint32_t ring, uint32_t spill, bool block)
{
    int fds[2];

    memset(m, 0, sizeof *m);
    g_assert_cmpint(pipe2(fds, O_NONBLOCK | O_CLOEXEC), ==, 0);
    m->write_fd = fds[1];
    stream_init(&m->stream, fds[0], ring, spill, block, geteuid());
}

static void
model_close(Model *m)
{
    stream_clear(&m->stream);
    if (m->write_fd >= 0)
        close(m->write_fd);
}

static void
model_write(Model *m, size_t n)
{
    g_autofree guint8 *bytes = g_malloc(n);

    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_at(m->written + i);
    ssize_t put = write(m->write_fd, bytes, n);
    m->written += put > 0 ? (uint64_t)put : 0;
}

static bool
model_hear(Model *m)
{
    StreamPiece piece = stream_next(&m->stream, m->scratch);

    if (piece.n == 0)
        return false;
    g_assert_cmpuint(piece.offset, ==, m->heard);
    g_assert_cmpuint(piece.offset + piece.n, <=, m->stream.end);
    if (piece.bytes == NULL)
        m->dropped += piece.n;
    else
        g_assert_cmpuint(piece.n, <=, FRAME_DATA_MAX);
    for (uint32_t i = 0; piece.bytes != NULL && i < piece.n; i++)
        g_assert_cmpuint(((const guint8 *)piece.bytes)[i], ==, byte_at(piece.offset + i));
    stream_was_sent(&m->stream, &piece);
    m->heard += piece.n;
    return true;
}

static void
model_ack(Model *m)
{
    m->known = m->heard;
    stream_ack(&m->stream, m->known);
}

static void
model_step(Model *m, GRand *rand)
{
    switch (g_rand_int_range(rand, 0, 8)) {
    case 0:
    case 1:
        model_write(m, (size_t)g_rand_int_range(rand, 1, 6000));
        break;
    case 2:
    case 3:
    case 4:
        if (stream_wants_more(&m->stream))
            (void)stream_fill(&m->stream);
        break;
    case 5:
        (void)model_hear(m);
        break;
    case 6:
        /* Offsets that were never sent change nothing. */
        stream_ack(&m->stream, m->stream.sent_max + 1);
        stream_ack(&m->stream, UINT64_MAX);
        if (g_rand_int_range(rand, 0, 3) == 0)
            model_ack(m);
        break;
    default:
        if (g_rand_int_range(rand, 0, 10) == 0) {
            m->heard = m->known;
            stream_rewind(&m->stream, m->known);
        }
    }
}

static void
run_model(uint32_t spill, bool block)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    Model *m = g_new(Model, 1);

    model_open(m, RING, spill, block);
    for (guint i = 0; i < STEPS; i++)
        model_step(m, rand);
    close(m->write_fd);
    m->write_fd = -1;
    while (m->stream.fd >= 0 || m->heard < m->stream.end) {
        (void)stream_fill(&m->stream);
        if (!model_hear(m))
            model_ack(m);
    }
    g_assert_cmpuint(m->heard, ==, m->written);
    if (block)
        g_assert_cmpuint(m->dropped, ==, 0);
    else
        g_assert_cmpuint(m->dropped, >, 0);
    model_close(m);
    g_free(m);
}

static void
test_model(void)
{
    for (guint i = 0; i < 5; i++) {
        run_model(SPILL, true);
        run_model(SPILL + 77, false);
        run_model(0, true);
        run_model(0, false);
    }
}

/* Fills a stream that nobody reads until it takes no more, or `total` is in. */
static void
fill_up(Model *m, uint64_t total)
{
    do {
        if (m->written < total)
            model_write(m, (size_t)MIN(4096, total - m->written));
    } while (stream_wants_more(&m->stream) && m->stream.end < total && stream_fill(&m->stream) != FILL_END);
}

static void
test_bounds(void)
{
    g_autofree Model *m = g_new(Model, 1);

    model_open(m, RING, SPILL, true);
    fill_up(m, 1 << 20);
    g_assert_cmpuint(m->stream.end, ==, RING + SPILL);
    g_assert_false(stream_wants_more(&m->stream));
    while (model_hear(m))
        ;
    g_assert_cmpuint(m->heard, ==, RING + SPILL);
    g_assert_false(stream_wants_more(&m->stream));
    model_ack(m);
    g_assert_true(stream_wants_more(&m->stream));
    model_close(m);
    model_open(m, RING, SPILL, false);
    fill_up(m, 1 << 20);
    while (model_hear(m))
        ;
    g_assert_cmpuint(m->heard, ==, 1 << 20);
    g_assert_cmpuint((1 << 20) - m->dropped, >=, SPILL + RING - RING / 8 - RING / 2);
    g_assert_cmpuint((1 << 20) - m->dropped, <=, SPILL + RING);
    model_close(m);
}

static void
test_window(void)
{
    g_autofree Model *m = g_new(Model, 1);

    model_open(m, 1 << 20, 0, true);
    fill_up(m, 1 << 20);
    while (model_hear(m))
        ;
    g_assert_cmpuint(m->heard, ==, FRAME_WINDOW);
    m->known = 1000;
    stream_ack(&m->stream, 1000);
    while (model_hear(m))
        ;
    g_assert_cmpuint(m->heard, ==, FRAME_WINDOW + 1000);
    m->heard = 1000;
    stream_rewind(&m->stream, 1000);
    while (model_hear(m))
        ;
    g_assert_cmpuint(m->heard, ==, FRAME_WINDOW + 1000);
    model_close(m);
}

/* Holes told and not acknowledged are few, though they cost no window. */
static void
test_holes(void)
{
    g_autofree Model *m = g_new(Model, 1);
    guint rounds = 0;

    model_open(m, RING, 0, false);
    do {
        fill_up(m, m->written + 4 * RING);
    } while (model_hear(m) && model_hear(m) && ++rounds < 100);
    g_assert_cmpuint(rounds, <=, STREAM_HOLES_MAX + 1);
    model_ack(m);
    g_assert_true(model_hear(m));
    model_close(m);
}

static void
test_input(void)
{
    Input in;
    int fds[2];
    char got[8];
    g_autofree char *big = g_malloc0(FRAME_WINDOW + 1);

    g_assert_cmpint(pipe2(fds, O_NONBLOCK | O_CLOEXEC), ==, 0);
    input_init(&in, fds[1], false);
    input_put(&in, 1, "hole", 4);
    g_assert_cmpuint(in.taken, ==, 0);
    input_put(&in, 0, "abcd", 4);
    input_put(&in, 0, "abcd", 4);
    input_put(&in, 2, "cdEF", 4);
    g_assert_cmpuint(in.taken, ==, 6);
    input_drain(&in);
    g_assert_cmpuint(in.written, ==, 6);
    g_assert_cmpint(read(fds[0], got, sizeof got), ==, 6);
    g_assert_cmpmem(got, 6, "abcdEF", 6);
    input_put(&in, 6, big, FRAME_WINDOW + 1);
    g_assert_cmpuint(in.taken, ==, 6);
    input_put(&in, 6, big, FRAME_WINDOW);
    input_drain(&in);
    g_assert_true(input_wants_room(&in));
    g_assert_cmpuint(in.written, <, in.taken);
    /* Nobody reads any more: the window opens. */
    close(fds[0]);
    (void)signal(SIGPIPE, SIG_IGN);
    input_drain(&in);
    g_assert_cmpuint(in.written, ==, 6 + FRAME_WINDOW);
    input_put(&in, in.taken, "x", 1);
    g_assert_cmpuint(in.written, ==, 7 + FRAME_WINDOW);
    input_clear(&in);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/output/model", test_model);
    g_test_add_func("/init/output/bounds", test_bounds);
    g_test_add_func("/init/output/window", test_window);
    g_test_add_func("/init/output/holes", test_holes);
    g_test_add_func("/init/input", test_input);
    return g_test_run();
}

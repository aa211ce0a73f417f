/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attach-input.h"

#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum {
    PIECE = 32 * 1024,
    CTRL_P = 0x10,
    CTRL_Q = 0x11,
    INTERRUPTS_MAX = 3, /* then we leave, whatever the command does */
    SIGNALS_MAX = 4,
};

struct AttachInput {
    AttachSpec spec;
    char *path;
    guint watch; /* of standard input; 0: not now */
    guint sources[SIGNALS_MAX];
    size_t n_sources;
    struct termios before;
    bool raw;
    bool ended;          /* our input */
    RemoteSend *sending; /* what is on its way; NULL: nothing */
    bool resized;        /* and is to be told */
    int signal;          /* to be passed on; 0: none */
    bool prefix;         /* Ctrl-P was typed and is held back */
    bool left;
    guint interrupts;
};

static void go_on(AttachInput *in);

static void
leave(AttachInput *in)
{
    in->left = true;
    remote_cancel(in->spec.remote);
}

/* A command that has ended takes nothing more; its end comes by the stream. */
static void
on_sent(int status, void *ctx)
{
    AttachInput *in = ctx;

    in->sending = NULL;
    go_on(in);
}

static void
post(AttachInput *in, const char *below, const char *type, const void *bytes, size_t n)
{
    g_autofree char *path = g_strconcat(in->path, below, NULL);

    in->sending = remote_send(in->spec.remote, path, type, bytes, n, on_sent, in);
}

static void
post_size(AttachInput *in)
{
    struct winsize size;
    char body[64];

    in->resized = false;
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
        return;
    int n = g_snprintf(body, sizeof body, "{\"rows\":%d,\"columns\":%d}", size.ws_row, size.ws_col);

    post(in, "/resize", "application/json", body, (size_t)n);
}

static void
post_signal(AttachInput *in)
{
    char body[32];
    int n = g_snprintf(body, sizeof body, "{\"signal\":%d}", in->signal);

    in->signal = 0;
    post(in, "/signal", "application/json", body, (size_t)n);
}

/* ---- standard input ---- */

/* Takes the detach keys out; what is left goes on.  A Ctrl-P is held until the next byte. */
static size_t
filter_keys(AttachInput *in, const guint8 *bytes, size_t n, guint8 *ret_bytes)
{
    size_t out = 0;

    for (size_t i = 0; i < n && !in->left; i++) {
        if (in->prefix && bytes[i] == CTRL_Q) {
            leave(in);
            break;
        }
        if (in->prefix)
            ret_bytes[out++] = CTRL_P;
        in->prefix = in->spec.terminal && bytes[i] == CTRL_P;
        if (!in->prefix)
            ret_bytes[out++] = bytes[i];
    }
    return out;
}

static gboolean
on_input(gint fd, GIOCondition condition, gpointer data)
{
    AttachInput *in = data;
    guint8 bytes[PIECE], kept[PIECE + 1];
    ssize_t n = read(fd, bytes, sizeof bytes);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    in->watch = 0;
    if (n <= 0) {
        in->ended = true;
        post(in, "/stdin?close=1", "application/octet-stream", "", 0);
        return G_SOURCE_REMOVE;
    }
    size_t left = filter_keys(in, bytes, (size_t)n, kept);

    if (left > 0)
        post(in, "/stdin", "application/octet-stream", kept, left);
    else
        go_on(in);
    return G_SOURCE_REMOVE;
}

static void
go_on(AttachInput *in)
{
    if (in->sending != NULL || in->left)
        return;
    if (in->signal != 0)
        post_signal(in);
    else if (in->resized)
        post_size(in);
    else if (in->spec.input && !in->ended && in->watch == 0)
        in->watch = g_unix_fd_add(STDIN_FILENO, G_IO_IN | G_IO_HUP, on_input, in);
}

/* ---- signals ---- */

static gboolean
on_resize(gpointer data)
{
    AttachInput *in = data;

    in->resized = true;
    go_on(in);
    return G_SOURCE_CONTINUE;
}

static void
pass_on(AttachInput *in, int signal)
{
    if (++in->interrupts >= INTERRUPTS_MAX || in->spec.watch) {
        leave(in);
        return;
    }
    in->signal = signal;
    go_on(in);
}

static gboolean
on_interrupt(gpointer data)
{
    pass_on(data, SIGINT);
    return G_SOURCE_CONTINUE;
}

static gboolean
on_terminate(gpointer data)
{
    pass_on(data, SIGTERM);
    return G_SOURCE_CONTINUE;
}

static void
add_signal(AttachInput *in, int signal, GSourceFunc func)
{
    in->sources[in->n_sources++] = g_unix_signal_add(signal, func, in);
}

/* ---- life ---- */

static void
make_raw(AttachInput *in)
{
    struct termios raw;

    if (!in->spec.terminal || tcgetattr(STDIN_FILENO, &in->before) < 0)
        return;
    raw = in->before;
    cfmakeraw(&raw);
    in->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

AttachInput *
attach_input_new(const AttachSpec *spec, const char *path)
{
    AttachInput *in = g_new0(AttachInput, 1);

    in->spec = *spec;
    in->path = g_strdup(path);
    add_signal(in, SIGINT, on_interrupt);
    add_signal(in, SIGTERM, on_terminate);
    if (spec->terminal)
        add_signal(in, SIGWINCH, on_resize);
    make_raw(in);
    in->resized = spec->terminal;
    go_on(in);
    return in;
}

void
attach_input_free(AttachInput *in)
{
    if (in == NULL)
        return;
    if (in->raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &in->before);
    remote_send_cancel(in->sending);
    if (in->watch != 0)
        g_source_remove(in->watch);
    for (size_t i = 0; i < in->n_sources; i++)
        g_source_remove(in->sources[i]);
    g_free(in->path);
    g_free(in);
}

bool
attach_input_has_left(const AttachInput *in)
{
    return in != NULL && in->left;
}

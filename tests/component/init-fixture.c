/* SPDX-License-Identifier: Apache-2.0 */
#include "init-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/init.h"
#include "room.h"
#include "wire/channel.h"

enum { PATIENCE_MS = 60000, FIRST_OWN_ID = 1 << 20 };

typedef struct BoxKind {
    unsigned long namespaces;
    bool has_sudo, may_sudo;
} BoxKind;

/* Under its name inside boxes. */
static bool
place_sudo(const char *bytes, gsize n)
{
    return mkdir("/tmp/bin", 0755) == 0 && chmod("/tmp/bin", 0755) == 0 &&
           g_file_set_contents("/tmp/bin/sudo", bytes, (gssize)n, NULL) && chmod("/tmp/bin/sudo", 0755) == 0;
}

static G_GNUC_NORETURN void
be_pid_1(int channel, const BoxKind *kind)
{
    int null = open("/dev/null", O_RDWR);

    /* Its output would mix with the test's. */
    if (getpid() != 1 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(channel, INIT_CHANNEL_FD) < 0 || close_range(INIT_CHANNEL_FD + 1, ~0U, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(120);
    /* Before the box has a /tmp of its own, below which the programs may lie. */
    const char *program = g_getenv("COOP_INIT");
    int program_fd = program != NULL ? open(program, O_RDONLY | O_CLOEXEC) : -1;
    g_autofree char *sudo = NULL;
    gsize n = 0;
    if ((program != NULL && program_fd < 0) ||
        (kind->has_sudo && !g_file_get_contents(g_getenv("COOP_SUDO"), &sudo, &n, NULL)))
        _exit(122);
    if (!room_furnish() || (kind->has_sudo && !place_sudo(sudo, n)))
        _exit(121);
    if (program != NULL) {
        const char *const argv[] = {"coop-init", kind->may_sudo ? "sudo" : NULL, NULL};

        fexecve(program_fd, (char *const *)(guintptr)argv, environ);
        _exit(123);
    }
    _exit(init_run(kind->may_sudo));
}

static TestBox *
make_box(const BoxKind *kind)
{
    TestBox *box = g_new0(TestBox, 1);
    int pair[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), ==, 0);
    /* The child of the one that unshares is pid 1; CLONE_PARENT would make it a grandchild's
     * sibling, but a plain clone with the flags does it in one step. */
    pid_t pid = (pid_t)syscall(SYS_clone, kind->namespaces | SIGCHLD, NULL, NULL, NULL, NULL);
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0)
        be_pid_1(pair[1], kind);
    close(pair[1]);
    box->channel = pair[0];
    box->pid = pid;
    box->connected_fd = -1;
    box->next_id = FIRST_OWN_ID;
    box->packet = g_malloc(CHANNEL_PACKET_MAX);
    box->runs = g_hash_table_new(NULL, NULL);
    return box;
}

TestBox *
box_new(void)
{
    return make_box(&(BoxKind){.namespaces = CLONE_NEWPID | CLONE_NEWNS});
}

TestBox *
box_new_sudo(bool allowed)
{
    return make_box(&(BoxKind){
        .namespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET, .has_sudo = true, .may_sudo = allowed});
}

static void
run_free(gpointer key, gpointer value, gpointer data)
{
    TestRun *run = value;

    g_byte_array_unref(run->out[0]);
    g_byte_array_unref(run->out[1]);
    g_free(run);
}

int
box_free(TestBox *box)
{
    int status;

    close(box->channel);
    g_assert_cmpint(waitpid(box->pid, &status, 0), ==, box->pid);
    g_hash_table_foreach(box->runs, run_free, NULL);
    g_hash_table_unref(box->runs);
    if (box->connected_fd >= 0)
        close(box->connected_fd);
    g_free(box->packet);
    g_free(box);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void
wait_for(TestBox *box, short events)
{
    struct pollfd p = {box->channel, events, 0};
    int n = poll(&p, 1, PATIENCE_MS);

    if (n == 0)
        g_error("init is silent");
}

static void
send_fd(TestBox *box, FrameHead head, const void *body, int fd)
{
    while (channel_send2(box->channel, &head, sizeof head, body, head.length, &fd, fd > 0 ? 1 : 0) < 0) {
        g_assert_cmpint(errno, ==, EAGAIN);
        wait_for(box, POLLOUT);
    }
}

void
box_send(TestBox *box, FrameHead head, const void *body)
{
    send_fd(box, head, body, 0);
}

FrameStart *
box_spec(uint32_t flags, const char *line)
{
    FrameStart *start = g_new0(FrameStart, 1);

    *start = (FrameStart){.flags = flags,
                          .ring_bytes = 256 * 1024,
                          .spill_bytes = 1024 * 1024,
                          .user = "",
                          .cwd = "/",
                          .argc = 3,
                          .argv = {"/bin/sh", "-c", line}};
    return start;
}

TestRun *
box_start(TestBox *box, uint32_t id, const FrameStart *start)
{
    TestRun *run = g_new0(TestRun, 1);
    g_autofree char *bytes = g_malloc(CHANNEL_PACKET_MAX);
    size_t n = frame_start_pack(start, bytes, CHANNEL_PACKET_MAX);

    g_assert_cmpuint(n, >, 0);
    run->id = id;
    run->keep = true;
    run->out[0] = g_byte_array_new();
    run->out[1] = g_byte_array_new();
    g_assert_true(g_hash_table_insert(box->runs, GUINT_TO_POINTER(id), run));
    send_fd(box, (FrameHead){.type = FRAME_START, .run = id, .length = (uint32_t)n}, bytes, box->pass_fd);
    box->pass_fd = 0;
    return run;
}

TestRun *
box_shell(TestBox *box, uint32_t id, uint32_t flags, const char *line)
{
    g_autofree FrameStart *start = box_spec(flags, line);

    return box_start(box, id, start);
}

static void
ack(TestBox *box, TestRun *run, int stream)
{
    if (box->hold_acks)
        return;
    run->flying[stream] = 0;
    box_send(box,
             (FrameHead){.type = FRAME_ACK,
                         .run = run->id,
                         .stream = (uint8_t)(stream + 1),
                         .offset = run->offset[stream]},
             NULL);
}

static void
on_output(TestBox *box, TestRun *run, const FrameHead *head, const guint8 *bytes)
{
    int stream = head->stream - STREAM_STDOUT;

    g_assert_cmpuint(head->offset, ==, run->offset[stream]);
    if (head->type == FRAME_GAP) {
        g_assert_cmpuint(head->value, >, 0);
        run->dropped[stream] += head->value;
        run->offset[stream] += head->value;
        ack(box, run, stream);
        return;
    }
    run->flying[stream] += head->length;
    g_assert_cmpuint(run->flying[stream], <=, FRAME_WINDOW);
    if (run->on_data != NULL)
        run->on_data(run, stream, head->offset, bytes, head->length);
    if (run->keep)
        g_byte_array_append(run->out[stream], bytes, head->length);
    run->offset[stream] += head->length;
    ack(box, run, stream);
}

static void
on_run_frame(TestBox *box, TestRun *run, const FrameHead *head, const guint8 *body)
{
    if (box->reuses_runs && (run->ended || run->failed))
        return;
    g_assert_false(run->ended || run->failed);
    switch ((int)head->type) {
    case FRAME_STARTED:
        run->started = true;
        run->pid = head->value;
        break;
    case FRAME_FAILED:
        run->failed = true;
        run->stage = head->stage;
        run->error = head->value;
        break;
    case FRAME_ENDED:
        run->ended = true;
        memcpy(&run->end, body, sizeof run->end);
        g_assert_cmpuint(run->end.out_bytes, ==, run->offset[0]);
        g_assert_cmpuint(run->end.err_bytes, ==, run->offset[1]);
        break;
    case FRAME_STDIN_ACK:
        g_assert_cmpuint(head->offset, >=, run->in_acked);
        run->in_acked = head->offset;
        break;
    case FRAME_OUTPUT:
    case FRAME_GAP:
        on_output(box, run, head, body);
        break;
    default:
        g_assert_not_reached();
    }
}

static void
on_frame(TestBox *box, size_t n, int fd)
{
    FrameHead head;

    g_assert_true(frame_check(box->packet, n));
    memcpy(&head, box->packet, sizeof head);
    if (head.type == FRAME_HELLO) {
        g_assert_cmpuint(head.value, ==, FRAME_VERSION);
        if (head.offset != box->generation)
            return;
        box->hello = true;
        box->wait_hello = false;
        box->n_hello = head.length / sizeof(FrameRun);
        memcpy(box->hello_runs, box->packet + sizeof head, head.length);
        return;
    }
    if (box->wait_hello)
        return;
    TestRun *run = g_hash_table_lookup(box->runs, GUINT_TO_POINTER(head.run));
    if (head.type == FRAME_CONNECTED || (head.type == FRAME_FAILED && run == NULL)) {
        box->connect_done = true;
        box->connect_error = (int)head.value;
        box->connected_fd = fd;
        return;
    }
    if (run != NULL)
        on_run_frame(box, run, &head, box->packet + sizeof head);
}

guint
box_hear_some(TestBox *box, guint max)
{
    guint heard = 0;

    while (heard < max) {
        int fd = -1;
        size_t n_fds = 1;
        ssize_t n = channel_recv(box->channel, box->packet, CHANNEL_PACKET_MAX, &fd, &n_fds);

        if (n < 0 && errno == EAGAIN)
            break;
        if (n == 0)
            g_error("init is gone");
        g_assert_cmpint(n, >, 0);
        on_frame(box, (size_t)n, n_fds > 0 ? fd : -1);
        heard++;
    }
    return heard;
}

void
box_until(TestBox *box, BoxTest done, void *data)
{
    while (!done(box, data)) {
        if (box_hear_some(box, 1) == 0)
            wait_for(box, POLLIN);
    }
}

static bool
is_ended(TestBox *box, void *data)
{
    const TestRun *run = data;

    return run->ended || run->failed;
}

static bool
is_started(TestBox *box, void *data)
{
    const TestRun *run = data;

    return run->started || run->failed;
}

void
box_until_ended(TestBox *box, TestRun *run)
{
    box_until(box, is_ended, run);
}

void
box_until_started(TestBox *box, TestRun *run)
{
    box_until(box, is_started, run);
}

typedef struct Amount {
    const TestRun *run;
    uint64_t n;
} Amount;

static bool
has_bytes(TestBox *box, void *data)
{
    const Amount *amount = data;

    return amount->run->offset[0] >= amount->n || amount->run->ended;
}

void
box_until_bytes(TestBox *box, TestRun *run, uint64_t n)
{
    Amount amount = {run, n};

    box_until(box, has_bytes, &amount);
}

void
box_restart_server(TestBox *box)
{
    g_autoptr(GArray) known = g_array_new(FALSE, TRUE, sizeof(FrameRun));
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, box->runs);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        TestRun *run = value;
        FrameRun row = {.run = run->id, .out_offset = run->offset[0], .err_offset = run->offset[1]};

        run->flying[0] = run->flying[1] = 0;
        run->ended = run->failed = run->started = false;
        g_array_append_val(known, row);
    }
    box->hello = false;
    box->wait_hello = true;
    box->generation++;
    box_send(box,
             (FrameHead){.type = FRAME_HELLO,
                         .offset = box->generation,
                         .value = FRAME_VERSION,
                         .length = known->len * (guint)sizeof(FrameRun)},
             known->data);
}

void
box_forget(TestBox *box, TestRun *run)
{
    box_send(box, (FrameHead){.type = FRAME_FORGET, .run = run->id}, NULL);
    g_hash_table_remove(box->runs, GUINT_TO_POINTER(run->id));
    run_free(NULL, run, NULL);
}

void
box_write(TestBox *box, TestRun *run, uint64_t offset, const void *bytes, size_t n)
{
    box_send(box, (FrameHead){.type = FRAME_STDIN, .run = run->id, .offset = offset, .length = (uint32_t)n},
             bytes);
}

char *
test_run_text(const TestRun *run)
{
    return run->out[0]->len > 0 ? g_strndup((const char *)run->out[0]->data, run->out[0]->len) : g_strdup("");
}

TestRun *
box_op_start(TestBox *box, uint32_t flags, const char *line)
{
    g_autofree FrameStart *start = box_spec(START_BUILTIN | START_BLOCK | flags, "");
    g_auto(GStrv) words = g_strsplit(line, " ", -1);

    start->cwd = "/tmp";
    start->argc = g_strv_length(words);
    for (guint i = 0; i < start->argc; i++)
        start->argv[i] = words[i];
    return box_start(box, box->next_id++, start);
}

TestRun *
box_op(TestBox *box, const char *line)
{
    TestRun *run = box_op_start(box, 0, line);

    box_until_ended(box, run);
    g_assert_false(run->failed);
    g_assert_cmpuint(run->end.reason, ==, REASON_EXIT);
    return run;
}

void
box_expect(TestBox *box, const char *line, const char *want)
{
    TestRun *run = box_shell(box, box->next_id++, 0, line);

    box_until_ended(box, run);
    g_autofree char *text = test_run_text(run);
    g_assert_cmpstr(text, ==, want);
    box_forget(box, run);
}

typedef struct Feed {
    const TestRun *run;
    uint64_t sent;
} Feed;

static bool
takes_more(TestBox *box, void *data)
{
    const Feed *feed = data;

    return feed->run->ended || feed->run->failed || feed->sent - feed->run->in_acked < FRAME_WINDOW;
}

void
box_feed(TestBox *box, TestRun *run, const void *bytes, size_t n)
{
    Feed feed = {run, 0};

    while (feed.sent < n && !run->ended) {
        size_t part = MIN(n - feed.sent, (size_t)FRAME_DATA_MAX);

        box_until(box, takes_more, &feed);
        part = MIN(part, FRAME_WINDOW - (feed.sent - run->in_acked));
        box_write(box, run, feed.sent, (const guint8 *)bytes + feed.sent, part);
        feed.sent += part;
    }
    box_send(box, (FrameHead){.type = FRAME_STDIN_CLOSE, .run = run->id}, NULL);
}

TestRun *
box_python(TestBox *box, uint32_t flags, const char *program)
{
    g_autofree FrameStart *start = box_spec(START_BLOCK | flags, "");

    start->cwd = "/tmp";
    start->argv[0] = "python3";
    start->argv[1] = "-c";
    start->argv[2] = program;
    return box_start(box, box->next_id++, start);
}

typedef struct Wanted {
    const TestRun *run;
    const char *text;
} Wanted;

static bool
has_text(TestBox *box, void *data)
{
    const Wanted *wanted = data;
    const GByteArray *out = wanted->run->out[0];

    if (out->len > 0 && memmem(out->data, out->len, wanted->text, strlen(wanted->text)) != NULL)
        return true;
    if (wanted->run->ended)
        g_error("the run ended without '%s': %.*s", wanted->text, (int)out->len, (const char *)out->data);
    return false;
}

void
box_until_text(TestBox *box, TestRun *run, const char *text)
{
    Wanted wanted = {run, text};

    box_until(box, has_text, &wanted);
}

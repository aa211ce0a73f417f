/* SPDX-License-Identifier: Apache-2.0 */
/* The real keeper and the real init where cgroups are version 2 alone: the supervisor's part, what
 * a box may use, and that nothing is left of it. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/loop.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/leaf.h"
#include "wire/channel.h"
#include "wire/frame.h"
#include "wire/record.h"

#define SERVICE "/sys/fs/cgroup/service"
#define STATE "/tmp/keeper/state"

enum { PATIENCE_MS = 60000, MIB = 1 << 20, PIDS = 40, MEMORY_MIB = 48 };

typedef struct VmKeeper {
    pid_t pid;
    int socket;
    uint32_t serial;
} VmKeeper;

typedef struct VmBox {
    char id[KEEPER_ID_LEN + 1];
    KeeperAnswer answer;
    int channel, pidfd;
    uint32_t runs;
} VmBox;

static void
write_text(const char *path, const char *text)
{
    autofd fd = open(path, O_WRONLY | O_CLOEXEC);

    g_assert_no_errno(fd);
    g_assert_cmpint(write(fd, text, strlen(text)), ==, (ssize_t)strlen(text));
}

static char *
read_text(const char *path)
{
    char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return g_strstrip(text);
}

static void
wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    g_assert_cmpint(poll(&p, 1, PATIENCE_MS), ==, 1);
}

/* The group of a service that was given controllers, with us alone in it. */
static void
enter_service(void)
{
    g_assert_no_errno(mkdir(SERVICE, 0755));
    write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory +cpu +pids");
    write_text(SERVICE "/cgroup.procs", "0");
}

/* This kernel has no id-mapped mounts of what is in memory. */
static void
mount_templates(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execl("/sbin/mkfs.ext4", "mkfs.ext4", "-q", "-d", "/templates", "/tmp/templates.img", "16M",
                    NULL);
        _exit(127);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
    autofd image = open("/tmp/templates.img", O_RDWR | O_CLOEXEC);
    autofd device = open("/dev/loop7", O_RDWR | O_CLOEXEC);
    struct loop_config config = {.fd = (uint32_t)image, .info.lo_flags = LO_FLAGS_AUTOCLEAR};

    g_assert_no_errno(ioctl(device, LOOP_CONFIGURE, &config));
    g_assert_no_errno(mkdir("/tmp/templates", 0755));
    g_assert_no_errno(mount("/dev/loop7", "/tmp/templates", "ext4", 0, NULL));
}

static int
connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    g_assert_no_errno(connect(fd, (struct sockaddr *)&address, sizeof address));
    return fd;
}

static void
keeper_start(VmKeeper *keeper)
{
    char line[16] = "";
    int out[2];

    g_assert_no_errno(pipe2(out, O_CLOEXEC));
    keeper->pid = fork();
    if (keeper->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)execl("/bin/coop-keeper", "coop-keeper", "--socket", "/tmp/keeper/socket", "--state", STATE,
                    "--templates", "/tmp/templates", "--init", "/bin/coop-init", "--cgroup-leaf", NULL);
        _exit(127);
    }
    close(out[1]);
    wait_readable(out[0]);
    g_assert_cmpint(read(out[0], line, sizeof line - 1), >, 0);
    g_assert_cmpstr(line, ==, "ready\n");
    close(out[0]);
    keeper->socket = connect_to("/tmp/keeper/socket");
}

static int
keeper_stop(VmKeeper *keeper, int how)
{
    int status;

    g_assert_no_errno(kill(keeper->pid, how));
    g_assert_cmpint(waitpid(keeper->pid, &status, 0), ==, keeper->pid);
    close(keeper->socket);
    return status;
}

static KeeperAnswer
keeper_ask(VmKeeper *keeper, KeeperVerb verb, const char *box, int *ret_fds, size_t n_fds)
{
    KeeperRequest request = {.verb = verb,
                             .serial = ++keeper->serial,
                             .hostname = "vmbox",
                             .layers = {"00aa"},
                             .n_layers = 1,
                             .flags = KEEPER_SUDO,
                             .count = KEEPER_VERSION,
                             .limits = {.memory_bytes = (uint64_t)MEMORY_MIB * MIB,
                                        .disk_bytes = 32 * MIB,
                                        .inodes = 1024,
                                        .pids = PIDS,
                                        .cpu_milli = 500}};
    KeeperAnswer answer;

    memcpy(request.box, box, strlen(box));
    g_assert_cmpint(channel_send(keeper->socket, &request, sizeof request, NULL, 0), ==, 0);
    do {
        size_t n = n_fds;

        wait_readable(keeper->socket);
        g_assert_cmpint(channel_recv(keeper->socket, &answer, sizeof answer, ret_fds, &n), ==, sizeof answer);
    } while (answer.serial != request.serial);
    g_test_message("verb %u: answer %u stage %u error %d", verb, answer.verb, answer.stage, answer.error);
    return answer;
}

static void
box_send(VmBox *box, const FrameHead *head, const void *body)
{
    g_assert_cmpint(channel_send2(box->channel, head, sizeof *head, body, head->length, NULL, 0), ==, 0);
}

static void
box_make(VmKeeper *keeper, VmBox *box, const char *id)
{
    int fds[KEEPER_FDS] = {-1, -1, -1};
    FrameHead hello = {.type = FRAME_HELLO, .value = FRAME_VERSION, .offset = 1};

    *box = (VmBox){0};
    g_strlcpy(box->id, id, sizeof box->id);
    box->answer = keeper_ask(keeper, KEEPER_CREATE, id, fds, KEEPER_FDS);
    g_assert_cmpuint(box->answer.verb, ==, KEEPER_BOX);
    box->channel = fds[KEEPER_FD_CHANNEL];
    box->pidfd = fds[KEEPER_FD_PIDFD];
    box_send(box, &hello, NULL);
}

static void
box_close(VmBox *box)
{
    close(box->channel);
    close(box->pidfd);
}

/* What the probe printed; `ret_end` says how it ended. */
static char *
box_run(VmBox *box, uint32_t flags, const char *word, const char *path, FrameEnd *ret_end)
{
    FrameStart start = {.flags = flags,
                        .ring_bytes = 65536,
                        .user = "",
                        .cwd = "/",
                        .argc = path != NULL ? 3 : 2,
                        .argv = {"/bin/probe", word, path}};
    char body[4096];
    static char packet[CHANNEL_PACKET_MAX];
    g_autoptr(GString) text = g_string_new(NULL);
    FrameHead head = {.type = FRAME_START, .run = ++box->runs};

    head.length = (uint32_t)frame_start_pack(&start, body, sizeof body);
    box_send(box, &head, body);
    for (;;) {
        wait_readable(box->channel);
        ssize_t n = channel_recv(box->channel, packet, sizeof packet, NULL, NULL);

        g_assert_cmpint(n, >=, (ssize_t)sizeof head);
        memcpy(&head, packet, sizeof head);
        g_assert_cmpuint(head.type, !=, FRAME_FAILED);
        if (head.type == FRAME_OUTPUT)
            g_string_append_len(text, packet + sizeof head, head.length);
        if (head.type != FRAME_ENDED || head.run != box->runs)
            continue;
        memcpy(ret_end, packet + sizeof head, sizeof *ret_end);
        return g_string_free(g_steal_pointer(&text), FALSE);
    }
}

static char *
group_of(const VmBox *box, const char *file)
{
    g_autofree char *instance = read_text(STATE "/instance");

    (void)box;
    return g_strdup_printf(SERVICE "/coop-%s/box-%u/%s", instance,
                           (box->answer.id_base - 0x70000000u) / 65536u, file);
}

static void
assert_group(const VmBox *box, const char *file, const char *wanted)
{
    g_autofree char *path = group_of(box, file);
    g_autofree char *text = read_text(path);

    g_test_message("%s: %s", file, text);
    g_assert_nonnull(strstr(text, wanted));
}

static int
count_loops(void)
{
    g_autoptr(GDir) dir = g_dir_open("/sys/block", 0, NULL);
    int n = 0;

    for (const char *name; (name = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *path = g_strdup_printf("/sys/block/%s/loop/backing_file", name);

        n += g_file_test(path, G_FILE_TEST_EXISTS);
    }
    return n;
}

static int
count_groups(void)
{
    g_autofree char *instance = read_text(STATE "/instance");
    g_autofree char *path = g_strconcat(SERVICE "/coop-", instance, NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    int n = 0;

    for (const char *name; dir != NULL && (name = g_dir_read_name(dir)) != NULL;)
        n += g_str_has_prefix(name, "box-");
    return n;
}

static void
assert_nothing_left(void)
{
    g_assert_cmpint(count_groups(), ==, 0);
    /* One is that of the templates. */
    g_assert_cmpint(count_loops(), ==, 1);
}

static void
test_leaf(void)
{
    /* A stranger in the group is not moved. */
    pid_t stranger = fork();

    if (stranger == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    g_assert_false(leaf_enter());
    g_assert_no_errno(kill(stranger, SIGKILL));
    g_assert_cmpint(waitpid(stranger, NULL, 0), ==, stranger);
    g_assert_true(leaf_enter());
    g_autofree char *place = read_text("/proc/self/cgroup");

    g_assert_cmpstr(place, ==, "0::/service/coop-main");
}

static void
test_limits(void)
{
    VmKeeper keeper = {0};
    VmBox box;
    FrameEnd end;

    keeper_start(&keeper);
    g_assert_cmphex(keeper_ask(&keeper, KEEPER_HELLO, "", NULL, 0).degraded, ==, 0);
    box_make(&keeper, &box, "aaaaaaaaaaaaaaaaaaaa");
    g_autofree char *name = box_run(&box, 0, "cat", "/etc/hostname", &end);

    g_assert_cmpstr(name, ==, "vmbox\n");
    g_autofree char *queues = box_run(&box, 0, "cat", "/proc/sys/kernel/msgmni", &end);

    g_assert_cmpstr(queues, ==, "1024\n");
    assert_group(&box, "memory.max", "50331648");
    assert_group(&box, "pids.max", "40");
    assert_group(&box, "cpu.max", "50000 100000");
    g_autofree char *memory = box_run(&box, 0, "memory", NULL, &end);

    /* The server reads it together with the count of the keeper. */
    g_assert_cmpuint(end.reason, ==, REASON_SIGNAL);
    g_assert_cmpint(end.code, ==, SIGKILL);
    g_assert_cmpuint(keeper_ask(&keeper, KEEPER_STAT, box.id, NULL, 0).oom_kills, ==, 1);
    g_autofree char *forks = box_run(&box, START_ROOT, "fork", NULL, &end);
    int made = 0;
    int why = 0;

    g_test_message("fork: %s", forks);
    g_assert_cmpint(sscanf(forks, "%d %d", &made, &why), ==, 2);
    g_assert_cmpint(made, <, PIDS);
    g_assert_cmpint(why, ==, EAGAIN);
    g_autofree char *again = box_run(&box, 0, "cat", "/etc/hostname", &end);

    g_assert_cmpstr(again, ==, "vmbox\n");
    g_assert_cmpuint(keeper_ask(&keeper, KEEPER_KILL, box.id, NULL, 0).verb, ==, KEEPER_GONE);
    box_close(&box);
    assert_nothing_left();
    g_assert_cmpint(keeper_stop(&keeper, SIGTERM), ==, 0);
}

static void
test_freeze(void)
{
    VmKeeper keeper = {0};
    VmBox box;

    keeper_start(&keeper);
    box_make(&keeper, &box, "bbbbbbbbbbbbbbbbbbbb");
    g_assert_cmpuint(keeper_ask(&keeper, KEEPER_FREEZE, box.id, NULL, 0).verb, ==, KEEPER_OK);
    assert_group(&box, "cgroup.freeze", "1");
    g_assert_cmpuint(keeper_ask(&keeper, KEEPER_THAW, box.id, NULL, 0).verb, ==, KEEPER_OK);
    assert_group(&box, "cgroup.freeze", "0");
    g_assert_cmpuint(keeper_ask(&keeper, KEEPER_FREEZE, box.id, NULL, 0).verb, ==, KEEPER_OK);
    g_assert_cmpuint(keeper_ask(&keeper, KEEPER_KILL, box.id, NULL, 0).verb, ==, KEEPER_GONE);
    box_close(&box);
    assert_nothing_left();
    g_assert_cmpint(keeper_stop(&keeper, SIGTERM), ==, 0);
}

static void
test_crash(void)
{
    VmKeeper keeper = {0};
    VmBox boxes[2];
    VmBox next;
    FrameEnd end;

    keeper_start(&keeper);
    box_make(&keeper, &boxes[0], "cccccccccccccccccccc");
    box_make(&keeper, &boxes[1], "dddddddddddddddddddd");
    g_assert_cmpint(count_groups(), ==, 2);
    (void)keeper_stop(&keeper, SIGKILL);
    for (size_t i = 0; i < G_N_ELEMENTS(boxes); i++) {
        wait_readable(boxes[i].pidfd);
        box_close(&boxes[i]);
    }
    keeper_start(&keeper);
    assert_nothing_left();
    box_make(&keeper, &next, "cccccccccccccccccccc");
    g_autofree char *name = box_run(&next, 0, "cat", "/etc/hostname", &end);

    g_assert_cmpstr(name, ==, "vmbox\n");
    box_close(&next);
    g_assert_cmpint(keeper_stop(&keeper, SIGTERM), ==, 0);
    assert_nothing_left();
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    enter_service();
    mount_templates();
    g_assert_no_errno(mkdir("/tmp/keeper", 0755));
    g_test_add_func("/vm/keeper/leaf", test_leaf);
    g_test_add_func("/vm/keeper/limits", test_limits);
    g_test_add_func("/vm/keeper/freeze", test_freeze);
    g_test_add_func("/vm/keeper/crash", test_crash);
    return g_test_run();
}

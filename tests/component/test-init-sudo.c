/* SPDX-License-Identifier: Apache-2.0 */
/* sudo inside a box: who gets what, and that nothing of it outlives those who asked. */
#include <errno.h>
#include <string.h>

#include "init-fixture.h"
#include "room.h"
#include "wire/sudo.h"

enum { SUDO_AT_ONCE = 16 };

static const struct {
    const char *line, *shows;
} cases[] = {
    {"sudo id -u; sudo id -g", "0\n0\n"},
    {"sudo -u daemon id -u; sudo -u '#7' id -u; sudo --user=1000 id -nu; sudo -u root id -u",
     "1\n7\nuser\n0\n"},
    {"sudo -u nobody-here id; echo $?", "1\n"},
    {"sudo -u '' id; echo $?", "1\n"},
    {"sudo -u -1 id; echo $?", "1\n"},
    {"sudo -u user id -G", "1000 2000\n"},
    /* rights */
    {"sudo grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1\n"},
    {"test $(sudo grep CapEff /proc/self/status | cut -f2) != 0000000000000000; echo $?", "0\n"},
    {"sudo -u daemon grep CapEff /proc/self/status", "CapEff:\t0000000000000000\n"},
    {"sudo touch /tmp/mark; sudo chown daemon /tmp/mark; stat -c %U /tmp/mark; rm -f /tmp/mark "
     "2>/dev/null; "
     "echo $?; sudo rm /tmp/mark",
     "daemon\n1\n"},
    {"sudo cat /proc/self/oom_score_adj", "500\n"},
    {"sudo sh -c 'ls /proc/self/fd | wc -l'", "4\n"},
    {"sudo grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '0\\t\\n'", "SigBlk:SigIgn:"},
    /* streams and ends */
    {"echo hi | sudo cat", "hi\n"},
    {"sudo sh -c 'echo out; echo err >&2' 2>&1 | sort", "err\nout\n"},
    {"sudo echo x > /tmp/f; cat /tmp/f; rm /tmp/f", "x\n"},
    {"sudo head -c 300000 /dev/zero | wc -c", "300000\n"},
    {"sudo sh -c 'exit 7'; echo $?", "7\n"},
    {"(sudo sh -c 'kill -TERM $$'); echo $?", "143\n"},
    {"sudo no-such-command; echo $?", "127\n"},
    {"sudo /etc/passwd; echo $?", "126\n"},
    {"sudo true && sudo -n true && sudo -S true && sudo -p x true && sudo -k true; echo $?", "0\n"},
    {"sudo -v; echo $?; sudo -k; echo $?; sudo -K; echo $?", "0\n0\n0\n"},
    {"sudo -l", "Any command, as any user of this box, without a password.\n"},
    {"sudo --help | head -1 | cut -c1-6; sudo; echo $?; sudo --nonsense x; echo $?", "usage:\n1\n1\n"},
    /* place and environment */
    {"cd /usr/bin; sudo pwd; sudo -D /usr pwd; sudo -i pwd; sudo -D /none pwd; echo $?",
     "/usr/bin\n/usr\n/root\n1\n"},
    {"cd /proc/self; sudo pwd; echo $?", "1\n"},
    {"mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone; sudo pwd", "/\n"},
    {"FOO=1 sudo printenv FOO; echo $?", "1\n"},
    {"FOO=1 sudo -E printenv FOO; FOO=1 BAR=2 sudo --preserve-env=BAR,FOO printenv FOO BAR", "1\n1\n2\n"},
    {"FOO=1 sudo FOO=2 printenv FOO; FOO=1 sudo -E FOO=2 sh -c 'env | grep -c ^FOO=; echo $FOO'",
     "2\n1\n2\n"},
    {"sudo printenv HOME USER LOGNAME SHELL", "/root\nroot\nroot\n/bin/bash\n"},
    {"sudo -E printenv HOME USER; sudo -E -H printenv HOME", "/tmp\nroot\n/root\n"},
    {"sudo printenv SUDO_USER SUDO_UID SUDO_GID", "user\n1000\n1000\n"},
    {"http_proxy=p LC_X=y LD_PRELOAD=/none sudo printenv http_proxy LC_X LD_PRELOAD", "p\ny\n"},
    {"sudo -u daemon printenv HOME USER", "/usr/sbin\ndaemon\n"},
    {"sudo printenv PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"},
    /* shells */
    {"sudo -s id -u; sudo -i id -u; echo 'id -u' | sudo -s; echo 'echo $0' | sudo -i", "0\n0\n0\n-bash\n"},
    {"sudo -s printf '<%s>' 'a  b' '' '$HOME' '\"' \"'\" '\\' '*' ';' '\n'",
     "<a  b><></root><\"><'><\\><*><;><\n>"},
    {"sudo -i -s true; echo $?", "1\n"},
    {"sudo -- echo -n x; sudo echo -u y", "x-u y\n"},
    {"sudo -b sh -c 'id -u > /tmp/bg; mv /tmp/bg /tmp/bg2'; while ! cat /tmp/bg2 2>/dev/null; do :; "
     "done; "
     "sudo rm /tmp/bg2",
     "0\n"},
    /* many words, too many words, nested */
    {"sudo echo $(seq 9000) | wc -w", "9000\n"},
    {"seq 70000 > /tmp/w; sudo sh -c 'exit 3' $(cat /tmp/w); echo $?", "1\n"},
    {"X=$(head -c 100000 /dev/zero | tr '\\0' x); export X; sudo -E sh -c 'echo ${#X}'", "100000\n"},
    {"sudo sudo -u daemon sudo id -u 2>/dev/null; echo $?; sudo sudo id -u", "1\n0\n"},
};

/* The box's PATH has no sudo; programs of the host are not to be mistaken for it. */
static TestRun *
start_line(TestBox *box, uint32_t flags, uint32_t timeout_ms, const char *user, const char *line)
{
    g_autofree char *whole = g_strconcat("sudo() { /tmp/bin/sudo \"$@\"; }; ", line, NULL);
    g_autofree char *nested = NULL;
    g_autofree FrameStart *start = box_spec(flags, whole);

    /* A function is unknown to sudo itself. */
    g_auto(GStrv) parts = g_strsplit(whole, "sudo sudo", -1);
    nested = g_strjoinv("sudo /tmp/bin/sudo", parts);
    g_auto(GStrv) again = g_strsplit(nested, "daemon sudo", -1);
    g_autofree char *all = g_strjoinv("daemon /tmp/bin/sudo", again);
    start->argv[2] = all;
    start->user = user;
    start->timeout_ms = timeout_ms;
    return box_start(box, box->next_id++, start);
}

static void
expect(TestBox *box, const char *line, const char *shows)
{
    TestRun *run = start_line(box, 0, 0, "", line);

    box_until_ended(box, run);
    g_autofree char *text = test_run_text(run);
    if (strcmp(text, shows) != 0)
        g_test_message("%s: %.*s", line, (int)run->out[1]->len, (const char *)run->out[1]->data);
    g_assert_cmpstr(text, ==, shows);
    box_forget(box, run);
}

static void
test_cases(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new_sudo(true);

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%s", cases[i].line);
        expect(box, cases[i].line, cases[i].shows);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_refused(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new_sudo(true);
    TestRun *run = start_line(box, 0, 0, "daemon", "sudo id -u 2>&1; echo $?");

    box_until_ended(box, run);
    g_autofree char *text = test_run_text(run);
    g_assert_cmpstr(text, ==,
                    "sudo: there is no such user, or you may not use sudo: Operation not permitted\n1\n");
    g_assert_cmpint(box_free(box), ==, 0);
}

/* A box without it; and whoever takes the place of init there is not believed. */
static void
test_not_allowed(void)
{
    static const char impostor[] =
        "import os, socket, subprocess\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind('\\0coop/sudo'); s.listen()\n"
        "print(subprocess.run(['/tmp/bin/sudo', 'id'], stderr=subprocess.STDOUT, stdout=subprocess.PIPE,\n"
        "                     text=True).stdout, end='')\n";

    if (!room_possible())
        return;
    TestBox *box = box_new_sudo(false);
    const char *line = "sudo: the template of this box does not allow sudo\n";
    g_autofree char *code = g_strconcat(line, "1\n", NULL);

    expect(box, "sudo id 2>&1; echo $?", code);
    TestRun *run = box_python(box, 0, impostor);
    box_until_ended(box, run);
    g_autofree char *text = test_run_text(run);
    g_assert_cmpstr(text, ==, line);
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
no_sleepers(TestBox *box)
{
    box_expect(box, "while pgrep -x sleep > /dev/null; do :; done; echo none", "none\n");
}

/* Each leaves something of root's running when its run, or its client, is killed. */
static const char *const trees[] = {
    "sudo sleep 1000; :",
    "sudo sh -c 'sleep 1000 & setsid sleep 1001 & setsid setsid sleep 1002 & echo; wait'",
    "sudo sh -c 'setsid sleep 1000 > /dev/null 2>&1 < /dev/null & :'; echo; sleep 1003",
    "sudo sh -c 'trap \"\" TERM HUP INT; echo; sleep 1000; sleep 1001'",
    "sudo sh -c '/tmp/bin/sudo sleep 1000 & echo; wait'",
    "sudo -b sleep 1000; echo; sleep 1001",
};

static void
test_trees(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new_sudo(true);

    for (guint i = 0; i < G_N_ELEMENTS(trees); i++) {
        TestRun *run = start_line(box, 0, 700, "", trees[i]);

        g_test_message("timeout: %s", trees[i]);
        box_until_ended(box, run);
        g_assert_cmpuint(run->end.reason, ==, REASON_TIMEOUT);
        no_sleepers(box); /* a process that was killed is there until it is reaped */
        run = start_line(box, 0, 0, "", trees[i]);
        g_test_message("forgotten: %s", trees[i]);
        box_until_started(box, run);
        box_forget(box, run);
        no_sleepers(box);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

/* The client alone is killed. */
static void
test_client_killed(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new_sudo(true);

    expect(box,
           "/tmp/bin/sudo sh -c 'sleep 1000 & setsid sleep 1001 & echo up; wait' > /tmp/up & "
           "while ! grep -q up /tmp/up; do :; done; kill -9 $!; wait $!; echo $?; "
           "while pgrep -x sleep > /dev/null; do :; done; echo none",
           "137\nnone\n");
    expect(box,
           "/tmp/bin/sudo sh -c 'trap \"echo got; exit 5\" TERM INT USR1; echo up; while :; do sleep 0.01; "
           "done' > /tmp/up2 & "
           "while ! grep -q up /tmp/up2; do :; done; kill -USR1 $!; wait $!; echo $?; cat /tmp/up2",
           "5\nup\ngot\n");
    /* A daemon stays when its command ends, and when the run does. */
    TestRun *run = start_line(
        box, 0, 0, "",
        "sudo sh -c 'setsid sleep 1000 > /dev/null 2>&1 < /dev/null &'; while ! pgrep -x "
        "sleep > /dev/null; do :; done");
    box_until_ended(box, run);
    box_expect(box, "pgrep -x sleep > /dev/null; echo $?", "0\n");
    g_assert_cmpint(box_free(box), ==, 0);
}

/* Somebody whose run has ended. */
static void
test_left_behind(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new_sudo(true);

    expect(box,
           "setsid sh -c 'while [ ! -e /tmp/go ]; do sleep 0.01; done; /tmp/bin/sudo id -u > /tmp/is; mv "
           "/tmp/is "
           "/tmp/was; /tmp/bin/sudo sleep 1000' > /dev/null 2>&1 &",
           "");
    box_expect(box, "touch /tmp/go; while ! cat /tmp/was 2> /dev/null; do :; done", "0\n");
    box_expect(box, "while ! pgrep -x sleep > /dev/null; do :; done; pkill -9 -x sudo", "");
    no_sleepers(box);
    g_assert_cmpint(box_free(box), ==, 0);
}

static guint
count_fds(const TestBox *box)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", box->pid);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    guint n = 0;

    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

/* Words for a client that does as it likes. */
static const char client[] =
    "import array, os, socket, struct, sys\n"
    "def connect():\n"
    "    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect('\\0coop/sudo'); return s\n"
    "def request(texts, argc, envc, flags=0, version=1, bytes=None):\n"
    "    return struct.pack('IIIII', version, flags, len(texts) if bytes is None else bytes, argc, envc)\n"
    "def ask(head, texts=b'', fds=(0, 1, 2), step=1000):\n"
    "    s = connect(); s.settimeout(20)\n"
    "    try:\n"
    "        socket.send_fds(s, [head], fds)\n"
    "        for i in range(0, len(texts), step): s.send(texts[i:i + step])\n"
    "    except OSError: pass\n"
    "    return hear(s)\n"
    "def poke():\n"
    "    try: socket.send_fds(connect(), [b'x' * 20], range(3))\n"
    "    except OSError: pass\n"
    "def hear(s):\n"
    "    try: answer = s.recv(64)\n"
    "    except ConnectionResetError: answer = s.recv(64)\n"
    "    return struct.unpack('IIi', answer) if len(answer) == 12 else answer\n";

/* FAILED, FAIL_FRAME, EINVAL. */
#define MALFORMED "(3, 1, 22)\n"

static const struct {
    const char *program, *shows;
} hostile[] = {
    {"t = b'0\\0/\\0true\\0'; print(ask(request(t, 1, 0), t)[0])", "2\n"},
    {"t = b'0\\0/\\0true\\0'; print(ask(request(t, 1, 0), t, step=1)[0])", "2\n"},
    {"print(ask(b'x'))", MALFORMED},
    {"print(ask(b'x' * 60000))", MALFORMED},
    {"t = b'0\\0/\\0true\\0'; print(ask(request(t, 1, 0, version=2), t))", MALFORMED},
    {"t = b'0\\0/\\0true\\0'; print(ask(request(t, 1, 0, flags=8), t))", MALFORMED},
    {"t = b'0\\0/\\0true\\0'; print(ask(request(t, 1, 0), t, fds=(0, 1)))", MALFORMED},
    {"t = b'0\\0/\\0true\\0'; print(ask(request(t, 2, 0), t))", MALFORMED},
    {"t = b'0\\0/\\0true\\0'; print(ask(request(t, 1, 4000000000), t))", MALFORMED},
    {"t = b'0\\0/\\0true\\0x\\0'; print(ask(request(t, 1, 0), t))", MALFORMED},
    {"t = b'0\\0/\\0true'; print(ask(request(t, 1, 0), t))", MALFORMED},
    {"t = b'0\\0/\\0'; print(ask(request(t, 0, 0), t))", MALFORMED},
    {"t = b'0\\0/\\0a\\0b\\0'; print(ask(request(t, 2, 0, flags=2), t))", MALFORMED},
    {"print(ask(request(b'', 1, 0, bytes=1 << 31)))", MALFORMED},
    {"t = b'0\\0/\\0true\\0'; print(ask(request(t, 1, 0, bytes=5), t))", MALFORMED},
    {"t = b'0\\0/\\0true\\0'; print(ask(request(t, 1, 0, flags=1), t, fds=(os.open('/', 0),) * 3)[0])",
     "2\n"},
    {"[connect().close() for _ in range(2000)]; print('done')", "done\n"},
    {"[poke() for _ in range(100)]; print('done')", "done\n"},
    {"s = connect(); t = b'0\\0/\\0sleep\\0' + b'1000\\0'; socket.send_fds(s, [request(t, 2, 0)], (0, 1, "
     "2)); "
     "s.send(t); s.recv(64); [s.send(struct.pack('IIi', 1, 0, n)) for n in (-9, 0, 64, 99999, 28)]; "
     "s.send(b'x'); "
     "s.send(b'y' * 5000); s.setblocking(False)\n"
     "try:\n    s.recv(64)\nexcept BlockingIOError: print('goes on')\n",
     "goes on\n"},
    /* As many as there may be, who say nothing: others are refused, until the time for a request is over. */
    {"held = [connect() for _ in range(16)]; t = b'0\\0/\\0true\\0'; late = ask(request(t, 1, 0), t)\n"
     "print(late); held[0].settimeout(30); print(hear(held[0]))\n"
     "[h.close() for h in held]\n",
     "(3, 2, 11)\n" MALFORMED},
};

static void
test_hostile(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new_sudo(true);

    expect(box, "sudo id -u", "0\n");
    guint fds = count_fds(box);
    for (guint i = 0; i < G_N_ELEMENTS(hostile); i++) {
        g_autofree char *program = g_strconcat(client, hostile[i].program, NULL);
        TestRun *run = box_python(box, 0, program);

        g_test_message("%s", hostile[i].program);
        /* It answers others all the while. */
        box_expect(box, "echo here", "here\n");
        box_until_ended(box, run);
        g_autofree char *text = test_run_text(run);
        if (strcmp(text, hostile[i].shows) != 0)
            g_test_message("%.*s", (int)run->out[1]->len, (const char *)run->out[1]->data);
        g_assert_cmpstr(text, ==, hostile[i].shows);
        box_forget(box, run);
        expect(box, "until sudo true 2> /dev/null; do :; done; sudo id -u", "0\n");
    }
    no_sleepers(box);
    g_assert_cmpuint(count_fds(box), <=, fds + 2);
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_at_once(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new_sudo(true);
    g_autofree char *line = g_strdup_printf(
        "for i in $(seq %d); do /tmp/bin/sudo sh -c 'echo up; exec sleep 1000' & done > /tmp/up; "
        "while [ $(grep -c up /tmp/up) -lt %d ]; do :; done; sudo id -u 2>&1; kill $(pgrep -x sudo); wait; "
        "until sudo true 2>/dev/null; do :; done; sudo id -u",
        SUDO_AT_ONCE, SUDO_AT_ONCE);

    expect(box, line,
           "sudo: there are too many commands by sudo at once: Resource temporarily unavailable\n0\n");
    g_assert_cmpint(box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/sudo/cases", test_cases);
    g_test_add_func("/init/sudo/refused", test_refused);
    g_test_add_func("/init/sudo/not-allowed", test_not_allowed);
    g_test_add_func("/init/sudo/trees", test_trees);
    g_test_add_func("/init/sudo/client-killed", test_client_killed);
    g_test_add_func("/init/sudo/left-behind", test_left_behind);
    g_test_add_func("/init/sudo/hostile", test_hostile);
    g_test_add_func("/init/sudo/at-once", test_at_once);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sudo in a terminal: what people do there with shells, editors and Ctrl-C works. */
#include <string.h>

#include "init-fixture.h"
#include "room.h"

#define OUTER "outer$ "
#define INNER "inner# "

/* Keys that are typed before the prompt is back go to the command, as they should. */
typedef struct Step {
    const char *types, *sees, *prompt;
} Step;

typedef struct Terminal {
    TestBox *box;
    TestRun *run;
    uint64_t typed;
    size_t seen; /* output before this was looked at */
} Terminal;

static bool
sees(TestBox *box, void *data)
{
    void **both = data;
    Terminal *t = both[0];
    const char *text = both[1];
    const GByteArray *out = t->run->out[0];

    if (t->run->ended)
        g_error("the shell ended before '%s'", text);
    const char *found = out->len > t->seen
                            ? memmem(out->data + t->seen, out->len - t->seen, text, strlen(text))
                            : NULL;
    if (found != NULL)
        t->seen = (size_t)(found + strlen(text) - (const char *)out->data);
    return found != NULL;
}

static void
await(Terminal *t, const char *text)
{
    const void *both[] = {t, text};

    box_until(t->box, sees, both);
}

static void
type(Terminal *t, const char *keys)
{
    box_write(t->box, t->run, t->typed, keys, strlen(keys));
    t->typed += strlen(keys);
}

static void
play(const Step *steps, size_t n)
{
    TestBox *box = box_new_sudo(true);
    g_autofree FrameStart *start = box_spec(START_TTY | START_STDIN, "");
    Terminal t = {.box = box};

    start->argc = 4;
    start->argv[0] = "bash";
    start->argv[1] = "--norc";
    start->argv[2] = "--noprofile";
    start->argv[3] = "-i";
    start->envc = 2;
    start->envp[0] = "PS1=" OUTER;
    start->envp[1] = "PATH=/tmp/bin:/usr/bin:/bin:/sbin";
    start->rows = 40;
    start->columns = 100;
    t.run = box_start(box, 1, start);
    await(&t, OUTER);
    for (size_t i = 0; i < n; i++) {
        g_autofree char *keys = g_strescape(steps[i].types, NULL);

        g_test_message("'%s', then '%s'", keys, steps[i].sees);
        type(&t, steps[i].types);
        await(&t, steps[i].sees);
        if (steps[i].prompt != NULL)
            await(&t, steps[i].prompt);
    }
    type(&t, "exit\n");
    box_until_ended(box, t.run);
    box_expect(box, "while pgrep -x sleep > /dev/null; do :; done; pgrep -x sudo; :", "");
    g_assert_cmpint(box_free(box), ==, 0);
}

/* A result is told apart from the echo of the line that asks for it by its arithmetic. */
static const Step line_steps[] = {
    {"sudo id -u; echo $((1+1))=$?\n", "2=0", OUTER},
    {"sudo sh -c 'exit 7'; echo $((1+1))=$?\n", "2=7", OUTER},
    {"sudo stty size\n", "40 100", OUTER},
    {"sudo tty | tr / +\n", "+dev+pts+", OUTER},
    {"sudo sh -c 'tty | tr / +'\n", "+dev+pts+", OUTER},
    {"sudo sh -c 'test -w $(tty) && echo own$((1+1))'\n", "own2", OUTER},
    {"sudo -u daemon sh -c 'echo x > /dev/tty && echo own$((1+2))'\n", "own3", OUTER},
    {"sudo sh -c 'echo up$((1+1)); cat'\n", "up2", NULL},
    {"mirror\n", "mirror\r\nmirror", NULL},
    {"\x04", OUTER, NULL},
    {"stty -a | grep -c ' echo '\n", "1\r\n", OUTER},
    {"sudo sh -c 'echo up$((1+2)); exec sleep 1000'\n", "up3", NULL},
    {"\x03", OUTER, NULL},
    {"echo $((1+1))=$?\n", "2=130", OUTER},
    {"echo back | sudo cat\n", "back\r\n", OUTER},
    {"sudo echo to | cat\n", "to\r\n", OUTER},
};

/* The outer shell names a job before it hands the terminal over, so keys wait for a word of the job
 * itself.  That starts no processes: one that is stopped between vfork and exec holds its parent,
 * which then cannot stop. */
#define WAITING(name)                                                                                        \
    "sudo sh -c 'trap \"echo " name "$((1+1))\" CONT; echo up$((1+1)); while :; do read x; done'"

static const Step job_steps[] = {
    {WAITING("on") "\n", "up2", NULL},
    {"\x1a", "Stopped", OUTER},
    {"echo at$((1+1))\n", "at2", OUTER},
    {"stty -a | grep -c ' icanon '\n", "1\r\n", OUTER},
    {"fg\n", "on2", NULL},
    {"\x1a", "Stopped", OUTER},
    {"fg\n", "on2", NULL},
    {"\x03", OUTER, NULL},
    {"sudo sleep 1000 &\n", "[1]", OUTER},
    {"echo at$((1+2))\n", "at3", OUTER},
    {"kill %1; wait; echo at$((2+2))\n", "at4", OUTER},
    {WAITING("go") " &\n", "up2", NULL},
    {"kill -STOP %1; until jobs | grep Stopped; do :; done; echo at$((2+3))\n", "at5", OUTER},
    {"fg\n", "go2", NULL},
    {"\x03", OUTER, NULL},
};

static const Step shell_steps[] = {
    {"PS1='inner# ' sudo -E bash --norc --noprofile -i\n", "\ninner# ", NULL},
    {"id -u; echo at$((1+1))\n", "0\r\nat2", INNER},
    {"sh -c 'echo up$((1+1)); exec sleep 1000'\n", "up2", NULL},
    {"\x1a", "Stopped", INNER},
    {"jobs\n", "sleep 1000", INNER},
    {"kill %1; wait; echo at$((1+2))\n", "at3", INNER},
    {"sh -c 'echo up$((1+2)); exec sleep 1000'\n", "up3", NULL},
    {"\x03", INNER, NULL},
    {"echo $((1+1))=$?\n", "2=130", INNER},
    {"/tmp/bin/sudo -u daemon id -u\n", "1\r\n", INNER},
    {"suspend -f\n", "Stopped", OUTER},
    {"echo out$((1+1))\n", "out2", OUTER},
    {"fg\n", "bash --norc", NULL},
    {"echo in$((1+1))\n", "in2", INNER},
    {"exit 3\n", OUTER, NULL},
    {"echo $((1+1))=$?\n", "2=3", OUTER},
};

static void
test_lines(void)
{
    if (room_possible())
        play(line_steps, G_N_ELEMENTS(line_steps));
}

static void
test_jobs(void)
{
    if (room_possible())
        play(job_steps, G_N_ELEMENTS(job_steps));
}

static void
test_shell(void)
{
    if (room_possible())
        play(shell_steps, G_N_ELEMENTS(shell_steps));
}

static void
test_resize(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new_sudo(true);
    TestRun *run = box_shell(
        box, 1, START_TTY | START_STDIN,
        "/tmp/bin/sudo sh -c 'trap \"stty size\" WINCH; echo up; while :; do sleep 0.01; done'");

    box_until_text(box, run, "up");
    box_send(box, (FrameHead){.type = FRAME_RESIZE, .run = 1, .value = 50 << 16 | 120}, NULL);
    box_until_text(box, run, "50 120");
    g_assert_cmpint(box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/sudo-tty/lines", test_lines);
    g_test_add_func("/init/sudo-tty/jobs", test_jobs);
    g_test_add_func("/init/sudo-tty/shell", test_shell);
    g_test_add_func("/init/sudo-tty/resize", test_resize);
    return g_test_run();
}

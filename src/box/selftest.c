/* SPDX-License-Identifier: Apache-2.0 */
#include "box/selftest.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "box/files.h"

enum {
    PROBE_MAX = 8 << 20,
    OUTPUT_MAX = 16 * 1024,
    NAME_LEN = 31,
    RUN_MS = 30 * 1000,
    PROBE_MODE = 0755,
};

static const char probe_path[] = "/tmp/.coop-probe";
static const char *const users[] = {"user", "root"};

struct SelfTest {
    Loop *loop;
    BoxHost *host;
    char *probe_file, *host_file, *template;
    Json *report;        /* NULL: none yet */
    struct Trial *trial; /* NULL: none is running */
};

/* One time that it runs; outlives a test that is freed, whose `owner` is NULL then. */
typedef struct Trial {
    SelfTest *owner;
    BoxHost *host;
    Box *box;
    Run *run;
    char *probe_file, *host_file, *template, *actor;
    char *bytes; /* of the program */
    gsize n_bytes, n_sent;
    GString *output;
    size_t user; /* whose turn it is */
    Json *attempts;
    gint64 held, broken;
    GError *error;
    SelfTestFunc done;
    void *data;
} Trial;

static void start_probe(Trial *t);

static void
trial_free(Trial *t)
{
    g_clear_pointer(&t->run, run_unref);
    g_clear_pointer(&t->box, box_unref);
    g_clear_pointer(&t->attempts, json_decref);
    g_string_free(t->output, TRUE);
    g_clear_error(&t->error);
    g_free(t->probe_file);
    g_free(t->host_file);
    g_free(t->template);
    g_free(t->actor);
    g_free(t->bytes);
    g_free(t);
}

/* ---- what came of it ---- */

static void
judge(SelfTest *test, const Trial *t)
{
    g_autoptr(GString) names = g_string_new(NULL);
    size_t i;
    Json *attempt;

    json_array_foreach(t->attempts, i, attempt)
    {
        if (!json_is_true(json_object_get(attempt, "held")))
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "",
                                   json_string_value(json_object_get(attempt, "name")));
    }
    if (t->broken == 0) {
        box_host_set_off(test->host, NULL);
        return;
    }
    g_autofree char *reason = g_strdup_printf(
        "the self-test got out of a box (%s): run 'coop doctor --self-test'", names->str);
    log_error("box", "self-test failed", log_str("attempts", names->str));
    box_host_set_off(test->host, reason);
}

static void
keep_report(SelfTest *test, Trial *t)
{
    char at[CLOCK_ISO_LEN + 1];

    clock_format_iso(clock_wall_us(), at);
    g_clear_pointer(&test->report, json_decref);
    test->report = json_pack("{s:s, s:s?, s:I, s:I, s:O}", "ran_at", at, "template", t->template, "held",
                             (json_int_t)t->held, "broken", (json_int_t)t->broken, "attempts", t->attempts);
    judge(test, t);
}

static void
on_box_gone(Box *box, const GError *error, void *data)
{
    Trial *t = data;
    SelfTest *test = t->owner;

    if (test != NULL) {
        test->trial = NULL;
        if (t->error == NULL)
            keep_report(test, t);
        t->done(t->error == NULL ? test->report : NULL, t->error, t->data);
    }
    trial_free(t);
}

static void
finish(Trial *t, const GError *error)
{
    if (error != NULL)
        t->error = g_error_copy(error);
    if (t->box != NULL)
        box_kill(t->box, "self-test", t->actor, on_box_gone, t);
    else
        on_box_gone(NULL, NULL, t);
}

/* ---- what the probe printed ---- */

static bool
add_result(Trial *t, const char *line)
{
    char word[NAME_LEN + 1], name[NAME_LEN + 1];
    int error, text;

    if (sscanf(line, "%31s %31s %d %n", word, name, &error, &text) != 3)
        return false;
    bool held = strcmp(word, "held") == 0;

    if (!held && strcmp(word, "broke") != 0)
        return false;
    *(held ? &t->held : &t->broken) += 1;
    json_array_append_new(t->attempts, json_pack("{s:s, s:s, s:s, s:b, s:s}", "name", name, "what",
                                                 line + text, "user", users[t->user], "held", held, "error",
                                                 held && error != 0 ? g_strerror(error) : ""));
    return true;
}

static bool
read_results(Trial *t, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(g_strchomp(t->output->str), "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        if (!add_result(t, *line))
            return err_set(error, ERR_INTERNAL, "the probe said '%s'", *line);
    }
    g_string_truncate(t->output, 0);
    return true;
}

static void
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    Trial *t = ctx;

    if (stream == STREAM_STDOUT && t->output->len + n <= OUTPUT_MAX)
        g_string_append_len(t->output, (const char *)bytes, (gssize)n);
}

static void
on_gap(Run *run, FrameStream stream, guint64 n, void *ctx)
{
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    Trial *t = ctx;
    g_autofree char *why = run_end_dup_message(end);
    g_autoptr(GError) error = NULL;

    g_clear_pointer(&t->run, run_unref);
    if (run_end_exit_code(end) != 0)
        err_set(&error, ERR_UNAVAILABLE, "the probe did not run to its end: %s",
                why != NULL ? why : "failed");
    if (error != NULL || !read_results(t, &error)) {
        finish(t, error);
        return;
    }
    t->user++;
    if (t->user < G_N_ELEMENTS(users))
        start_probe(t);
    else
        finish(t, NULL);
}

static void
start_probe(Trial *t)
{
    static const RunTap tap = {.output = on_output, .gap = on_gap, .ended = on_ended};
    const char *const argv[] = {probe_path, "--in-a-box", t->host_file, NULL};
    RunSpec spec = {.argv = argv, .user = "", .cwd = "/", .timeout_ms = RUN_MS};
    g_autoptr(GError) error = NULL;

    if (strcmp(users[t->user], "root") == 0)
        spec.flags |= START_ROOT;
    t->run = box_start(t->box, &spec, t->actor, &error);
    if (t->run == NULL)
        finish(t, error);
    else
        run_tap(t->run, &tap, t);
}

/* ---- putting it there ---- */

static void
send_more(BoxWrite *write, void *ctx)
{
    Trial *t = ctx;

    t->n_sent += box_write_data(write, t->bytes + t->n_sent, t->n_bytes - t->n_sent);
    if (t->n_sent == t->n_bytes)
        box_write_end(write);
}

static void
on_written(BoxWrite *write, const GError *error, void *ctx)
{
    Trial *t = ctx;

    if (error != NULL)
        finish(t, error);
    else
        start_probe(t);
}

static void
on_created(Box *box, bool created, const GError *error, void *data)
{
    static const BoxWriteEvents events = {.room = send_more, .end = on_written};
    Trial *t = data;
    g_autoptr(GError) failed = NULL;

    if (error != NULL) {
        finish(t, error);
        return;
    }
    t->box = box_ref(box);
    BoxFileSpec spec = {.box = box, .actor = t->actor};
    BoxWrite *write = box_file_write(&spec, probe_path, PROBE_MODE, (gint64)t->n_bytes, &events, t, &failed);
    if (write == NULL)
        finish(t, failed);
    else
        send_more(write, t);
}

/* In a thread: the disk may be slow. */
static void
read_probe(void *data)
{
    Trial *t = data;

    if (g_file_get_contents(t->probe_file, &t->bytes, &t->n_bytes, &t->error) && t->n_bytes > PROBE_MAX)
        err_set(&t->error, ERR_LIMIT, "'%s' is larger than any probe", t->probe_file);
}

static void
on_read(void *data)
{
    Trial *t = data;
    BoxSpec spec = {.owner = "", .actor = t->actor, .template = t->template, .name = "self-test"};

    if (t->error != NULL || t->owner == NULL)
        finish(t, NULL);
    else
        box_host_create(t->host, &spec, on_created, t);
}

void
self_test_run(SelfTest *test, const char *actor, SelfTestFunc done, void *data)
{
    if (test->trial != NULL) {
        g_autoptr(GError) error = NULL;

        err_set(&error, ERR_CONFLICT, "the self-test is running");
        done(NULL, error, data);
        return;
    }
    Trial *t = g_new0(Trial, 1);
    *t = (Trial){.owner = test, .host = test->host, .done = done, .data = data};
    t->probe_file = g_strdup(test->probe_file);
    t->host_file = g_strdup(test->host_file);
    t->template = g_strdup(test->template);
    t->actor = g_strdup(actor);
    t->output = g_string_new(NULL);
    t->attempts = json_array();
    test->trial = t;
    loop_offload(test->loop, read_probe, on_read, t);
}

Json *
self_test_report(const SelfTest *test)
{
    return test->report;
}

SelfTest *
self_test_new(const SelfTestSpec *spec)
{
    SelfTest *test = g_new0(SelfTest, 1);

    test->loop = spec->loop;
    test->host = spec->host;
    test->probe_file = g_strdup(spec->probe);
    test->host_file = g_strdup(spec->host_file);
    test->template = g_strdup(spec->template);
    return test;
}

void
self_test_free(SelfTest *test)
{
    if (test == NULL)
        return;
    if (test->trial != NULL)
        test->trial->owner = NULL;
    g_clear_pointer(&test->report, json_decref);
    g_free(test->probe_file);
    g_free(test->host_file);
    g_free(test->template);
    g_free(test);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that come from no provider: scripts and recordings; and the making of recordings. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "brain/gate-private.h"
#include "brain/recording.h"

/* ---- playing ---- */

static void
on_head(const Tape *tape, void *ctx)
{
    const AnswerHead head = {.type = tape->is_stream ? "text/event-stream" : "application/json"};

    answer_head(ctx, tape->status, &head);
}

static bool
on_data(const guint8 *bytes, size_t n, void *ctx)
{
    return answer_data(ctx, bytes, n);
}

static void
on_done(bool is_cut, void *ctx)
{
    Exchange *x = ctx;
    g_autoptr(GError) error = NULL;

    x->play = NULL; /* freed when this returns */
    if (is_cut)
        err_set(&error, ERR_INVALID, "the script breaks off here");
    answer_done(x, error);
}

static void
play(Exchange *x, Tape *tape, const char *brain)
{
    static const TapeHandler handler = {.head = on_head, .data = on_data, .done = on_done};

    x->brain = brain;
    x->play = tape_play(tape, &handler, x);
}

void
exchange_play_script(Exchange *x)
{
    const ScriptCall call = {
        .ask = x->ask,
        .model = x->model != NULL ? x->model : "",
        .box = x->who.box,
        .agent = x->who.agent,
        .task = x->who.task,
        .digest = x->digest,
    };
    g_autoptr(Tape) tape = brain_script_answer(x->script, &call);

    play(x, tape, "script");
}

/* ---- replaying ---- */

typedef struct Load {
    Exchange *x; /* a reference; touched by the loop alone */
    char *folder;
    guint8 digest[ASK_DIGEST_LEN];
    Tape *tape;
    GError *error;
} Load;

static void
load_work(void *data)
{
    Load *load = data;

    load->tape = recording_load(load->folder, load->digest, &load->error);
}

static void
load_done(void *data)
{
    Load *load = data;
    Exchange *x = load->x;

    if (x->gate != NULL && load->tape != NULL)
        play(x, load->tape, "replay");
    else if (x->gate != NULL)
        exchange_refuse(x, FAULT_NO_RECORDING, "the provider '%s' only replays: %s",
                        provider_name(x->provider), load->error->message);
    tape_unref(load->tape);
    g_clear_error(&load->error);
    exchange_unref(x);
    g_free(load->folder);
    g_free(load);
}

void
exchange_replay(Exchange *x)
{
    Load *load;

    x->brain = "replay";
    if (x->gate->recordings == NULL) {
        exchange_refuse(x, FAULT_NO_RECORDING,
                        "the provider '%s' only replays, and there is no folder to do so",
                        provider_name(x->provider));
        return;
    }
    load = g_new0(Load, 1);
    *load = (Load){.x = exchange_ref(x), .folder = g_strdup(x->gate->recordings)};
    memcpy(load->digest, x->digest, sizeof load->digest);
    loop_offload(x->gate->loop, load_work, load_done, load);
}

/* ---- recording ---- */

void
exchange_record_start(Exchange *x)
{
    if (provider_tape(x->provider) != TAPE_RECORD || x->gate->recordings == NULL || x->answer.status != 200)
        return;
    x->recorded = tape_new(x->answer.status, x->ask->stream);
    x->recorded_us = clock_mono_us();
}

void
exchange_record(Exchange *x, const guint8 *bytes, size_t n)
{
    gint64 now = clock_mono_us();

    if (x->recorded == NULL)
        return;
    if (x->answer.bytes > TAPE_BYTES_MAX || x->recorded->pieces->len >= TAPE_PIECES_MAX) {
        log_warn("brain", "an answer is too long to be recorded",
                 log_str("provider", provider_name(x->provider)));
        tape_unref(g_steal_pointer(&x->recorded));
        return;
    }
    tape_add(x->recorded, (guint)MIN((now - x->recorded_us) / 1000, TAPE_WAIT_MAX_MS), bytes, n);
    x->recorded_us = now;
}

typedef struct Store {
    char *folder, *text;
    guint8 digest[ASK_DIGEST_LEN];
    GError *error;
} Store;

static void
store_work(void *data)
{
    Store *store = data;

    recording_store(store->folder, store->digest, store->text, &store->error);
}

static void
store_done(void *data)
{
    Store *store = data;

    if (store->error != NULL)
        log_error("brain", "an answer could not be recorded", log_gerror(store->error));
    g_clear_error(&store->error);
    g_free(store->folder);
    g_free(store->text);
    g_free(store);
}

void
exchange_record_end(Exchange *x)
{
    g_autoptr(Tape) tape = g_steal_pointer(&x->recorded);
    Store *store;

    if (tape == NULL)
        return;
    const RecordingLabel label = {.provider = provider_name(x->provider),
                                  .model = x->model,
                                  .path = x->route->path,
                                  .request = x->sent};
    store = g_new0(Store, 1);
    *store = (Store){.folder = g_strdup(x->gate->recordings), .text = recording_encode(tape, &label)};
    memcpy(store->digest, x->digest, sizeof store->digest);
    loop_offload(x->gate->loop, store_work, store_done, store);
}

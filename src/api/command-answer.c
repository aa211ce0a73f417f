/* SPDX-License-Identifier: Apache-2.0 */
#include "api/command-answer.h"

#include "api/box-json.h"
#include "api/command-find.h"
#include "api/output-feed.h"
#include "api/run-collect.h"
#include "api/state.h"

enum { TEXT_MAX = 1024 * 1024 /* of the output in an answer that waited */ };

struct CommandAnswer {
    ApiCall *call; /* once it is given, with a reference to its request */
    Run *run;
    Json *row;           /* as it was at the start */
    RunCollect *collect; /* NULL: does not wait */
    Box *box;            /* a reference; NULL: not to be told */
    int status;
    bool given, over;
};

void
command_answer_free(CommandAnswer *answer)
{
    if (answer == NULL)
        return;
    run_collect_free(answer->collect);
    run_unref(answer->run);
    json_decref(answer->row);
    box_unref(answer->box);
    g_free(answer);
}

/* Takes `command`. */
static void
respond(CommandAnswer *a, Json *command)
{
    Json *o = command;

    if (a->box != NULL) {
        o = box_describe(a->call->api, a->box);
        json_object_set_new(o, "command", command);
    }
    call_respond_json(a->call, a->status, o);
}

/* ---- waiting ---- */

static void
stop_waiting(CommandAnswer *a)
{
    HttpRequest *request = a->call->request;

    http_request_on_gone(request, NULL, NULL);
    command_answer_free(a);
    http_request_unref(request);
}

static void
tell_end(CommandAnswer *a)
{
    if (!caller_is_still_known(a->call)) {
        respond_error(a->call->request, 401, "the key of this call is not valid any more");
    } else {
        Json *o = command_describe(a->row, a->run);

        run_collect_set_text(a->collect, o);
        respond(a, o);
    }
    stop_waiting(a);
}

static void
on_over(RunCollect *collect, void *data)
{
    CommandAnswer *a = data;

    a->over = true;
    if (a->given)
        tell_end(a);
}

static void
on_gone(HttpRequest *request, void *data)
{
    stop_waiting(data);
}

/* ---- all three ---- */

CommandAnswer *
command_answer_new(ApiCall *call, Box *box, Run *run, bool wait)
{
    CommandAnswer *a = g_new0(CommandAnswer, 1);

    a->call = call;
    a->run = run_ref(run);
    a->row = box_command_row(box, run_id(run));
    if (wait && !call_wants_stream(call))
        a->collect = run_collect_new(run, TEXT_MAX, on_over, a);
    return a;
}

static void
begin_stream(CommandAnswer *a)
{
    OutputFeedSpec feed = {.run = a->run,
                           .sandbox = a->box != NULL ? box_describe(a->call->api, a->box) : NULL,
                           .started = command_describe(a->row, a->run)};

    call_respond_output_feed(a->call, &feed);
}

void
command_answer_give(CommandAnswer *answer, int status, Box *box)
{
    answer->status = status;
    answer->box = box != NULL ? box_ref(box) : NULL;
    if (answer->collect != NULL) {
        answer->given = true;
        http_request_ref(answer->call->request);
        http_request_on_gone(answer->call->request, on_gone, answer);
        if (answer->over)
            tell_end(answer);
        return;
    }
    if (call_wants_stream(answer->call))
        begin_stream(answer);
    else
        respond(answer, command_describe(answer->row, answer->run));
    command_answer_free(answer);
}

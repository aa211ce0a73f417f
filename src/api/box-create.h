/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "api/command-form.h"
#include "box/host.h"

/* What every face does to make a box: the caller becomes its owner, an Idempotency-Key gets
 * the box of the first call with it again, and a box whose caller has gone away before it
 * could be told the id is killed, unless a lease finds it again.
 *
 * The spec's strings are borrowed for the call; owner and actor are set here.  `answer` is
 * called with the box, or an error was answered; `is_new` false: a lease had it.
 *
 * A `first` command (taken; NULL: none) is started as soon as the box takes it, and the answer
 * tells of both; if it cannot be started, a new box that nobody could find again is killed. */
typedef void (*BoxAnswerFunc)(ApiCall *call, Box *box, bool is_new);
void call_create_box(ApiCall *call, BoxSpec *spec, CommandForm *first, BoxAnswerFunc answer);

/* The members that the faces' bodies have in common. */
enum {
    LEASE_MAX = 255,
    REFERENCE_MAX = 255, /* ids of agents and tasks */
    URL_TEXT_MAX = 2048,
    TEMPLATE_NAME_MAX = 255,
};
/* Checks what only looks like text: printable, no reserved lease. */
bool box_spec_check(const BoxSpec *spec, GError **error);

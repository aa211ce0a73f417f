/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "box/run.h"

/* Reads along with a run until its end: what an answer says of it. */
typedef struct RunCollect RunCollect;

/* Right after the start of `run`, of which it takes a reference of its own.  At most `max` bytes
 * of both streams are kept.  `ended` is called once, from the loop. */
RunCollect *run_collect_new(Run *run, size_t max, void (*ended)(RunCollect *collect, void *data), void *data);
/* The run goes on. */
void run_collect_free(RunCollect *collect);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RunCollect, run_collect_free)

Run *run_collect_run(const RunCollect *collect);
size_t run_collect_size(const RunCollect *collect); /* bytes kept */
/* Text, with "stdout_truncated" and "stderr_truncated" where something was left out. */
void run_collect_set_text(const RunCollect *collect, Json *object);

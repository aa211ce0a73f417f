/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/host.h"

/* A box is made, a program that tries to get out is put into it and run, as the box's user and
 * as its root; then the box is gone.  What came of each attempt is kept for who asks. */

typedef struct SelfTest SelfTest;

typedef struct SelfTestSpec {
    BoxHost *host;
    Loop *loop;
    const char *probe;     /* the program, on the host */
    const char *host_file; /* a file of the host that must not be seen */
    const char *template;  /* NULL: the default one */
} SelfTestSpec;

SelfTest *self_test_new(const SelfTestSpec *spec);
void self_test_free(SelfTest *test); /* before the host; nobody is told any more */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SelfTest, self_test_free)

/* `report` is borrowed: {"ran_at", "template", "held", "broken", "attempts": [{"name", "what",
 * "user", "held", "error"}]}.  When something broke out the tier is off afterwards, and on again
 * when nothing does.  `error`: it could not be run, ERR_CONFLICT: it is running. */
typedef void (*SelfTestFunc)(Json *report, const GError *error, void *data);
void self_test_run(SelfTest *test, const char *actor, SelfTestFunc done, void *data);
/* The newest report, borrowed; NULL: it has not run. */
Json *self_test_report(const SelfTest *test);

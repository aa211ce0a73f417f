/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/landing.h"
#include "support/forge-world.h"

/* Checks that are rows and nothing else: how a suite ends is said by the test. */
typedef struct FakeChecks {
    ForgeWorld *world;
    Landings *landings;
    const char *verdict; /* "passed", "failed"…; NULL: suites wait for fake_checks_end() */
    /* Before a suite is added, on the loop; NULL: nothing. */
    void (*adding)(struct FakeChecks *checks, const char *base_oid, const char *head_oid);
    GError *refusal;   /* of the next; NULL: it is taken */
    GPtrArray *suites; /* ids, in their order */
    GPtrArray *heads;  /* what each is of */
    guint cancelled;
    guint next;
} FakeChecks;

FakeChecks *fake_checks_new(void);
void fake_checks_free(FakeChecks *checks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FakeChecks, fake_checks_free)
LandingCheck fake_checks_table(FakeChecks *checks);

/* The suite's row, and then the queue is told. */
void fake_checks_end(FakeChecks *checks, const char *suite_id, const char *state);
/* Runs the loop until there are `n`. */
const char *fake_checks_wait(FakeChecks *checks, guint n);
/* Coop saw this head pass, as it does before a pull request comes to the queue. */
void fake_checks_pass_pull(ForgeWorld *world, gint64 number);

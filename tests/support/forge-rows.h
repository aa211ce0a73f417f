/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/err.h"
#include "forge/forge.h"
#include "support/store.h"

/* A database with one repository in it ("acme/widget"), and a forge that has nothing else: no git, no
 * threads.  For what is rows alone. */
typedef struct RowWorld {
    StoreBench *bench;
    Loop *loop;
    Forge *forge;
    Repo *repo;
} RowWorld;

extern const char row_world_id[]; /* of the repository */

RowWorld *row_world_new(void);
/* What another program made there and left; freeing it removes the folder. */
RowWorld *row_world_open(const char *dir);
void row_world_free(RowWorld *world);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RowWorld, row_world_free)

/* Where refs/heads/`branch` is, as a push would have written it. */
void row_world_branch(RowWorld *world, const char *branch, char digit);
/* An oid of one digit; static. */
const char *row_oid(char digit);
/* An open pull request of `head` into main, at the commits 'a' and 'b', not a draft, compared and
 * without conflicts.  Returns its number. */
gint64 row_world_pull(RowWorld *world, const char *author, const char *head);

/* The events since the last time, by their kinds with a space between. */
void row_world_expect(RowWorld *world, const char *kinds);
void row_world_sql(RowWorld *world, const char *sql);

/* What a call answered; to be used with the two that wait. */
typedef struct RowAnswer {
    Json *value;
    GError *error;
    bool has_come;
} RowAnswer;
void on_row_answer(Json *value, const GError *error, void *answer); /* a ForgeJsonFunc */
Json *row_answer_wait(RowAnswer *answer);
void row_answer_wait_error(RowAnswer *answer, ErrKind kind, const char *text /* NULL: any */);

/* ROW_ASK(issue_open, world, &spec) */
#define ROW_ASK(func, world, ...)                                                                            \
    ({                                                                                                       \
        RowAnswer answer_ = {0};                                                                             \
        func((world)->forge, (world)->repo, __VA_ARGS__, on_row_answer, &answer_);                           \
        row_answer_wait(&answer_);                                                                           \
    })
#define ROW_FAIL(kind, text, func, world, ...)                                                               \
    do {                                                                                                     \
        RowAnswer answer_ = {0};                                                                             \
        func((world)->forge, (world)->repo, __VA_ARGS__, on_row_answer, &answer_);                           \
        row_answer_wait_error(&answer_, kind, text);                                                         \
    } while (0)

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "github/calls.h"
#include "github/upstream-private.h"

/* Something that belongs to a pull request there: a comment, a review, a comment on a line, a status.
 * upstream-part.c finds what is needed and writes down what came of it; upstream-said.c knows the kinds. */

typedef struct Part Part;

typedef struct PartKind {
    const char *kind; /* of the row */
    void (*load)(Part *part, ForgeJsonFunc done);
    /* What people read there; NULL: there is nothing to say. */
    char *(*text)(const Part *part);
    Json *(*body)(const Part *part, const char *text); /* of the call */
    void (*create)(const GithubAsk *ask, const Part *part);
    void (*edit)(const GithubAsk *ask, const Part *part, gint64 id);
    void (*remove)(const GithubAsk *ask, const Part *part, gint64 id); /* NULL: it stays */
    bool is_item;                                                      /* it has an id of its own there */
} PartKind;

struct Part {
    Upstream *upstream;
    WorkRow *row;
    Repo *repo;
    const PartKind *kind;
    Json *here;         /* our row */
    char *text;         /* without its marker */
    Json *body;         /* what shall be there; NULL: nothing */
    char *login;        /* ours there */
    gint64 number;      /* of the pull request there */
    gint64 there;       /* what it is there; 0: nothing yet */
    gint64 in_reply_to; /* of a line: the first of its thread there; 0: none */
    bool as_comment;    /* a line that could not be one there */
};

const PartKind *upstream_part_kind(const char *kind);
/* The name that hides in what is sent, so that it is known again. */
char *upstream_part_marker(const Part *part);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Conventional Commits, read and checked.  libc only: the same file is in the server, in the hook
 * of pushes and in the program that checks a message inside a box.
 *
 *     type(scope)!: subject
 *
 *     body
 *
 *     Task: 42
 *     Agent: name
 *     Role: coder
 *
 * Merge and revert commits as git writes them are allowed as they are. */

#define MESSAGE_TYPES "build, chore, ci, docs, feat, fix, perf, refactor, revert, style, test"

enum {
    MESSAGE_MAX = 64 * 1024,
    MESSAGE_HEADER_MAX = 100, /* characters of the first line */
    MESSAGE_LINE_MAX = 1000,
    MESSAGE_SCOPE_MAX = 40,
    MESSAGE_TRAILER_MAX = 200, /* of a trailer's value */
    MESSAGE_PROBLEM_MAX = 1024,
};

typedef enum MessageKind { MESSAGE_PLAIN, MESSAGE_MERGE, MESSAGE_REVERT } MessageKind;

typedef struct MessagePart {
    size_t at, n; /* n == 0: not there */
} MessagePart;

/* Where its parts are in the text; valid as long as that. */
typedef struct Message {
    MessageKind kind;
    bool breaking; /* "!", or a BREAKING CHANGE trailer */
    MessagePart type, scope, subject, body;
    MessagePart task, agent, role; /* values of trailers */
} Message;

typedef enum MessageRule {
    MESSAGE_OK,
    MESSAGE_EMPTY,
    MESSAGE_TOO_LONG,
    MESSAGE_NOT_TEXT, /* no UTF-8, or control characters */
    MESSAGE_NO_TYPE,  /* no "type: " at all */
    MESSAGE_BAD_TYPE,
    MESSAGE_BAD_SCOPE,
    MESSAGE_NO_SPACE,
    MESSAGE_NO_SUBJECT,
    MESSAGE_BAD_SUBJECT, /* ends with a full stop, begins with a space */
    MESSAGE_LONG_HEADER,
    MESSAGE_NO_BLANK, /* between the first line and the body */
    MESSAGE_LONG_LINE,
    MESSAGE_BAD_TRAILER,
    MESSAGE_RULE_MAX,
} MessageRule;

bool message_is_type(const char *text, size_t n);
/* Reads `n` bytes; the first rule that is broken.  Lines that begin with '#' are git's comments and are left
 * out if `comments`.  `ret` may be NULL. */
MessageRule message_parse(const char *text, size_t n, bool comments, Message *ret);
/* What a person does about it: what was found (cut, cleaned), the rule and an example.  Always ends with a
 * newline and NUL, at most `size` bytes. */
void message_explain(MessageRule rule, const char *text, size_t n, char *into, size_t size);

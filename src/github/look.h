/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

#include "json/json.h"

/* Is `item`, as a list shows it, what the request with `body` would have made? */
bool look_is_pull(const Json *item, const Json *body);    /* open, the same two branches */
bool look_is_merged(const Json *item, const Json *body);  /* a pull request that is, at `sha` */
bool look_is_updated(const Json *item, const Json *body); /* one that has left `expected_head_sha` */
bool look_is_review(const Json *item, const Json *body);
bool look_is_line_comment(const Json *item, const Json *body);
bool look_is_comment(const Json *item, const Json *body); /* the same marker, or the same text */
bool look_is_said(const Json *item, const Json *body);    /* the same text: a marker can be anybody's */
bool look_is_issue(const Json *item, const Json *body);
bool look_is_status(const Json *item, const Json *body);
bool look_is_check(const Json *item, const Json *body); /* by external_id */
bool look_is_ref(const Json *item, const Json *body);

/* "<!-- coop:NAME -->", which nobody sees. */
char *look_marker(const char *name);
/* It begins with one. */
bool look_is_marked(const char *text);
/* Alike but for ends of lines and blanks at the end, which GitHub changes. */
bool look_same_text(const char *a, const char *b);

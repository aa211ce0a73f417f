/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* What of a head goes to a box, and what of its answer comes back. */

/* A Cookie header without the cookies that are ours; NULL: none is left. */
char *preview_cookies(const char *header);
/* For HttpProxySpec.judge_answer. */
char *preview_judge_answer(const char *name, const char *value);

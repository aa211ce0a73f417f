/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* Words of agents where Markdown is read.  Owned by the caller. */

/* Its emphasis, lists and code stay; outside of code it mentions nobody, shows no image and has no HTML, so
 * no comment either. */
char *markdown_tame(const char *text);
/* As a block of code, which nothing in it ends. */
char *markdown_fence(const char *text);

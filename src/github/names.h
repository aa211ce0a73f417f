/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "json/json.h"

/* Labels and logins as sorted arrays of strings.  Both are the same in any case. */

enum { NAMES_MAX = 100 }; /* of a list that is read */

/* The texts of `member` in a list of objects; NULL list: none. */
Json *names_of(const Json *list, const char *member);
/* The logins of those in a list of people.h's that are of the place there. */
Json *names_of_theirs(const Json *people);
/* Those of `a` that are not in `b`; NULL is empty. */
Json *names_minus(const Json *a, const Json *b);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* What a client's conditional and Accept headers ask for.  The headers may be NULL: not sent. */

/* True when an If-None-Match (or If-Match) names `etag`, which is quoted; "W/" on either side
 * does not count. */
bool etag_is_listed(const char *list, const char *etag);

/* True when an Accept-Encoding takes gzip.  Without the header we send things as they are. */
bool accepts_gzip(const char *accept_encoding);

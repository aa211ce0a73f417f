/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Every byte but letters, digits and "-._~" as %XX; slashes stay as they are. */
char *url_encode_path(const char *bytes);

/* Decodes %XX (and, in queries, '+').  NULL when an escape is broken or decodes to NUL.  The
 * result need not be UTF-8; where text is wanted use url_query_get(), which checks. */
char *url_decode(const char *text, size_t n, bool plus_is_space);

/* The value of `name` in a raw query (NULL: an empty one), decoded, valid UTF-8; "" for a name
 * alone.  False with ERR_INVALID when it is malformed, or given twice: whoever else reads the
 * query may take the other one.  `*ret_value` is NULL when it is not there. */
bool url_query_get(const char *query, const char *name, char **ret_value, GError **error);
/* Same, but any bytes: a file's name need not be text. */
bool url_query_get_bytes(const char *query, const char *name, char **ret_value, GError **error);
/* Same, as a decimal number in min..max; `*ret_value` is untouched when it is not there. */
bool url_query_get_int(const char *query, const char *name, gint64 min, gint64 max, gint64 *ret_value,
                       GError **error);
/* Fails with the name of the first parameter that is not in the NULL-terminated list. */
bool url_query_only(const char *query, const char *const *names, GError **error);

/* One cookie's value, without its quotes, out of a Cookie header's text (may be NULL); NULL:
 * not there.  Of several the first: browsers send the most specific path first. */
char *http_cookie_get(const char *cookie_header, const char *name);

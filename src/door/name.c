/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to one canonical name.  Whatever has more than one reading is refused: resolvers take
 * "2130706433", "0x7f.1" and "127.1" for 127.0.0.1, and mapping full-width digits makes more of
 * the same, so nothing is repaired here but the case of letters and one trailing dot. */
#include "door/name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/err.h"

enum { LABEL_MAX = 63, PORT_DIGITS_MAX = 5 };

static bool
check_byte(guchar c, GError **error)
{
    if (c < ' ' || c == 0x7f)
        return err_set(error, ERR_INVALID, "a control character in the destination's name");
    if (c >= 0x80)
        return err_set(error, ERR_INVALID,
                       "the destination's name is not ASCII; names in other scripts are written as xn--");
    if (c == '@')
        return err_set(error, ERR_INVALID, "user information in the destination's name");
    if (!g_ascii_isalnum(c) && c != '-' && c != '.')
        return err_set(error, ERR_INVALID, "'%c' is not allowed in the destination's name", c);
    return true;
}

static bool
check_label(const char *label, size_t n, GError **error)
{
    if (n == 0)
        return err_set(error, ERR_INVALID, "the destination's name has an empty part");
    if (n > LABEL_MAX)
        return err_set(error, ERR_INVALID, "a part of the destination's name is longer than %d", LABEL_MAX);
    if (label[0] == '-' || label[n - 1] == '-')
        return err_set(error, ERR_INVALID, "a part of the destination's name begins or ends with '-'");
    return true;
}

static bool
check_labels(const char *host, GError **error)
{
    for (const char *p = host;;) {
        size_t n = strcspn(p, ".");

        if (!check_label(p, n, error))
            return false;
        if (p[n] == '\0')
            return true;
        p += n + 1;
    }
}

/* Any resolver would take such a last label for a part of an address. */
static bool
ends_like_address(const char *host)
{
    const char *dot = strrchr(host, '.');
    const char *last = dot != NULL ? dot + 1 : host;

    return strspn(last, "0123456789") == strlen(last) || g_str_has_prefix(last, "0x");
}

static void
set_v4(DoorName *name, const struct in_addr *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(name->port), .sin_addr = *address};

    memcpy(&name->address, &v4, sizeof v4);
    name->is_address = true;
}

static bool
read_host(const char *text, size_t n, DoorName *name, GError **error)
{
    struct in_addr v4;
    bool dotted = n > 1 && text[n - 1] == '.';

    if (dotted)
        n--;
    if (n == 0)
        return err_set(error, ERR_INVALID, "the destination has no name");
    if (n > DOOR_NAME_MAX)
        return err_set(error, ERR_INVALID, "the destination's name is longer than %d", DOOR_NAME_MAX);
    for (size_t i = 0; i < n; i++) {
        if (!check_byte((guchar)text[i], error))
            return false;
        name->host[i] = g_ascii_tolower(text[i]);
    }
    name->host[n] = '\0';
    if (!check_labels(name->host, error))
        return false;
    if (!ends_like_address(name->host))
        return true;
    if (dotted || inet_pton(AF_INET, name->host, &v4) != 1)
        return err_set(error, ERR_INVALID, "an address is written as four decimal numbers");
    set_v4(name, &v4);
    return true;
}

static bool
read_bracketed(const char *text, size_t n, DoorName *name, GError **error)
{
    char plain[INET6_ADDRSTRLEN];
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(name->port)};

    /* A scope ("%eth0") is no part of what inet_pton() takes. */
    if (n >= sizeof plain)
        return err_set(error, ERR_INVALID, "not an IPv6 address in the brackets");
    memcpy(plain, text, n);
    plain[n] = '\0';
    if (inet_pton(AF_INET6, plain, &v6.sin6_addr) != 1)
        return err_set(error, ERR_INVALID, "not an IPv6 address in the brackets");
    inet_ntop(AF_INET6, &v6.sin6_addr, name->host, sizeof name->host);
    memcpy(&name->address, &v6, sizeof v6);
    name->is_address = true;
    return true;
}

static bool
read_port(const char *text, size_t n, guint16 *ret_port, GError **error)
{
    guint port = 0;

    for (size_t i = 0; i < n && i <= PORT_DIGITS_MAX; i++) {
        if (!g_ascii_isdigit(text[i]))
            return err_set(error, ERR_INVALID, "the destination's port is not a number");
        port = port * 10 + (guint)(text[i] - '0');
    }
    if (n == 0 || n > PORT_DIGITS_MAX || text[0] == '0' || port > G_MAXUINT16)
        return err_set(error, ERR_INVALID, "the destination's port is not in 1..65535");
    *ret_port = (guint16)port;
    return true;
}

static bool
read_authority(const char *text, size_t n, guint16 default_port, DoorName *ret, GError **error)
{
    bool bracketed = n > 0 && text[0] == '[';
    const char *host_end = bracketed ? memchr(text, ']', n) : memchr(text, ':', n);
    DoorName name = {.port = default_port};

    if (bracketed && host_end == NULL)
        return err_set(error, ERR_INVALID, "'[' without ']' in the destination");
    const char *end = text + n;
    const char *colon = host_end == NULL ? end : bracketed ? host_end + 1 : host_end;

    if (colon < end && *colon != ':')
        return err_set(error, ERR_INVALID, "something after ']' in the destination");
    if (colon == end && default_port == 0)
        return err_set(error, ERR_INVALID, "the destination has no port");
    if (colon < end && !read_port(colon + 1, (size_t)(end - colon) - 1, &name.port, error))
        return false;
    if (bracketed ? !read_bracketed(text + 1, (size_t)(host_end - text) - 1, &name, error)
                  : !read_host(text, (size_t)(colon - text), &name, error))
        return false;
    *ret = name;
    return true;
}

bool
door_name_read(const char *authority, guint16 default_port, DoorName *ret, GError **error)
{
    return read_authority(authority, strlen(authority), default_port, ret, error);
}

static bool
check_target(const char *target, GError **error)
{
    if (*target != '\0' && *target != '/')
        return err_set(error, ERR_INVALID, "the path of a URL begins with '/'");
    for (const guchar *p = (const guchar *)target; *p != '\0'; p++) {
        if (*p <= ' ' || *p >= 0x7f || *p == '#')
            return err_set(error, ERR_INVALID, "a character that is not allowed in a URL");
    }
    return true;
}

bool
door_name_read_uri(const char *uri, DoorName *ret, const char **ret_target, GError **error)
{
    static const char scheme[] = "http://";
    const size_t scheme_len = sizeof scheme - 1;

    if (g_ascii_strncasecmp(uri, scheme, scheme_len) != 0)
        return err_set(error, ERR_INVALID, "only http:// goes through the plain proxy; https needs CONNECT");
    const char *authority = uri + scheme_len;
    size_t n = strcspn(authority, "/?");

    if (!check_target(authority + n, error) || !read_authority(authority, n, 80, ret, error))
        return false;
    *ret_target = authority[n] != '\0' ? authority + n : "/";
    return true;
}

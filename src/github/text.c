/* SPDX-License-Identifier: Apache-2.0 */
#include "github/text.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <string.h>

#include "base/err.h"
#include "github/client.h"

enum { FAILURE_MAX = 300 };

void
github_wipe(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    g_free(secret);
}

char *
github_clean(const char *text, size_t max)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *line = g_string_new(NULL);

    for (char *at = valid; *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);

        if (line->len + 6 > max)
            break;
        if (g_unichar_isprint(c) && g_unichar_type(c) != G_UNICODE_FORMAT)
            g_string_append_unichar(line, c);
        else
            g_string_append_c(line, ' ');
    }
    return g_string_free(line, FALSE);
}

static void
add_errors(GString *text, const Json *errors)
{
    enum { ERRORS_SHOWN = 3 };

    for (size_t i = 0; i < MIN(json_array_size(errors), ERRORS_SHOWN); i++) {
        const Json *item = json_array_get(errors, i);
        const char *message = json_is_string(item) ? json_string_value(item) : github_text(item, "message");

        if (message != NULL)
            g_string_append_printf(text, ": %s", message);
        else if (github_text(item, "field") != NULL && github_text(item, "code") != NULL)
            g_string_append_printf(text, ": %s %s", github_text(item, "field"), github_text(item, "code"));
    }
}

char *
github_failure_text(const Json *body, const char *secret)
{
    const char *message = github_text(body, "message");

    if (message == NULL)
        return NULL;
    g_autoptr(GString) text = g_string_new(message);

    add_errors(text, json_object_get(body, "errors"));
    if (secret != NULL && *secret != '\0')
        g_string_replace(text, secret, "[token]", 0);
    return github_clean(text->str, FAILURE_MAX);
}

char *
github_path(const char *pattern, ...)
{
    GString *path = g_string_new(NULL);
    va_list args;

    va_start(args, pattern);
    for (const char *p = pattern; *p != '\0'; p++) {
        if (p[0] == '%' && p[1] == 's')
            g_string_append_uri_escaped(path, va_arg(args, const char *), NULL, FALSE);
        else if (p[0] == '%' && p[1] == 'd')
            g_string_append_printf(path, "%" G_GINT64_FORMAT, va_arg(args, gint64));
        else
            g_string_append_c(path, *p);
        p += p[0] == '%';
    }
    va_end(args);
    return g_string_free(path, FALSE);
}

/* ---- base URLs ---- */

static bool
is_this_machine(const char *host)
{
    struct in_addr v4;

    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           (inet_pton(AF_INET, host, &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127);
}

char *
github_base_url(const char *text, GError **error)
{
    g_autoptr(GUri) uri = strlen(text) <= GITHUB_BASE_MAX
                              ? g_uri_parse(text, G_URI_FLAGS_ENCODED | G_URI_FLAGS_PARSE_RELAXED, NULL)
                              : NULL;
    const char *host = uri != NULL ? g_uri_get_host(uri) : NULL;

    if (host == NULL || *host == '\0' || strpbrk(text, " \"<>\\^`{|}%") != NULL) {
        err_set(error, ERR_INVALID, "the base URL is no URL such as https://api.github.com");
        return NULL;
    }
    g_autofree char *small = g_ascii_strdown(host, -1);
    bool is_http = strcmp(g_uri_get_scheme(uri), "http") == 0;

    if (!is_http && strcmp(g_uri_get_scheme(uri), "https") != 0)
        err_set(error, ERR_INVALID, "the base URL is one of https");
    else if (is_http && !is_this_machine(small))
        err_set(error, ERR_INVALID,
                "by http the token could be read on its way: the base URL is one of https");
    else if (g_uri_get_userinfo(uri) != NULL || g_uri_get_query(uri) != NULL ||
             g_uri_get_fragment(uri) != NULL)
        err_set(error, ERR_INVALID, "the base URL has no user, no '?' and no '#'");
    else {
        g_autofree char *path = g_strdup(g_uri_get_path(uri));

        while (g_str_has_suffix(path, "/"))
            path[strlen(path) - 1] = '\0';
        return g_uri_join(G_URI_FLAGS_ENCODED, g_uri_get_scheme(uri), NULL, small, g_uri_get_port(uri), path,
                          NULL, NULL);
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "http/multipart-head.h"

#include <string.h>

#include "base/err.h"
#include "http/params.h"

enum { BOUNDARY_MAX = 70 }; /* RFC 2046, 5.1.1 */

static bool
boundary_is_good(const char *boundary)
{
    size_t n = strlen(boundary);

    if (n == 0 || n > BOUNDARY_MAX || boundary[n - 1] == ' ')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!g_ascii_isalnum(boundary[i]) && strchr("'()+_,-./:=? ", boundary[i]) == NULL)
            return false;
    }
    return true;
}

char *
multipart_boundary(const char *content_type, GError **error)
{
    g_autofree char *boundary = NULL;
    const char *params;

    if (content_type == NULL || !params_begin(content_type, "multipart/form-data", &params)) {
        err_set(error, ERR_INVALID, "the Content-Type must be multipart/form-data");
        return NULL;
    }
    for (;;) {
        g_autofree char *name = NULL;
        g_autofree char *text = NULL;

        if (!params_next(&params, &name, &text)) {
            err_set(error, ERR_INVALID, "the Content-Type's parameters are malformed");
            return NULL;
        }
        if (name == NULL)
            break;
        if (strcmp(name, "boundary") != 0)
            continue;
        if (boundary != NULL) {
            err_set(error, ERR_INVALID, "the Content-Type names two boundaries");
            return NULL;
        }
        boundary = g_steal_pointer(&text);
    }
    if (boundary == NULL || !boundary_is_good(boundary)) {
        err_set(error, ERR_INVALID, "the Content-Type must name a boundary of 1 to %d permitted characters",
                BOUNDARY_MAX);
        return NULL;
    }
    return g_steal_pointer(&boundary);
}

void
part_head_clear(PartHead *head)
{
    g_free(head->name);
    g_free(head->filename);
    g_free(head->content_type);
    *head = (PartHead){0};
}

/* Twice the same thing with different values is how two readers come to disagree. */
static bool
take_once(char **slot, char *value, const char *what, GError **error)
{
    if (*slot != NULL) {
        g_free(value);
        return err_set(error, ERR_INVALID, "%s is given twice", what);
    }
    *slot = value;
    return true;
}

static bool
parse_disposition(const char *value, PartHead *head, GError **error)
{
    const char *params;

    if (head->name != NULL)
        return err_set(error, ERR_INVALID, "Content-Disposition is given twice");
    if (!params_begin(value, "form-data", &params))
        return err_set(error, ERR_INVALID, "the Content-Disposition must be form-data");
    for (;;) {
        g_autofree char *name = NULL;
        g_autofree char *text = NULL;

        if (!params_next(&params, &name, &text))
            return err_set(error, ERR_INVALID, "the Content-Disposition's parameters are malformed");
        if (name == NULL)
            break;
        /* RFC 7578 forbids "filename*"; like any parameter we do not know it is passed over. */
        if (strcmp(name, "name") == 0 && !take_once(&head->name, g_steal_pointer(&text), "name", error))
            return false;
        if (strcmp(name, "filename") == 0 &&
            !take_once(&head->filename, g_steal_pointer(&text), "filename", error))
            return false;
    }
    if (head->name == NULL)
        return err_set(error, ERR_INVALID, "the Content-Disposition has no name");
    return true;
}

/* RFC 7578, 4.7: only form-data of long ago was encoded.  Storing it as it came would store
 * something else than was meant. */
static bool
check_encoding(const char *value, GError **error)
{
    static const char *const plain[] = {"7bit", "8bit", "binary"};

    for (size_t i = 0; i < G_N_ELEMENTS(plain); i++) {
        if (g_ascii_strcasecmp(value, plain[i]) == 0)
            return true;
    }
    return err_set(error, ERR_INVALID, "its Content-Transfer-Encoding is not supported: send it as binary");
}

static bool
parse_line(const char *line, PartHead *head, GError **error)
{
    size_t n = strcspn(line, ": \t");

    if (n == 0 || line[n] != ':')
        return err_set(error, ERR_INVALID, "a header line is not 'Name: value'");
    g_autofree char *name = g_ascii_strdown(line, (gssize)n);
    g_autofree char *value = g_strdup(line + n + 1);

    g_strstrip(value);
    if (strcmp(name, "content-disposition") == 0)
        return parse_disposition(value, head, error);
    if (strcmp(name, "content-type") == 0)
        return take_once(&head->content_type, g_steal_pointer(&value), "Content-Type", error);
    if (strcmp(name, "content-transfer-encoding") == 0)
        return check_encoding(value, error);
    return true;
}

static bool
check_characters(const char *lines, GError **error)
{
    if (!g_utf8_validate(lines, -1, NULL))
        return err_set(error, ERR_INVALID, "a header is not valid UTF-8");
    for (const char *p = lines; *p != '\0'; p++) {
        if (g_ascii_iscntrl(*p) && *p != '\r' && *p != '\n' && *p != '\t')
            return err_set(error, ERR_INVALID, "a header has a control character");
    }
    return true;
}

bool
part_head_parse(const char *lines, PartHead *ret_head, GError **error)
{
    *ret_head = (PartHead){0};
    if (!check_characters(lines, error))
        return false;
    while (*lines != '\0') {
        const char *end = strstr(lines, "\r\n");
        g_autofree char *line = g_strndup(lines, (size_t)(end - lines));

        if (!parse_line(line, ret_head, error))
            return false;
        lines = end + 2;
    }
    if (ret_head->name == NULL)
        return err_set(error, ERR_INVALID, "there is no Content-Disposition");
    return true;
}

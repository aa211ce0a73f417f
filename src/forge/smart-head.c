/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/smart-private.h"

enum { STATUS_OK = 200, STATUS_MIN = 200, STATUS_MAX = 599 };

/* Others are nobody's business: framing is the server's own. */
static const char *const passed_on[] = {"Cache-Control", "Expires", "Pragma"};

void
smart_head_clear(SmartHead *head)
{
    g_free(head->type);
    if (head->headers != NULL)
        g_ptr_array_unref(head->headers);
    *head = (SmartHead){0};
}

size_t
smart_head_length(const guint8 *bytes, size_t n)
{
    static const char end[] = "\r\n\r\n";
    const guint8 *at = memmem(bytes, n, end, strlen(end));

    return at != NULL ? (size_t)(at - bytes) + strlen(end) : 0;
}

static bool
is_printable(const char *value)
{
    for (const char *p = value; *p != '\0'; p++) {
        if (!g_ascii_isprint(*p))
            return false;
    }
    return true;
}

static bool
read_status(const char *value, int *ret_status)
{
    char *end;
    gint64 status = g_ascii_strtoll(value, &end, 10);

    *ret_status = (int)status;
    return end != value && (*end == ' ' || *end == '\0') && status >= STATUS_MIN && status <= STATUS_MAX;
}

static bool
read_line(char *line, SmartHead *head)
{
    char *value = strchr(line, ':');

    if (value == NULL)
        return false;
    *value = '\0';
    value = g_strstrip(value + 1);
    if (!is_printable(value))
        return false;
    if (g_ascii_strcasecmp(line, "Status") == 0)
        return read_status(value, &head->status);
    if (g_ascii_strcasecmp(line, "Content-Type") == 0) {
        g_free(head->type);
        head->type = g_strdup(value);
        return true;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(passed_on); i++) {
        if (g_ascii_strcasecmp(line, passed_on[i]) != 0)
            continue;
        g_ptr_array_add(head->headers, g_strdup(passed_on[i]));
        g_ptr_array_add(head->headers, g_strdup(value));
    }
    return true;
}

bool
smart_head_parse(const guint8 *bytes, size_t n, SmartHead *ret_head, GError **error)
{
    g_auto(SmartHead) head = {.status = STATUS_OK, .headers = g_ptr_array_new_with_free_func(g_free)};
    g_autofree char *text = g_strndup((const char *)bytes, n);
    g_auto(GStrv) lines = g_strsplit(text, "\r\n", -1);

    for (guint i = 0; lines[i] != NULL && lines[i][0] != '\0'; i++) {
        if (!read_line(lines[i], &head))
            return err_set(error, ERR_INTERNAL, "git's answer begins with '%.60s'", lines[i]);
    }
    *ret_head = head;
    head = (SmartHead){0};
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/message.h"

#include <string.h>

#include "base/err.h"
#include "forge/message-paths.h"
#include "report/text.h"

enum {
    BODY_FILES_MAX = 20,
    PATH_SHOWN_MAX = 200,
    NAME_SHOWN_MAX = 40,
    TITLE_READ_MAX = 1024,
    SUBJECT_NAMES = 2, /* that are spelled out */
};

bool
message_check(const char *text, size_t n, GError **error)
{
    MessageRule rule = message_parse(text, n, false, NULL);
    char why[MESSAGE_PROBLEM_MAX];

    if (rule == MESSAGE_OK)
        return true;
    message_explain(rule, text, n, why, sizeof why);
    return err_set(error, ERR_INVALID, "%s", why);
}

/* ---- the subject ---- */

static char *
shown(const char *path, size_t max)
{
    bool cut = false;

    return text_dup_name(path, max, &cut);
}

static char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return shown(slash != NULL ? slash + 1 : path, NAME_SHOWN_MAX);
}

static const char *
verb_of(const GPtrArray *files)
{
    static const char *const verbs[DIFF_STATUS_MAX] = {
        [DIFF_ADDED] = "add",      [DIFF_REMOVED] = "remove",      [DIFF_MODIFIED] = "change",
        [DIFF_RENAMED] = "rename", [DIFF_TYPE_CHANGED] = "change",
    };
    const DiffFile *first = files->pdata[0];

    for (guint i = 1; i < files->len; i++) {
        if (((const DiffFile *)files->pdata[i])->status != first->status)
            return "change";
    }
    return verbs[first->status];
}

static void
put_rename(GString *subject, const DiffFile *file)
{
    g_autofree char *old = base_name(file->old_path), *new = base_name(file->path);

    if (strcmp(old, new) == 0)
        g_string_append_printf(subject, "move %s", old);
    else
        g_string_append_printf(subject, "rename %s to %s", old, new);
}

/* "change a.c", "rename a.c to b.c", "add a.c, b.c and 3 more" */
static void
put_names(GString *subject, const GPtrArray *files, guint more)
{
    guint named = MIN(files->len, SUBJECT_NAMES);
    guint rest = files->len - named + more;
    const DiffFile *first = files->pdata[0];

    if (files->len == 1 && more == 0 && first->status == DIFF_RENAMED) {
        put_rename(subject, first);
        return;
    }
    g_string_append(subject, verb_of(files));
    for (guint i = 0; i < named; i++) {
        g_autofree char *name = base_name(((const DiffFile *)files->pdata[i])->path);
        bool last = i + 1 == named && rest == 0;

        g_string_append_printf(subject, "%s%s", i == 0 ? " " : last ? " and " : ", ", name);
    }
    if (rest > 0)
        g_string_append_printf(subject, " and %u more", rest);
}

/* The title, if it can be a subject behind `header`. */
static bool
put_title(GString *header, const char *title)
{
    g_autofree char *text = title != NULL ? shown(title, TITLE_READ_MAX) : NULL;

    if (text == NULL)
        return false;
    while (g_str_has_suffix(text, ".") || g_str_has_suffix(text, " "))
        text[strlen(text) - 1] = '\0';
    if (text[0] == '\0' || g_utf8_strlen(header->str, -1) + g_utf8_strlen(text, -1) > MESSAGE_HEADER_MAX)
        return false;
    g_string_append(header, text);
    return true;
}

static void
put_header(GString *message, const GPtrArray *files, guint more, const MessageHint *hint)
{
    g_autofree char *scope = message_scope(files);
    bool given = hint->type != NULL && message_is_type(hint->type, strlen(hint->type));

    g_string_append(message, given ? hint->type : message_type(files));
    if (scope != NULL)
        g_string_append_printf(message, "(%s)", scope);
    g_string_append(message, ": ");
    if (put_title(message, hint->title))
        return;
    size_t subject = message->len;

    if (files->len > 0)
        put_names(message, files, more);
    while (strchr(". ", message->str[message->len - 1]) != NULL && message->len > subject)
        g_string_truncate(message, message->len - 1);
    if (message->len == subject || g_utf8_strlen(message->str, -1) > MESSAGE_HEADER_MAX) {
        g_string_truncate(message, subject);
        g_string_append_printf(message, "change %u files", files->len + more);
    }
}

/* ---- the rest ---- */

static void
put_body(GString *message, const GPtrArray *files, guint more)
{
    guint n = MIN(files->len, BODY_FILES_MAX);

    for (guint i = 0; i < n; i++) {
        const DiffFile *file = files->pdata[i];
        g_autofree char *path = shown(file->path, PATH_SHOWN_MAX);

        g_string_append_printf(message, "\n- %s %s", diff_status_name(file->status), path);
        if (file->binary)
            g_string_append(message, " (binary)");
        else if (file->counted)
            g_string_append_printf(message, " (+%u -%u)", file->additions, file->deletions);
    }
    if (files->len - n + more > 0)
        g_string_append_printf(message, "\n- and %u more", files->len - n + more);
}

static void
put_trailer(GString *trailers, const char *key, const char *value)
{
    g_autofree char *text = value != NULL ? shown(value, MESSAGE_TRAILER_MAX) : NULL;

    if (text != NULL && text[0] != '\0')
        g_string_append_printf(trailers, "%s: %s\n", key, text);
}

char *
message_write(const GPtrArray *files, guint more, const MessageHint *hint)
{
    GString *message = g_string_new(NULL);
    g_autoptr(GString) trailers = g_string_new(NULL);

    put_header(message, files, more, hint);
    g_string_append_c(message, '\n');
    if (files->len + more > 1) {
        put_body(message, files, more);
        g_string_append_c(message, '\n');
    }
    put_trailer(trailers, "Task", hint->task);
    put_trailer(trailers, "Agent", hint->agent);
    put_trailer(trailers, "Role", hint->role);
    if (trailers->len > 0)
        g_string_append_printf(message, "\n%s", trailers->str);
    return g_string_free(message, FALSE);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/commit.h"
#include "report/text.h"

enum { ZONE_MAX_MIN = 14 * 60 };

void
git_commit_free(GitCommit *commit)
{
    if (commit == NULL)
        return;
    g_free(commit->oid);
    g_free(commit->tree);
    g_strfreev(commit->parents);
    g_free(commit->author.name);
    g_free(commit->author.email);
    g_free(commit->committer.name);
    g_free(commit->committer.email);
    g_free(commit->message);
    g_free(commit);
}

static char *
dup_name(const char *from, const char *to)
{
    g_autofree char *raw = g_strndup(from, (size_t)(to - from));
    bool cut = false;

    return text_dup_name(raw, COMMIT_PERSON_MAX, &cut);
}

/* "+0530"; what is none is Greenwich, as git has it. */
static int
parse_zone(const char *text, const char *end)
{
    int sign = text < end && *text == '-' ? -1 : 1;
    int digits = 0;

    if (end - text != 5 || (*text != '+' && *text != '-'))
        return 0;
    for (const char *p = text + 1; p < end; p++) {
        if (!g_ascii_isdigit(*p))
            return 0;
        digits = digits * 10 + (*p - '0');
    }
    int minutes = digits / 100 * 60 + digits % 100;

    return minutes <= ZONE_MAX_MIN ? sign * minutes : 0;
}

/* "NAME <EMAIL> SECONDS ZONE".  Old histories have people of every form: what is not there is empty, so
 * that such a commit can be looked at. */
void
git_person_parse(const char *text, const char *end, GitPerson *ret)
{
    const char *open = memchr(text, '<', (size_t)(end - text));
    const char *close = memrchr(text, '>', (size_t)(end - text));
    char *after = NULL;

    if (open == NULL || close == NULL || close < open) {
        ret->name = dup_name(text, end);
        ret->email = g_strdup("");
        return;
    }
    ret->name = dup_name(text, open);
    ret->email = dup_name(open + 1, close);
    g_autofree char *when = g_strndup(close + 1, (size_t)(end - close - 1));
    g_strstrip(when);
    gint64 seconds = g_ascii_strtoll(when, &after, 10);

    if (seconds < 0 || seconds > G_MAXINT32 * 1000LL || after == when)
        return;
    ret->time_s = seconds;
    if (*after == ' ')
        ret->zone_min = parse_zone(after + 1, when + strlen(when));
}

static bool
take_oid(const char *text, const char *end, char **ret)
{
    g_autofree char *oid = g_strndup(text, (size_t)(end - text));

    if (!git_oid_is_valid(oid))
        return false;
    g_free(*ret);
    *ret = g_steal_pointer(&oid);
    return true;
}

static bool
take_parent(GPtrArray *parents, const char *text, const char *end)
{
    char *oid = NULL;

    if (parents->len == COMMIT_PARENTS_MAX)
        return true;
    if (!take_oid(text, end, &oid))
        return false;
    g_ptr_array_add(parents, oid);
    return true;
}

static bool
has_key(const char *line, size_t n, const char *key)
{
    return strlen(key) == n && memcmp(line, key, n) == 0;
}

/* One line that is no continuation of another. */
static bool
take_header(GitCommit *commit, GPtrArray *parents, const char *line, const char *end, bool *ret_latin1)
{
    const char *blank = memchr(line, ' ', (size_t)(end - line));
    size_t n = blank != NULL ? (size_t)(blank - line) : 0;
    const char *value = blank != NULL ? blank + 1 : end;

    if (has_key(line, n, "tree") && commit->tree == NULL)
        return take_oid(value, end, &commit->tree);
    if (has_key(line, n, "parent"))
        return take_parent(parents, value, end);
    if (has_key(line, n, "author") && commit->author.name == NULL)
        git_person_parse(value, end, &commit->author);
    else if (has_key(line, n, "committer") && commit->committer.name == NULL)
        git_person_parse(value, end, &commit->committer);
    else if (has_key(line, n, "gpgsig") || has_key(line, n, "gpgsig-sha256"))
        commit->is_signed = true;
    else if (has_key(line, n, "encoding"))
        *ret_latin1 = end - value == 10 && g_ascii_strncasecmp(value, "ISO-8859-1", 10) == 0;
    return true;
}

/* Of other encodings than these two only what is ASCII is shown as it was meant: the tables that
 * would know more are a large thing to feed with a stranger's bytes. */
static char *
dup_message(const char *text, const char *end, bool latin1)
{
    g_autofree char *raw = NULL;
    bool cut = false;

    if (latin1) {
        g_autoptr(GString) wide = g_string_new(NULL);

        for (const char *p = text; p < end && *p != '\0' && wide->len <= COMMIT_MESSAGE_MAX; p++)
            g_string_append_unichar(wide, (guchar)*p);
        raw = g_strdup(wide->str);
    } else {
        raw = g_strndup(text, (size_t)(end - text));
    }
    return text_dup_lines(raw, COMMIT_MESSAGE_MAX, &cut);
}

GitCommit *
git_commit_parse(const char *oid, const guint8 *bytes, size_t n, GError **error)
{
    g_autoptr(GitCommit) commit = g_new0(GitCommit, 1);
    g_autoptr(GPtrArray) parents = g_ptr_array_new_with_free_func(g_free);
    const char *at = (const char *)bytes, *end = at + n;
    bool latin1 = false;

    commit->oid = g_strdup(oid);
    while (at < end && *at != '\n') {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        stop = stop != NULL ? stop : end;
        if (*at != ' ' && !take_header(commit, parents, at, stop, &latin1))
            break;
        at = stop < end ? stop + 1 : end;
    }
    if (commit->tree == NULL || commit->author.name == NULL || commit->committer.name == NULL ||
        (at < end && *at != '\n')) {
        err_set(error, ERR_INVALID, "object %s is no commit", oid);
        return NULL;
    }
    commit->message = dup_message(at < end ? at + 1 : end, end, latin1);
    g_ptr_array_add(parents, NULL);
    commit->parents = (char **)g_ptr_array_free(g_steal_pointer(&parents), FALSE);
    return g_steal_pointer(&commit);
}

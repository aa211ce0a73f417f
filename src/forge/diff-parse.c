/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/diff-parse.h"

#include <string.h>

#include "base/err.h"
#include "forge/diff-raw.h"

typedef enum DiffState { IN_META, IN_PATH, IN_NEW_PATH, IN_PATCH } DiffState;

struct DiffParser {
    DiffParserSpec spec;
    DiffPage *page;
    DiffState state;
    DiffFile *file; /* the one whose names or patch are read */
    guint skipped;
    GString *text; /* a record or a line, as far as it is kept */
    bool long_line;
    guint next_file;            /* whose patch comes next */
    guint parts_left;           /* of this file: a changed type is a removal and an addition */
    guint64 old_left, new_left; /* lines of this piece */
    size_t kept;
    guint64 read;
    bool stopped, broken;
};

DiffParser *
diff_parser_new(const DiffParserSpec *spec)
{
    DiffParser *p = g_new0(DiffParser, 1);

    p->spec = *spec;
    p->text = g_string_new(NULL);
    p->page = g_new0(DiffPage, 1);
    p->page->files = g_ptr_array_new_with_free_func((GDestroyNotify)diff_file_free);
    return p;
}

void
diff_parser_free(DiffParser *p)
{
    if (p == NULL)
        return;
    if (p->state != IN_PATCH)
        diff_file_free(p->file);
    diff_page_free(p->page);
    g_string_free(p->text, TRUE);
    g_free(p);
}

bool
diff_parser_is_listed(const DiffParser *p)
{
    return !p->broken && (p->state == IN_PATCH || p->page->next != NULL);
}

/* ---- records ---- */

static void
end_entry(DiffParser *p)
{
    DiffFile *file = g_steal_pointer(&p->file);
    DiffPage *page = p->page;

    p->state = IN_META;
    if (p->skipped < p->spec.skip) {
        p->skipped++;
    } else if (page->files->len < p->spec.max) {
        g_ptr_array_add(page->files, file);
        return;
    } else if (page->next == NULL) {
        page->next = g_strdup(file->path);
        p->stopped = !p->spec.patches;
    }
    diff_file_free(file);
}

static void
begin_patches(DiffParser *p)
{
    p->state = IN_PATCH;
    p->broken = !p->spec.patches;
    p->stopped = p->page->files->len == 0;
}

static void
end_record(DiffParser *p)
{
    if (p->state == IN_META && p->text->len == 0) {
        begin_patches(p);
    } else if (p->state == IN_META) {
        p->file = diff_raw_parse(p->text->str);
        p->broken = p->file == NULL;
        p->state = IN_PATH;
    } else if (p->text->len == 0 || p->long_line) {
        p->broken = true;
    } else if (p->state == IN_PATH && p->file->status == DIFF_RENAMED) {
        p->file->old_path = g_strdup(p->text->str);
        p->state = IN_NEW_PATH;
    } else {
        p->file->path = g_strdup(p->text->str);
        end_entry(p);
    }
}

/* ---- patches ---- */

static void
leave_out(DiffParser *p)
{
    p->file->too_large = true;
    if (p->file->patch == NULL)
        return;
    p->kept -= p->file->patch->len;
    g_string_free(g_steal_pointer(&p->file->patch), TRUE);
}

static void
keep_line(DiffParser *p)
{
    DiffFile *file = p->file;
    size_t n = p->text->len + 1;
    size_t have = file->patch != NULL ? file->patch->len : 0;

    if (file->too_large)
        return;
    if (p->long_line || have + n > p->spec.patch_max || p->kept + n > p->spec.text_max) {
        leave_out(p);
        return;
    }
    if (file->patch == NULL)
        file->patch = g_string_new(NULL);
    g_string_append_len(file->patch, p->text->str, (gssize)p->text->len);
    g_string_append_c(file->patch, '\n');
    p->kept += n;
}

static bool
count_line(DiffParser *p)
{
    char kind = p->text->len > 0 ? p->text->str[0] : '\0';
    bool is_old = kind == ' ' || kind == '-', is_new = kind == ' ' || kind == '+';

    if (kind == '\\')
        return true;
    if ((!is_old && !is_new) || (is_old && p->old_left == 0) || (is_new && p->new_left == 0))
        return false;
    p->old_left -= is_old;
    p->new_left -= is_new;
    p->file->additions += kind == '+';
    p->file->deletions += kind == '-';
    return true;
}

/* The patch of the next file, or the second half of this one. */
static void
begin_section(DiffParser *p)
{
    if (p->file != NULL && p->parts_left > 0) {
        p->parts_left--;
        return;
    }
    if (p->file != NULL)
        p->file->counted = true;
    if (p->next_file == p->page->files->len) {
        p->stopped = p->page->next != NULL;
        p->broken = !p->stopped;
        return;
    }
    p->file = p->page->files->pdata[p->next_file++];
    p->parts_left = p->file->status == DIFF_TYPE_CHANGED ? 1 : 0;
}

/* Lines of files begin with one of " +-\", so none of them can look like one of git's own. */
static void
end_line(DiffParser *p)
{
    const char *line = p->text->str;
    bool in_piece = p->old_left > 0 || p->new_left > 0;

    if (!in_piece && g_str_has_prefix(line, "diff --git ")) {
        begin_section(p);
    } else if (p->file == NULL) {
        p->broken = true;
    } else if (in_piece || line[0] == '\\') {
        p->broken = !count_line(p);
        keep_line(p);
    } else if (g_str_has_prefix(line, "@@ ")) {
        p->broken = !diff_piece_parse(line, &p->old_left, &p->new_left);
        keep_line(p);
    } else if (g_str_has_prefix(line, "Binary files ")) {
        p->file->binary = true;
    }
}

/* ---- bytes ---- */

static size_t
feed_text(DiffParser *p, const guint8 *bytes, size_t n)
{
    char separator = p->state == IN_PATCH ? '\n' : '\0';
    size_t max = p->state == IN_PATCH ? p->spec.line_max : DIFF_PATH_MAX;
    const guint8 *end = memchr(bytes, separator, n);
    size_t part = end != NULL ? (size_t)(end - bytes) : n;
    size_t room = max - MIN(p->text->len, max);

    g_string_append_len(p->text, (const char *)bytes, (gssize)MIN(part, room));
    p->long_line |= part > room;
    if (end == NULL)
        return part;
    if (p->state == IN_PATCH)
        end_line(p);
    else
        end_record(p);
    g_string_truncate(p->text, 0);
    p->long_line = false;
    return part + 1;
}

bool
diff_parser_feed(DiffParser *p, const guint8 *bytes, size_t n)
{
    size_t at = 0;

    while (at < n && !p->stopped && !p->broken)
        at += feed_text(p, bytes + at, n - at);
    p->read += n;
    if (p->read > p->spec.read_max)
        p->stopped = true;
    return !p->stopped && !p->broken;
}

DiffPage *
diff_parser_end(DiffParser *p, bool stopped, GError **error)
{
    bool whole = p->text->len == 0 && (p->state == IN_META || p->state == IN_PATCH) && p->old_left == 0 &&
                 p->new_left == 0 && p->parts_left == 0;

    stopped |= p->stopped;
    if (!stopped && p->state == IN_PATCH && p->file != NULL && whole)
        p->file->counted = true;
    if (!stopped && p->spec.patches)
        whole &= p->next_file == p->page->files->len;
    if (p->broken || (!whole && !stopped) || (stopped && !diff_parser_is_listed(p))) {
        err_set(error, ERR_INTERNAL, "git's list of changes is none");
        return NULL;
    }
    return g_steal_pointer(&p->page);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/contents-parse.h"

#include <string.h>

enum { MODE_DIGITS = 6 };

bool
tree_mode_kind(guint mode, EntryKind *ret_kind)
{
    switch (mode & 0170000) {
    case 0100000:
        *ret_kind = (mode & 0111) != 0 ? ENTRY_PROGRAM : ENTRY_FILE;
        return true;
    case TREE_MODE_LINK:
        *ret_kind = ENTRY_LINK;
        return true;
    case TREE_MODE_FOLDER:
        *ret_kind = ENTRY_FOLDER;
        return true;
    case TREE_MODE_SUBMODULE:
        *ret_kind = ENTRY_SUBMODULE;
        return true;
    default:
        return false;
    }
}

static bool
parse_mode(const char *text, guint *ret_mode)
{
    guint64 mode;

    if (strlen(text) != MODE_DIGITS || !g_ascii_string_to_unsigned(text, 8, 0, 0177777, &mode, NULL))
        return false;
    *ret_mode = (guint)mode;
    return true;
}

/* The blanks in front of a size make columns of it; "-" is of what has none. */
static bool
parse_size(const char *text, gint64 *ret_size)
{
    text += strspn(text, " ");
    *ret_size = -1;
    return strcmp(text, "-") == 0 || g_ascii_string_to_signed(text, 10, 0, G_MAXINT64, ret_size, NULL);
}

TreeEntry *
tree_entry_parse(const char *record, const char *below)
{
    const char *tab = strchr(record, '\t');
    g_autofree char *head = tab != NULL ? g_strndup(record, (size_t)(tab - record)) : g_strdup("");
    g_auto(GStrv) words = g_strsplit(head, " ", 4);
    g_autoptr(TreeEntry) entry = g_new0(TreeEntry, 1);

    if (g_strv_length(words) != 4 || tab[1] == '\0' || !parse_mode(words[0], &entry->mode) ||
        !tree_mode_kind(entry->mode, &entry->kind) || !git_oid_is_valid(words[2]) ||
        !parse_size(words[3], &entry->size))
        return NULL;
    bool has_size = entry->kind != ENTRY_FOLDER && entry->kind != ENTRY_SUBMODULE;

    if (has_size != (entry->size >= 0))
        return NULL;
    g_strlcpy(entry->oid, words[2], sizeof entry->oid);
    entry->path = g_strconcat(below, below[0] != '\0' ? "/" : "", tab + 1, NULL);
    return g_steal_pointer(&entry);
}

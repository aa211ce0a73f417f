/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/tree-edit.h"

#include <string.h>

#include "base/err.h"
#include "forge/batch.h"
#include "forge/contents-parse.h"
#include "forge/contents.h"
#include "forge/object-write.h"

enum { SHA1_BYTES = GIT_OID_LEN / 2, MODE_DIGITS_MAX = 6 };

typedef struct Node Node;

typedef struct Entry {
    guint mode;
    char oid[GIT_OID_LEN + 1];
    Node *folder; /* of a folder that was read; NULL: as `oid` says */
    char name[];
} Entry;

struct Node {
    GHashTable *entries; /* name -> Entry */
};

struct TreeEditor {
    GitRepo *repo;
    char *tree; /* NULL: empty */
    Node *top;  /* NULL: not read yet */
    size_t room;
    guint n_folders;   /* read or made */
    GPtrArray *kept;   /* of the next */
    GHashTable *ahead; /* oid -> BatchObject: read before they are needed */
};

/* ---- nodes ---- */

static void node_free(Node *node);

static void
entry_free(gpointer data)
{
    Entry *entry = data;

    node_free(entry->folder);
    g_free(entry);
}

static Node *
node_new(void)
{
    Node *node = g_new0(Node, 1);

    node->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    return node;
}

static void
node_free(Node *node)
{
    if (node == NULL)
        return;
    g_hash_table_unref(node->entries);
    g_free(node);
}

static Entry *
node_set(Node *node, const char *name, size_t n, guint mode)
{
    Entry *entry = g_malloc0(sizeof *entry + n + 1);

    memcpy(entry->name, name, n);
    entry->mode = mode;
    g_hash_table_replace(node->entries, entry->name, entry);
    return entry;
}

/* ---- as git writes them ---- */

static void
oid_from_bytes(const guint8 *bytes, char ret_oid[GIT_OID_LEN + 1])
{
    for (guint i = 0; i < SHA1_BYTES; i++)
        g_snprintf(ret_oid + i * 2, 3, "%02x", bytes[i]);
}

/* "MODE NAME\0" and the 20 bytes of a name; false: it is none. */
static bool
parse_entry(Node *node, const guint8 **at, const guint8 *end)
{
    const guint8 *space = memchr(*at, ' ', (size_t)MIN(end - *at, MODE_DIGITS_MAX + 1));
    const guint8 *nul = space != NULL ? memchr(space, '\0', (size_t)(end - space)) : NULL;

    if (nul == NULL || end - nul - 1 < SHA1_BYTES || nul == space + 1)
        return false;
    guint mode = (guint)g_ascii_strtoull((const char *)*at, NULL, 8);
    Entry *entry = node_set(node, (const char *)space + 1, (size_t)(nul - space - 1), mode);

    oid_from_bytes(nul + 1, entry->oid);
    *at = nul + 1 + SHA1_BYTES;
    return true;
}

static Node *
node_parse(const GByteArray *bytes)
{
    Node *node = node_new();
    const guint8 *at = bytes->data, *end = at + bytes->len;

    while (at < end) {
        if (!parse_entry(node, &at, end)) {
            node_free(node);
            return NULL;
        }
    }
    return node;
}

/* git's order: a folder's name is compared as if a slash stood behind it. */
static int
compare_entries(gconstpointer a, gconstpointer b)
{
    const Entry *x = *(Entry *const *)a, *y = *(Entry *const *)b;
    size_t nx = strlen(x->name), ny = strlen(y->name), n = MIN(nx, ny);
    int order = memcmp(x->name, y->name, n);
    guchar cx = (guchar)x->name[n], cy = (guchar)y->name[n];

    if (order != 0)
        return order;
    if (cx == '\0' && x->mode == TREE_MODE_FOLDER)
        cx = '/';
    if (cy == '\0' && y->mode == TREE_MODE_FOLDER)
        cy = '/';
    return cx - cy;
}

static void
put_oid(GString *text, const char *oid)
{
    for (guint i = 0; i < GIT_OID_LEN; i += 2)
        g_string_append_c(text, (char)(g_ascii_xdigit_value(oid[i]) << 4 | g_ascii_xdigit_value(oid[i + 1])));
}

static GString *
node_format(const Node *node)
{
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    GString *text = g_string_new(NULL);
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, node->entries);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_ptr_array_add(sorted, value);
    g_ptr_array_sort(sorted, compare_entries);
    for (guint i = 0; i < sorted->len; i++) {
        const Entry *entry = sorted->pdata[i];

        g_string_append_printf(text, "%o %s", entry->mode, entry->name);
        g_string_append_c(text, '\0');
        put_oid(text, entry->oid);
    }
    return text;
}

/* ---- reading ---- */

static Node *
node_read(TreeEditor *editor, const char *name, GError **error)
{
    const char *const names[] = {name};
    const BatchObject *object = g_hash_table_lookup(editor->ahead, name);
    g_autoptr(GPtrArray) objects = object == NULL
                                       ? batch_read(editor->repo, names, 1, editor->room, editor->room, error)
                                       : NULL;
    Node *node = NULL;

    if (object == NULL && objects == NULL)
        return NULL;
    object = object != NULL ? object : objects->pdata[0];

    if (object->oid[0] == '\0' || strcmp(object->type, "tree") != 0)
        err_set(error, ERR_NOT_FOUND, "there is no tree %s", name);
    else if (object->bytes == NULL)
        err_set(error, ERR_LIMIT, "these folders have more than %d bytes", TREE_EDIT_BYTES_MAX);
    else if ((node = node_parse(object->bytes)) == NULL)
        err_set(error, ERR_INTERNAL, "%s is no tree that can be read", name);
    else
        editor->room -= object->bytes->len;
    return node;
}

/* "TREE:folder" of each that is not among `names` yet. */
static void
add_folders(const TreeEditor *editor, const char *path, GHashTable *names)
{
    if (!contents_path_is_valid(path, NULL) || strpbrk(path, "\n\r") != NULL)
        return;
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        if (g_hash_table_size(names) == TREE_EDIT_FOLDERS_MAX)
            return;
        g_hash_table_add(names, g_strdup_printf("%s:%.*s", editor->tree, (int)(slash - path), path));
    }
}

void
tree_editor_read_ahead(TreeEditor *editor, const GPtrArray *paths)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; editor->tree != NULL && i < paths->len; i++)
        add_folders(editor, paths->pdata[i], names);
    guint n = 0;
    g_autofree gpointer *list = g_hash_table_get_keys_as_array(names, &n);
    g_autoptr(GPtrArray) objects = n > 0 ? batch_read(editor->repo, (const char *const *)list, n,
                                                      editor->room, editor->room, NULL)
                                         : NULL;

    for (guint i = 0; objects != NULL && i < objects->len; i++) {
        BatchObject *object = objects->pdata[i];

        if (object->bytes != NULL && strcmp(object->type, "tree") == 0)
            g_hash_table_insert(editor->ahead, object->oid, object);
    }
    editor->kept = g_steal_pointer(&objects);
}

static bool
read_top(TreeEditor *editor, GError **error)
{
    if (editor->top != NULL)
        return true;
    if (editor->tree == NULL) {
        editor->top = node_new();
        return true;
    }
    g_autofree char *name = g_strconcat(editor->tree, "^{tree}", NULL);

    editor->top = node_read(editor, name, error);
    return editor->top != NULL;
}

/* ---- editing ---- */

/* Beyond what git itself refuses when it is written: what would end a line. */
static bool
split_path(const char *path, char ***ret_parts, GError **error)
{
    if (path[0] == '\0' || !contents_path_is_valid(path, NULL))
        return err_set(error, ERR_INVALID, "'%s' is no path of a file", path);
    for (const char *p = path; *p != '\0'; p++) {
        if (g_ascii_iscntrl(*p))
            return err_set(error, ERR_INVALID, "a path has no control characters");
    }
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);

    if (g_strv_length(parts) > TREE_EDIT_DEPTH_MAX)
        return err_set(error, ERR_INVALID, "a path has at most %d parts", TREE_EDIT_DEPTH_MAX);
    *ret_parts = g_steal_pointer(&parts);
    return true;
}

/* Each is read by a child of its own, or written as an object of its own. */
static bool
count_folder(TreeEditor *editor, GError **error)
{
    return ++editor->n_folders <= TREE_EDIT_FOLDERS_MAX ||
           err_set(
               error, ERR_INVALID,
               "these files are in more than %d folders: make the tree in several calls, each with the one "
               "before as base_tree",
               TREE_EDIT_FOLDERS_MAX);
}

/* The folder that is in `node` under that name; made where `make` says so. */
static Node *
enter(TreeEditor *editor, Node *node, const char *name, bool make, GError **error)
{
    Entry *entry = g_hash_table_lookup(node->entries, name);

    if (entry == NULL && !make) {
        err_set(error, ERR_NOT_FOUND, "there is no '%s'", name);
        return NULL;
    }
    if ((entry == NULL || entry->folder == NULL) && !count_folder(editor, error))
        return NULL;
    if (entry == NULL) {
        entry = node_set(node, name, strlen(name), TREE_MODE_FOLDER);
        entry->folder = node_new();
    }
    if (entry->mode != TREE_MODE_FOLDER) {
        err_set(error, ERR_INVALID, "'%s' is no folder", name);
        return NULL;
    }
    if (entry->folder == NULL)
        entry->folder = node_read(editor, entry->oid, error);
    return entry->folder;
}

bool
tree_editor_put(TreeEditor *editor, const char *path, guint mode, const char *oid, GError **error)
{
    g_auto(GStrv) parts = NULL;

    if (!split_path(path, &parts, error) || !read_top(editor, error))
        return false;
    Node *node = editor->top;
    guint i = 0;

    for (; parts[i + 1] != NULL && node != NULL; i++)
        node = enter(editor, node, parts[i], true, error);
    if (node == NULL)
        return false;
    const Entry *old = g_hash_table_lookup(node->entries, parts[i]);

    if (old != NULL && old->mode == TREE_MODE_FOLDER && mode != TREE_MODE_FOLDER)
        return err_set(error, ERR_INVALID, "'%s' is a folder", path);
    Entry *entry = node_set(node, parts[i], strlen(parts[i]), mode);

    g_strlcpy(entry->oid, oid, sizeof entry->oid);
    return true;
}

static bool
remove_below(TreeEditor *editor, Node *node, char **parts, GError **error)
{
    Entry *entry = g_hash_table_lookup(node->entries, parts[0]);

    if (parts[1] == NULL) {
        if (entry == NULL)
            return err_set(error, ERR_NOT_FOUND, "there is no '%s'", parts[0]);
        if (entry->mode == TREE_MODE_FOLDER)
            return err_set(error, ERR_INVALID, "'%s' is a folder", parts[0]);
        g_hash_table_remove(node->entries, parts[0]);
        return true;
    }
    Node *folder = enter(editor, node, parts[0], false, error);

    if (folder == NULL || !remove_below(editor, folder, parts + 1, error))
        return false;
    if (g_hash_table_size(folder->entries) == 0)
        g_hash_table_remove(node->entries, parts[0]);
    return true;
}

bool
tree_editor_remove(TreeEditor *editor, const char *path, GError **error)
{
    g_auto(GStrv) parts = NULL;

    return split_path(path, &parts, error) && read_top(editor, error) &&
           remove_below(editor, editor->top, parts, error);
}

/* ---- the end ---- */

static void
node_write(Node *node, GPtrArray *objects, char ret_oid[GIT_OID_LEN + 1])
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, node->entries);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Entry *entry = value;

        if (entry->folder != NULL)
            node_write(entry->folder, objects, entry->oid);
    }
    NewObject *object = new_object_make(OBJECT_TREE, node_format(node));

    g_strlcpy(ret_oid, object->oid, GIT_OID_LEN + 1);
    g_ptr_array_add(objects, object);
}

bool
tree_editor_end(TreeEditor *editor, GPtrArray *objects, char ret_oid[GIT_OID_LEN + 1], GError **error)
{
    if (!read_top(editor, error))
        return false;
    node_write(editor->top, objects, ret_oid);
    return true;
}

TreeEditor *
tree_editor_new(GitRepo *repo, const char *tree)
{
    TreeEditor *editor = g_new0(TreeEditor, 1);

    *editor = (TreeEditor){.repo = git_repo_ref(repo),
                           .tree = g_strdup(tree),
                           .room = TREE_EDIT_BYTES_MAX,
                           .ahead = g_hash_table_new(g_str_hash, g_str_equal)};
    return editor;
}

void
tree_editor_free(TreeEditor *editor)
{
    if (editor == NULL)
        return;
    node_free(editor->top);
    g_hash_table_unref(editor->ahead);
    if (editor->kept != NULL)
        g_ptr_array_unref(editor->kept);
    git_repo_unref(editor->repo);
    g_free(editor->tree);
    g_free(editor);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* From a URL.
 *
 * What a mirror's upstream has is fetched to refs/upstream, so that boxes' branches live beside it
 * in refs/heads; refs/mirrored says what was last put there.  A branch that is still as it was put
 * follows its upstream wherever that goes; one that has commits of its own is moved only forward.
 * Each move names the value that was seen, so a push at the same time is never lost. */
#include <glib/gstdio.h>
#include <string.h>

#include "base/err.h"
#include "forge/bring.h"

enum { MIRROR_TRIES = 3, HEAD_LIST_MAX = 64 << 10 };

/* ---- asking the other side ---- */

static GPtrArray *
fsck_settings(void)
{
    GPtrArray *settings = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) ignored = g_strsplit(bring_fsck, ",", -1);

    for (guint i = 0; ignored[i] != NULL; i++)
        g_ptr_array_add(settings, g_strconcat("fetch.fsck.", ignored[i], NULL));
    g_ptr_array_add(settings, NULL);
    return settings;
}

/* The kernel ends whoever writes more than it may, and git does not say so: the file tells.  It is of no
 * use, and nobody else's: fetches come one after the other, and pushes write in folders of their own. */
static bool
drop_full(GitRepo *git, const Bring *b)
{
    g_autofree char *folder = g_build_filename(git_repo_path(git), "objects", "pack", NULL);
    g_autoptr(GDir) dir = b->size_max > 0 ? g_dir_open(folder, 0, NULL) : NULL;
    bool is = false;

    for (const char *name; dir != NULL && !is && (name = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        GStatBuf st;

        is = g_str_has_prefix(name, "tmp_pack_") && g_lstat(path, &st) == 0 &&
             (guint64)st.st_size >= b->size_max && g_unlink(path) == 0;
    }
    return is;
}

/* What git says where it was not let go on. */
static bool
judge(GitRepo *git, const Bring *b, GError *failed, GError **error)
{
    g_autoptr(GError) cause = failed;

    if (drop_full(git, b))
        return bring_too_big(b, error);
    if (strstr(cause->message, "dumb http transport") != NULL)
        return err_set(error, ERR_INVALID,
                       "the server there speaks git's old \"dumb\" protocol, which nothing checks: it is "
                       "refused");
    g_propagate_error(error, g_steal_pointer(&cause));
    return bring_failed(b->credentials, error);
}

static bool
run_remote(GitRepo *git, Bring *b, const char *const *args, GByteArray **ret_out, GError **error)
{
    g_autoptr(GPtrArray) settings = fsck_settings();
    g_autofree char *config = bring_config(b->credentials);
    GitCall call = {.access = GIT_REMOTE,
                    .args = args,
                    .settings = (const char *const *)settings->pdata,
                    .config = config,
                    .output_max = HEAD_LIST_MAX,
                    .timeout_ms = BRING_TIMEOUT_MS,
                    .progress = bring_progress,
                    .ctx = b,
                    .cancel = b->cancel,
                    .file_max = b->size_max};
    GError *failed = NULL;

    return git_run(git, &call, ret_out, &failed) || judge(git, b, failed, error);
}

/* Where the other side's HEAD points to; `*ret_head` NULL: it does not say. */
static bool
ask_head(GitRepo *git, Bring *b, char **ret_head, GError **error)
{
    g_autoptr(GByteArray) out = NULL;
    static const char start[] = "ref: refs/heads/";

    if (!run_remote(git, b, GIT_ARGS("ls-remote", "--symref", "--", b->source, "HEAD"), &out, error))
        return false;
    const char *text = (const char *)out->data;

    if (g_str_has_prefix(text, start)) {
        text += strlen(start);
        *ret_head = g_strndup(text, strcspn(text, "\t\n"));
    }
    return true;
}

/* All of the history is asked for by its depth: that is where git itself says no to servers of its old
 * "dumb" protocol, whose files it would take one by one, with no check of objects and no limit of packs. */
static const char whole_depth[] = "--depth=2147483647";

/* Asked for by depth, git takes a history that is cut off there, and notes where: we want none such. */
static bool
refuse_shallow(GitRepo *git, const Bring *b, GError **error)
{
    g_autofree char *note = g_build_filename(git_repo_path(git), "shallow", NULL);
    g_autoptr(GHashTable) refs = NULL;
    g_autoptr(GString) lines = g_string_new(NULL);
    GHashTableIter iter;
    gpointer name;

    if (!g_file_test(note, G_FILE_TEST_EXISTS))
        return true;
    if (!bring_list_refs(git, b->mirror ? "refs/upstream/" : "refs/", b->cancel, &refs, error))
        return false;
    g_hash_table_iter_init(&iter, refs);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        g_string_append_printf(lines, "delete %s\n", (char *)name);
    GitCall drop = {.access = GIT_WRITE,
                    .args = GIT_ARGS("update-ref", "--stdin"),
                    .input = lines->str,
                    .input_len = lines->len};

    if (!git_run(git, &drop, NULL, error))
        return false;
    (void)g_unlink(note);
    return err_set(error, ERR_INVALID, "the repository there is a shallow clone: its history is not whole");
}

static bool
fetch(GitRepo *git, Bring *b, GError **error)
{
    const char *heads = b->mirror ? "+refs/heads/*:refs/upstream/heads/*" : "+refs/heads/*:refs/heads/*";
    const char *tags = b->mirror ? "+refs/tags/*:refs/upstream/tags/*" : "+refs/tags/*:refs/tags/*";

    return run_remote(git, b,
                      GIT_ARGS("fetch", "--progress", "--no-auto-maintenance", "--prune", "--no-tags",
                               whole_depth, "--no-write-fetch-head", "--", b->source, heads, tags),
                      NULL, error) &&
           refuse_shallow(git, b, error);
}

/* ---- moving refs ---- */

typedef struct Moves {
    GitRepo *git;
    Bring *bring;
    GHashTable *upstream, *mirrored, *local; /* "heads/main" -> oid */
    GString *deletes, *updates;
    guint moved, removed, left_out, kept_back;
} Moves;

static void
moves_clear(Moves *m)
{
    g_clear_pointer(&m->upstream, g_hash_table_unref);
    g_clear_pointer(&m->mirrored, g_hash_table_unref);
    g_clear_pointer(&m->local, g_hash_table_unref);
    g_string_free(m->deletes, TRUE);
    g_string_free(m->updates, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Moves, moves_clear)

static const char *
short_name(const char *name)
{
    return strchr(name, '/') + 1;
}

static bool
is_ancestor(Moves *m, const char *old, const char *new)
{
    int code = 1;
    GitCall call = {.access = GIT_READ,
                    .args = GIT_ARGS("merge-base", "--is-ancestor", old, new),
                    .cancel = m->bring->cancel};

    return git_ask(m->git, &call, &code, NULL, NULL) && code == 0;
}

static void
follow(Moves *m, const char *name, const char *up)
{
    const char *put = g_hash_table_lookup(m->mirrored, name);
    const char *here = g_hash_table_lookup(m->local, name);

    if (!git_branch_is_valid(short_name(name), NULL)) {
        m->left_out++;
        return;
    }
    if (g_strcmp0(here, up) != 0) {
        if (here == NULL && put != NULL)
            return; /* taken away here */
        if (here != NULL && g_strcmp0(here, put) != 0 && !is_ancestor(m, here, up)) {
            m->kept_back++;
            return;
        }
        g_string_append_printf(m->updates, "update refs/%s %s %s\n", name, up,
                               here != NULL ? here : git_oid_zero);
        m->moved++;
    }
    if (g_strcmp0(put, up) != 0)
        g_string_append_printf(m->updates, "update refs/mirrored/%s %s\n", name, up);
}

/* The default branch stays: a repository without it is of no use. */
static void
forget(Moves *m, const char *name, const char *put)
{
    const char *here = g_hash_table_lookup(m->local, name);
    g_autofree char *head = g_strconcat("heads/", m->bring->branch, NULL);

    if (g_strcmp0(here, put) == 0 && strcmp(name, head) != 0) {
        g_string_append_printf(m->deletes, "delete refs/%s %s\n", name, put);
        m->removed++;
    }
    g_string_append_printf(m->deletes, "delete refs/mirrored/%s\n", name);
}

static void
plan_moves(Moves *m)
{
    GHashTableIter iter;
    gpointer name, oid;

    g_hash_table_iter_init(&iter, m->upstream);
    while (g_hash_table_iter_next(&iter, &name, &oid))
        follow(m, name, oid);
    g_hash_table_iter_init(&iter, m->mirrored);
    while (g_hash_table_iter_next(&iter, &name, &oid)) {
        if (!g_hash_table_contains(m->upstream, name))
            forget(m, name, oid);
    }
}

/* The refs below `prefix`, by what stands behind it. */
static bool
add_refs(Moves *m, const char *prefix, size_t cut, GHashTable *to, GError **error)
{
    g_autoptr(GHashTable) refs = NULL;
    GHashTableIter iter;
    gpointer name, oid;

    if (!bring_list_refs(m->git, prefix, m->bring->cancel, &refs, error))
        return false;
    g_hash_table_iter_init(&iter, refs);
    while (g_hash_table_iter_next(&iter, &name, &oid))
        g_hash_table_insert(to, g_strdup((char *)name + cut), g_strdup(oid));
    return true;
}

static bool
list_all(Moves *m, GError **error)
{
    m->upstream = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    m->mirrored = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    m->local = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return add_refs(m, "refs/upstream/", strlen("refs/upstream/"), m->upstream, error) &&
           add_refs(m, "refs/mirrored/", strlen("refs/mirrored/"), m->mirrored, error) &&
           add_refs(m, "refs/heads/", strlen("refs/"), m->local, error) &&
           add_refs(m, "refs/tags/", strlen("refs/"), m->local, error);
}

static bool
update_refs(Moves *m, GString *lines, GError **error)
{
    GitCall call = {.access = GIT_WRITE,
                    .args = GIT_ARGS("update-ref", "--stdin"),
                    .input = lines->str,
                    .input_len = lines->len,
                    .cancel = m->bring->cancel};

    return lines->len == 0 || git_run(m->git, &call, NULL, error);
}

/* What goes away goes first: a branch `a` has to be gone before there can be an `a/b`. */
static bool
move_once(GitRepo *git, Bring *b, GError **error)
{
    g_auto(Moves) m = {.git = git, .bring = b, .deletes = g_string_new(NULL), .updates = g_string_new(NULL)};

    if (!list_all(&m, error))
        return false;
    plan_moves(&m);
    if (!update_refs(&m, m.deletes, error) || !update_refs(&m, m.updates, error))
        return false;
    b->moved = m.moved;
    b->removed = m.removed;
    b->left_out = m.left_out;
    b->kept_back = m.kept_back;
    return true;
}

static bool
move_mirrored(GitRepo *git, Bring *b, GError **error)
{
    for (guint i = 1; i < MIRROR_TRIES; i++) {
        if (move_once(git, b, NULL))
            return true;
    }
    return move_once(git, b, error);
}

/* A name that is not allowed here could not be asked for either. */
static bool
drop_odd_names(GitRepo *git, Bring *b, GError **error)
{
    g_auto(Moves) m = {.git = git, .bring = b, .deletes = g_string_new(NULL), .updates = g_string_new(NULL)};
    GHashTableIter iter;
    gpointer name, oid;

    if (!list_all(&m, error))
        return false;
    g_hash_table_iter_init(&iter, m.local);
    while (g_hash_table_iter_next(&iter, &name, &oid)) {
        if (git_branch_is_valid(short_name(name), NULL)) {
            b->moved++;
        } else {
            g_string_append_printf(m.deletes, "delete refs/%s\n", (char *)name);
            b->left_out++;
        }
    }
    return update_refs(&m, m.deletes, error);
}

bool
bring_from_url(GitRepo *git, Bring *bring, GError **error)
{
    g_autofree char *head = NULL;

    if (!ask_head(git, bring, &head, error) || !fetch(git, bring, error))
        return false;
    if (!(bring->mirror ? move_mirrored : drop_odd_names)(git, bring, error))
        return false;
    return bring_set_head(git, bring, head, error);
}

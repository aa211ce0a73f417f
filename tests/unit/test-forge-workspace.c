/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <string.h>

#include "base/err.h"
#include "forge/diff.h"
#include "forge/identity-key.h"
#include "forge/workspace-private.h"

static const struct {
    BranchName name;
    const char *branch; /* NULL: refused */
} names[] = {
    {{.id = "42"}, "task-42"},
    {{.id = "42", .role = "coder", .n = 3}, "task-42--coder-3"},
    {{.id = "7", .slug = "fix-it", .pattern = WORKSPACE_FEATURE_BRANCH}, "feature/7-fix-it"},
    {{.id = "7", .pattern = "x/{id}/{n}", .n = 2}, "x/7/2"},
    {{.id = "7", .pattern = "plain"}, "plain"},
    {{.id = "7", .pattern = "feature/{id}-{slug}"}, NULL},
    {{.id = "7", .pattern = "{what}"}, NULL},
    {{.id = "7", .pattern = "a{id"}, NULL},
    {{.id = "../main"}, NULL},
    {{.id = "a b"}, NULL},
    {{.id = "x", .pattern = "--{id}"}, NULL},
    {{.id = "x\n"}, NULL},
    {{.id = "x.lock"}, NULL},
    {{0}, NULL},
};

static void
test_names(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *branch = workspace_branch_name(&names[i].name, &error);

        g_test_message("%zu", i);
        g_assert_cmpstr(branch, ==, names[i].branch);
        if (branch == NULL)
            g_assert_cmpint(err_kind(error), ==, ERR_INVALID);
    }
}

static const struct {
    const char *title, *slug;
} slugs[] = {
    {"Fix the login", "fix-the-login"},
    {"  -- A/b: c! ", "a-b-c"},
    {"", "work"},
    {"\xc3\xbc\xc3\xa4", "work"},
    {"0123456789012345678901234567890123456789012345", "0123456789012345678901234567890123456789"},
};

static void
test_slugs(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(slugs); i++) {
        g_autofree char *slug = workspace_slug(slugs[i].title);

        g_assert_cmpstr(slug, ==, slugs[i].slug);
    }
}

typedef struct Change {
    const char *path, *old_path;
    DiffStatus status;
    guint additions, deletions;
    bool counted, binary;
} Change;

static const struct {
    const char *text;
    guint more;
    Change files[4];
} changes[] = {
    {" 3 files changed, 2 insertions(+), 1 deletion(-)\nM\ta.c\nA\tb/c d\nR090\told\tnew\n"
     "1\t1\ta.c\n1\t0\tb/c d\n0\t0\told => new\n",
     0,
     {{"a.c", NULL, DIFF_MODIFIED, 1, 1, true},
      {"b/c d", NULL, DIFF_ADDED, 1, 0, true},
      {"new", "old", DIFF_RENAMED}}},
    {" 2 files changed, 0 insertions(+), 0 deletions(-)\nD\t\"q\\t\"\nT\tl\n-\t-\tl\n",
     0,
     {{"q\\t", NULL, DIFF_REMOVED}, {"l", NULL, DIFF_TYPE_CHANGED, .binary = true}}},
    /* Cut in the middle of a name, and of a count. */
    {" 9 files changed\nM\ta\nM\tbcd", 8, {{"a", NULL, DIFF_MODIFIED}}},
    {" 1 file changed, 7 insertions(+)\nM\ta\n7\t", 0, {{"a", NULL, DIFF_MODIFIED}}},
    /* What no git says. */
    {"M\ta\nX\tb\nR\tb\nM\nM\tb\tc\n\n-\n1\t2\n1\t2\tnone\nA\tn\n99999999999\t1\tn\n-1\t1\tn\n",
     0,
     {{"n", NULL, DIFF_ADDED}}},
    {"", 0, {{0}}},
};

static void
test_changes(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(changes); i++) {
        guint more, n = 0;
        g_autoptr(GPtrArray) files = workspace_changes_parse(changes[i].text, &more);

        g_test_message("%zu", i);
        for (const Change *c = changes[i].files; c->path != NULL; c++, n++) {
            g_assert_cmpuint(files->len, >, n);
            const DiffFile *f = files->pdata[n];

            g_assert_cmpstr(f->path, ==, c->path);
            g_assert_cmpstr(f->old_path, ==, c->old_path);
            g_assert_cmpint(f->status, ==, c->status);
            g_assert_cmpuint(f->additions, ==, c->additions);
            g_assert_cmpuint(f->deletions, ==, c->deletions);
            g_assert_cmpint(f->counted, ==, c->counted);
            g_assert_cmpint(f->binary, ==, c->binary);
        }
        g_assert_cmpuint(files->len, ==, n);
        g_assert_cmpuint(more, ==, changes[i].more);
    }
}

static void
test_many_changes(void)
{
    g_autoptr(GString) text = g_string_new(" 1000 files changed, 1000 insertions(+)\n");
    guint more;

    for (guint i = 0; i < 1000; i++)
        g_string_append_printf(text, "A\tf%u\n", i);
    g_autoptr(GPtrArray) files = workspace_changes_parse(text->str, &more);

    g_assert_cmpuint(files->len, ==, 200);
    g_assert_cmpuint(more, ==, 800);
}

/* By the specification of the format: what is signed names the hash of the bytes, and their purpose. */
static void
test_signature(void)
{
    static const char text[] = "tree of something\n";
    static const char terms[] = "SSHSIG\0\0\0\3git\0\0\0\0\0\0\0\6sha512\0\0\0\x40";
    guint8 public_key[KEY_PUBLIC_LEN];
    guint8 secret[KEY_SECRET_LEN];
    guint8 message[sizeof terms - 1 + crypto_hash_sha512_BYTES];
    gsize n;

    key_make(public_key, secret);
    g_autofree char *armoured = key_sign(secret, text, strlen(text));
    g_auto(GStrv) lines = g_strsplit(armoured, "\n", -1);
    guint count = g_strv_length(lines);

    g_assert_cmpstr(lines[0], ==, "-----BEGIN SSH SIGNATURE-----");
    g_assert_cmpstr(lines[count - 2], ==, "-----END SSH SIGNATURE-----");
    g_clear_pointer(&lines[count - 1], g_free);
    g_clear_pointer(&lines[count - 2], g_free);
    g_autofree char *base64 = g_strjoinv("", lines + 1);
    g_autofree guint8 *blob = g_base64_decode(base64, &n);

    memcpy(message, terms, sizeof terms - 1);
    crypto_hash_sha512(message + sizeof terms - 1, (const guint8 *)text, strlen(text));
    g_assert_cmpint(n, >, crypto_sign_BYTES);
    g_assert_cmpint(
        crypto_sign_verify_detached(blob + n - crypto_sign_BYTES, message, sizeof message, public_key), ==,
        0);
}

int
main(int argc, char **argv)
{
    g_assert_cmpint(sodium_init(), >=, 0);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/workspace/names", test_names);
    g_test_add_func("/forge/workspace/slugs", test_slugs);
    g_test_add_func("/forge/workspace/changes", test_changes);
    g_test_add_func("/forge/workspace/many-changes", test_many_changes);
    g_test_add_func("/forge/identity/signature", test_signature);
    return g_test_run();
}

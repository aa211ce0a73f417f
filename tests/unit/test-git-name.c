/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/git.h"

static const struct {
    const char *name;
    bool valid;
} names[] = {
    {"main", true},
    {"task-7", true},
    {"task-7--coder-1", true},
    {"feature/12-add_login.page", true},
    {"a/b/c", true},
    {"A", true},
    {"heads", true},
    {"deadbeef", true},
    {"x.locks", true},
    {"", false},
    {"-", false},
    {"--mirror", false},
    {"--upload-pack=x", false},
    {"-f", false},
    {"a/-b", false},
    {"task/../main", false},
    {"a..b", false},
    {"..", false},
    {".", false},
    {".hidden", false},
    {"a/.hidden", false},
    {"a//b", false},
    {"/a", false},
    {"a/", false},
    {"a.", false},
    {"a./b", false},
    {"a.lock", false},
    {"a.lock/b", false},
    {"a b", false},
    {"a\tb", false},
    {"a\nb", false},
    {"a\x7f", false},
    {"a\x1b[31m", false},
    {"a~1", false},
    {"a^", false},
    {"a:b", false},
    {"a?", false},
    {"a*", false},
    {"a[", false},
    {"a\\b", false},
    {"a@{1}", false},
    {"@", false},
    {"caf\xc3\xa9", false},
    {"cafe\xcc\x81", false},
    {"\xef\xbc\x8dmirror", false},
    {"HEAD", false},
    {"head", false},
    {"refs/heads/main", false},
    {"REFS/heads/main", false},
    {"0123456789abcdef0123456789abcdef01234567", false},
    {"0123456789ABCDEF0123456789abcdef01234567", false},
};

static void
test_branches(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        bool valid = git_branch_is_valid(names[i].name, &error);

        if (valid != names[i].valid)
            g_error("'%s' is %s", names[i].name, valid ? "allowed" : error->message);
        if (!valid)
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        /* The message is for terminals. */
        for (const char *p = valid ? "" : error->message; *p != '\0'; p++)
            g_assert_true(g_ascii_isprint(*p));
    }
}

static void
test_length(void)
{
    g_autofree char *fits = g_strnfill(200, 'a');
    g_autofree char *longer = g_strnfill(201, 'a');

    g_assert_true(git_branch_is_valid(fits, NULL));
    g_assert_false(git_branch_is_valid(longer, NULL));
}

static const struct {
    const char *oid;
    bool valid;
} oids[] = {
    {"0123456789abcdef0123456789abcdef01234567", true},
    {"0123456789ABCDEF0123456789abcdef01234567", false},
    {"0123456789abcdef0123456789abcdef0123456", false},
    {"0123456789abcdef0123456789abcdef012345678", false},
    {"0123456789abcdef0123456789abcdef0123456 ", false},
    {"", false},
    {"HEAD", false},
};

static void
test_oids(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(oids); i++)
        g_assert_cmpint(git_oid_is_valid(oids[i].oid), ==, oids[i].valid);
    g_assert_true(git_oid_is_valid(git_oid_zero));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/git/name/branches", test_branches);
    g_test_add_func("/git/name/length", test_length);
    g_test_add_func("/git/name/oids", test_oids);
    return g_test_run();
}

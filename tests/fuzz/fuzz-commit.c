/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/commit.h"
#include "forge/object-write.h"
#include "fuzz.h"

/* The input is a commit's text.  What is read of it can be shown, and the text that says the same of
 * another tree is read the same way. */

#define OID "0123456789012345678901234567890123456789"

static void
check_shown(const char *text)
{
    g_assert_true(g_utf8_validate(text, -1, NULL));
    for (const char *p = text; *p != '\0'; p++)
        g_assert_true((guchar)*p >= ' ' || *p == '\n' || *p == '\t');
}

static void
check_commit(const GitCommit *commit)
{
    g_assert_true(git_oid_is_valid(commit->tree));
    for (guint i = 0; commit->parents[i] != NULL; i++)
        g_assert_true(git_oid_is_valid(commit->parents[i]));
    check_shown(commit->author.name);
    check_shown(commit->author.email);
    check_shown(commit->committer.name);
    check_shown(commit->message);
    g_assert_cmpuint(strlen(commit->message), <=, COMMIT_MESSAGE_MAX);
    g_assert_cmpint(ABS(commit->author.zone_min), <=, 14 * 60);
    g_assert_cmpint(commit->author.time_s, >=, 0);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    const MergePerson person = {"Coop", "coop@example.com", 1, 0};
    size_t whole = cut == FUZZ_EACH_BYTE ? n : MIN(cut, n);
    g_autofree guint8 *exact = g_memdup2(data, MAX(whole, 1));
    g_autoptr(GError) error = NULL;
    g_autoptr(GitCommit) commit = git_commit_parse(OID, exact, whole, &error);

    g_assert_true((commit != NULL) == (error == NULL));
    if (commit == NULL)
        return;
    check_commit(commit);
    GString *text = commit_text_again(exact, whole, OID, OID, &person);

    if (text == NULL)
        return;
    g_autoptr(GitCommit) again = git_commit_parse(OID, (const guint8 *)text->str, text->len, NULL);

    g_assert_nonnull(again);
    g_assert_cmpstr(again->tree, ==, OID);
    g_assert_cmpstr(again->author.name, ==, commit->author.name);
    g_assert_cmpint(again->author.time_s, ==, commit->author.time_s);
    g_assert_cmpstr(again->committer.name, ==, "Coop");
    g_assert_false(again->is_signed);
    g_string_free(text, TRUE);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/message.h"

static void
test_rules(void)
{
    g_autofree char *long_subject = g_strnfill(200, 'x');
    g_autofree char *long_header = g_strconcat("feat: ", long_subject, NULL);
    g_autofree char *long_word = g_strnfill(MESSAGE_LINE_MAX + 1, 'y');
    g_autofree char *long_line = g_strconcat("feat: x\n\n", long_word, "\n", NULL);
    g_autofree char *long_text = g_strnfill(MESSAGE_MAX + 1, 'z');
    g_autofree char *long_trailer = g_strconcat("feat: x\n\nTask: ", long_subject, "x\n", NULL);
    g_autofree char *umlauts = g_strdup("feat: ");
    for (int i = 0; i < 94; i++) {
        char *more = g_strconcat(umlauts, "ä", NULL);

        g_free(umlauts);
        umlauts = more;
    }
    const struct {
        const char *text;
        MessageRule rule;
    } cases[] = {
        {"feat: x", MESSAGE_OK},
        {"feat: x\n", MESSAGE_OK},
        {"fix(a+b): x\n", MESSAGE_BAD_SCOPE},
        {"\n\nfix(a/b-c,d.e_f): x\n", MESSAGE_OK},
        {"fix!: x", MESSAGE_OK},
        {"fix(a)!: x", MESSAGE_OK},
        {"fix: x\n\nbody\nmore\n\nTask: 42\nAgent: ada\nRole: coder\n", MESSAGE_OK},
        {"fix: x\r\n\r\nbody\r\n", MESSAGE_OK},
        {umlauts, MESSAGE_OK},
        {"Merge branch 'main' into task-1", MESSAGE_OK},
        {"Merge pull request #7 from a/b\n\ntitle", MESSAGE_OK},
        {"Revert \"feat: x\"\n\nThis reverts commit 1.", MESSAGE_OK},
        {"revert: x", MESSAGE_OK},
        {"", MESSAGE_EMPTY},
        {" \n\t\n", MESSAGE_EMPTY},
        {long_text, MESSAGE_TOO_LONG},
        {"feat: \xff", MESSAGE_NOT_TEXT},
        {"feat: \x1b[31mred", MESSAGE_NOT_TEXT},
        {"feat: \xc2\x9b"
         "31m",
         MESSAGE_NOT_TEXT},
        {"feat: a\rb", MESSAGE_NOT_TEXT},
        {"Add a thing", MESSAGE_NO_TYPE},
        {": x", MESSAGE_NO_TYPE},
        {"(a): x", MESSAGE_NO_TYPE},
        {"feat(a: x", MESSAGE_NO_TYPE},
        {"feat x: y", MESSAGE_NO_TYPE},
        {"Merge everything", MESSAGE_NO_TYPE},
        {"fixup! feat: x", MESSAGE_NO_TYPE},
        {"feature: x", MESSAGE_BAD_TYPE},
        {"Feat: x", MESSAGE_BAD_TYPE},
        {"coder: x", MESSAGE_BAD_TYPE},
        {"feat(): x", MESSAGE_BAD_SCOPE},
        {"feat(a b): x", MESSAGE_BAD_SCOPE},
        {"feat(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa): x", MESSAGE_BAD_SCOPE},
        {"feat:x", MESSAGE_NO_SPACE},
        {"feat:", MESSAGE_NO_SUBJECT},
        {"feat: ", MESSAGE_NO_SUBJECT},
        {"feat:  x", MESSAGE_BAD_SUBJECT},
        {"feat: x.", MESSAGE_BAD_SUBJECT},
        {long_header, MESSAGE_LONG_HEADER},
        {"feat: x\nbody", MESSAGE_NO_BLANK},
        {"Merge branch 'x'\nbody", MESSAGE_NO_BLANK},
        {long_line, MESSAGE_LONG_LINE},
        {"feat: x\n\nTask: 1\nTask: 2\n", MESSAGE_BAD_TRAILER},
        {"feat: x\n\nAgent:\n", MESSAGE_BAD_TRAILER},
        {long_trailer, MESSAGE_BAD_TRAILER},
        {"feat: x\n\nTask: 1\nTask: 2\n\nTask: 3\n", MESSAGE_OK},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *text = cases[i].text;
        char why[MESSAGE_PROBLEM_MAX] = "";

        g_test_message("%.60s", text);
        g_assert_cmpint(message_parse(text, strlen(text), false, NULL), ==, cases[i].rule);
        message_explain(cases[i].rule, text, strlen(text), why, sizeof why);
        g_assert_true(g_str_has_suffix(why, "Role: coder\n"));
        g_assert_true(g_utf8_validate(why, -1, NULL));
    }
    g_assert_cmpint(message_parse("feat: a\0b", 9, false, NULL), ==, MESSAGE_NOT_TEXT);
}

static void
check_part(const char *text, MessagePart part, const char *want)
{
    g_autofree char *got = g_strndup(text + part.at, part.n);

    g_assert_cmpstr(got, ==, want);
}

static void
test_parts(void)
{
    const char *text =
        "# a comment\nfix(core)!: do it\n# another\n\nA body: of\ntwo lines\n\nTask: 7\nrole:  coder\n"
        "Agent: x y\n# ------------------------ >8 ------------------------\nfeat: y\nnot: this\n";
    Message m;

    g_assert_cmpint(message_parse(text, strlen(text), true, &m), ==, MESSAGE_OK);
    g_assert_cmpint(m.kind, ==, MESSAGE_PLAIN);
    g_assert_true(m.breaking);
    check_part(text, m.type, "fix");
    check_part(text, m.scope, "core");
    check_part(text, m.subject, "do it");
    check_part(text, m.task, "7");
    check_part(text, m.role, "coder");
    check_part(text, m.agent, "x y");
    g_assert_true(g_str_has_prefix(text + m.body.at, "A body"));
    const char *breaking = "fix: x\n\nBREAKING CHANGE: y\n";

    g_assert_cmpint(message_parse(breaking, strlen(breaking), false, &m), ==, MESSAGE_OK);
    g_assert_true(m.breaking);
}

static void
test_check(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(message_check("feat: x", 7, NULL));
    g_assert_false(message_check("Add x", 5, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_assert_nonnull(strstr(error->message, "found:   Add x\n"));
    g_assert_nonnull(strstr(error->message, "fix(parser): accept"));
}

/* ---- the writer ---- */

static DiffFile *
file_of(const char *spec)
{
    g_auto(GStrv) words = g_strsplit(spec, " ", 3);
    DiffFile *file = g_new0(DiffFile, 1);

    file->status = words[0][0] == 'A'   ? DIFF_ADDED
                   : words[0][0] == 'D' ? DIFF_REMOVED
                   : words[0][0] == 'R' ? DIFF_RENAMED
                                        : DIFF_MODIFIED;
    file->path = g_strdup(words[words[2] != NULL ? 2 : 1]);
    file->old_path = words[2] != NULL ? g_strdup(words[1]) : NULL;
    file->counted = true;
    file->additions = 3;
    return file;
}

static GPtrArray *
files_of(const char *list)
{
    GPtrArray *files = g_ptr_array_new_with_free_func((GDestroyNotify)diff_file_free);
    g_auto(GStrv) specs = g_strsplit(list, ";", -1);

    for (guint i = 0; specs[i] != NULL && specs[i][0] != '\0'; i++)
        g_ptr_array_add(files, file_of(specs[i]));
    return files;
}

static void
test_write(void)
{
    const struct {
        const char *files, *header;
        MessageHint hint;
        guint more;
    } cases[] = {
        {"A src/http/range.c", "feat(http): add range.c", {0}, 0},
        {"M src/http/range.c", "fix(http): change range.c", {0}, 0},
        {"R src/http/a.c src/http/b.c", "refactor(http): rename a.c to b.c", {0}, 0},
        {"R src/a/x.c src/b/x.c", "refactor(b): move x.c", {0}, 0},
        {"D src/http/range.c", "refactor(http): remove range.c", {0}, 0},
        {"M a.c;M b.c", "fix: change a.c and b.c", {0}, 0},
        {"A x/a.c;A x/b.c;A x/c.c", "feat(x): add a.c, b.c and 1 more", {0}, 0},
        {"A x/a.c;M x/b.c", "feat(x): change a.c and b.c", {0}, 100},
        {"M tests/unit/test-a.c", "test(unit): change test-a.c", {0}, 0},
        {"A pkg/foo_test.go", "test: add foo_test.go", {0}, 0},
        {"M README.md;M docs/a.md", "docs: change README.md and a.md", {0}, 0},
        {"M .github/workflows/ci.yml", "ci(workflows): change ci.yml", {0}, 0},
        {"M meson.build;M docs/a.md", "build: change meson.build and a.md", {0}, 0},
        {"M src/a.c", "perf: Be quick", {.type = "perf", .title = "Be quick."}, 0},
        {"M src/a.c", "fix: change a.c", {.type = "nonsense"}, 0},
        {"", "chore: change 0 files", {0}, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GPtrArray) files = files_of(cases[i].files);
        g_autofree char *text = message_write(files, cases[i].more, &cases[i].hint);
        g_autofree char *header = g_strndup(text, strcspn(text, "\n"));
        g_autoptr(GError) error = NULL;

        if (cases[i].more == 0)
            g_assert_cmpstr(header, ==, cases[i].header);
        else
            g_assert_nonnull(strstr(header, " and 100 more"));
        message_check(text, strlen(text), &error);
        g_assert_no_error(error);
    }
}

/* Whatever files are called, the message is a good one. */
static void
test_write_hostile(void)
{
    static const char *const parts[] = {"a",
                                        "..",
                                        ".",
                                        "/",
                                        "\n",
                                        "\x1b[0m",
                                        "\xff",
                                        "Task:",
                                        "ä",
                                        " ",
                                        "src/",
                                        "x.",
                                        "\xe2\x80\xae",
                                        "tests/",
                                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

    for (int n = 0; n < 300; n++) {
        g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func((GDestroyNotify)diff_file_free);
        g_autoptr(GString) title = g_string_new(NULL);
        int count = g_test_rand_int_range(0, 30);

        for (int i = 0; i < count; i++) {
            DiffFile *file = g_new0(DiffFile, 1);
            g_autoptr(GString) path = g_string_new(NULL);

            for (int j = g_test_rand_int_range(1, 6); j > 0; j--)
                g_string_append(path, parts[g_test_rand_int_range(0, G_N_ELEMENTS(parts))]);
            file->path = g_strdup(path->str);
            file->old_path = g_strdup(path->str);
            file->status = (DiffStatus)g_test_rand_int_range(0, DIFF_STATUS_MAX);
            g_ptr_array_add(files, file);
            g_string_append(title, path->str);
        }
        MessageHint hint = {
            .title = n % 2 != 0 ? title->str : NULL, .task = title->str, .role = "\x1b", .agent = "a\nb"};
        g_autofree char *text = message_write(files, (guint)n % 3, &hint);
        g_autoptr(GError) error = NULL;

        message_check(text, strlen(text), &error);
        g_assert_no_error(error);
        g_assert_cmpuint(strlen(text), <, 8192);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/message/rules", test_rules);
    g_test_add_func("/forge/message/parts", test_parts);
    g_test_add_func("/forge/message/check", test_check);
    g_test_add_func("/forge/message/write", test_write);
    g_test_add_func("/forge/message/write-hostile", test_write_hostile);
    return g_test_run();
}

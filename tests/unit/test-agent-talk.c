/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation: kept in a file, taken up again, made shorter. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/keep.h"
#include "agent/talk.h"
#include "base/tree.h"

static void
make_brief(Brief *ret_brief, const char *execution, const char *step)
{
    g_autofree char *text = g_strdup_printf(
        "{\"execution_id\": \"%s\", \"goal\": \"g\", \"role\": \"coder\", \"task\": {\"id\": \"t\"}, "
        "\"step\": {\"name\": \"%s\"}, \"model\": {\"name\": \"m\"}, \"workdir\": \"/\", "
        "\"limits\": {\"context_tokens\": 2000, \"output_tokens\": 1000}}",
        execution, step);

    g_assert_true(brief_read(ret_brief, json_decode(text, strlen(text), NULL), NULL));
}

/* One answer with calls of the tool `shell`, and `results` results. */
static void
add_turn(Talk *talk, guint calls, guint results, size_t bytes)
{
    g_auto(Answer) answer = {0};
    g_autofree char *filler = g_strnfill(bytes, 'x');
    g_autofree char *arguments = g_strdup_printf("{\"command\":\"%s\"}", filler);

    answer_init(&answer);
    g_string_assign(answer.text, "thinking");
    for (guint i = 0; i < calls; i++) {
        g_autofree char *id = g_strdup_printf("c%u", i);

        g_assert_true(answer_add_call(
            &answer, &(AnswerPiece){.index = i, .id = id, .name = "shell", .arguments = arguments}, NULL));
    }
    talk_add_answer(talk, &answer);
    for (guint i = 0; i < results; i++) {
        g_autofree char *id = g_strdup_printf("c%u", i);

        talk_add_result(talk, id, "shell", filler);
    }
}

static char *
encode(const Talk *talk)
{
    return json_encode(talk_messages(talk));
}

typedef struct Place {
    char *folder, *path;
} Place;

static void
place_init(Place *p)
{
    p->folder = g_dir_make_tmp("coop-talk-XXXXXX", NULL);
    p->path = g_build_filename(p->folder, ".coop", "talk.jsonl", NULL);
}

static void
place_clear(Place *p)
{
    g_assert_true(tree_remove(AT_FDCWD, p->folder, NULL));
    g_free(p->folder);
    g_free(p->path);
}

static void
test_go_on(void)
{
    static const struct {
        const char *execution, *step;
        TalkFound found;
        gint64 turns;
    } cases[] = {
        {"e1", "s", TALK_SAME, 2},
        {"e2", "s", TALK_ANOTHER, 0},
        {"e1", "other", TALK_NEW, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Brief) first = {0}, second = {0};
        TalkFound found;
        Place p;

        place_init(&p);
        make_brief(&first, "e1", "s");
        make_brief(&second, cases[i].execution, cases[i].step);
        Talk *talk = talk_open(p.path, &first, &found);
        g_assert_cmpint(found, ==, TALK_NEW);
        talk_add_goal(talk, "do it \xff");
        add_turn(talk, 1, 1, 3);
        add_turn(talk, 2, 1, 3);
        g_assert_cmpint(talk_turns(talk), ==, 2);
        g_autofree char *before = encode(talk);
        talk_free(talk);
        g_autoptr(Talk) again = talk_open(p.path, &second, &found);
        g_autofree char *after = encode(again);
        g_assert_cmpint(found, ==, cases[i].found);
        g_assert_cmpint(talk_turns(again), ==, cases[i].turns);
        g_assert_cmpstr(after, ==, found == TALK_NEW ? "[]" : before);
        g_autoptr(Json) pending = talk_pending(again);
        g_assert_cmpuint(json_array_size(pending), ==, found == TALK_NEW ? 0 : 1);
        place_clear(&p);
    }
}

/* Whatever was torn or written over, what is whole counts, and nothing stops the work. */
static void
test_broken_file(void)
{
    static const struct {
        const char *text;
        size_t messages;
    } cases[] = {
        {"", 0},
        {"nonsense", 0},
        {"{\"execution_id\":\"e1\",\"task\":\"t\",\"step\":\"s\",\"role\":\"coder\",\"kind\":null}\n"
         "{\"role\":\"user\",\"text\":\"g\"}\n{\"role\":\"assis",
         1},
        {"{\"execution_id\":\"e1\",\"task\":\"t\",\"step\":\"s\",\"role\":\"coder\",\"kind\":null}\n7\n", 0},
        {"{\"execution_id\":\"e1\",\"task\":\"t\",\"step\":\"s\",\"role\":\"reviewer\",\"kind\":null}\n"
         "{\"role\":\"user\",\"text\":\"g\"}\n",
         0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Brief) brief = {0};
        TalkFound found;
        Place p;

        place_init(&p);
        g_autofree char *folder = g_path_get_dirname(p.path);
        g_assert_cmpint(g_mkdir(folder, 0700), ==, 0);
        g_assert_true(g_file_set_contents(p.path, cases[i].text, -1, NULL));
        make_brief(&brief, "e1", "s");
        g_autoptr(Talk) talk = talk_open(p.path, &brief, &found);
        g_assert_cmpuint(json_array_size(talk_messages(talk)), ==, cases[i].messages);
        place_clear(&p);
    }
}

static void
test_unwritable(void)
{
    g_auto(Brief) brief = {0};
    TalkFound found;

    make_brief(&brief, "e1", "s");
    g_autoptr(Talk) talk = talk_open("/proc/none/talk.jsonl", &brief, &found);
    talk_add_user(talk, "x");
    g_assert_cmpuint(json_array_size(talk_messages(talk)), ==, 1);
}

/* Arguments that are no object would be refused by the server for ever. */
static void
test_malformed_arguments(void)
{
    static const char *const cases[] = {"{\"a\":", "[1]", "", "nonsense", "{\"a\":1,\"a\":2}"};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Brief) brief = {0};
        g_auto(Answer) answer = {0};
        TalkFound found;

        make_brief(&brief, "e1", "s");
        answer_init(&answer);
        g_assert_true(answer_add_call(
            &answer, &(AnswerPiece){.index = 0, .id = "a", .name = "n", .arguments = cases[i]}, NULL));
        g_autoptr(Talk) talk = talk_open(NULL, &brief, &found);
        talk_add_answer(talk, &answer);
        g_autofree char *text = encode(talk);
        g_assert_cmpstr(text, ==,
                        "[{\"role\":\"assistant\",\"text\":\"\",\"calls\":[{\"id\":\"a\",\"name\":\"n\","
                        "\"arguments\":\"{}\"}]}]");
    }
}

/* ---- making it shorter ---- */

static size_t
text_bytes(const Talk *talk, size_t index)
{
    return json_string_length(json_object_get(json_array_get(talk_messages(talk), index), "text"));
}

static void
test_cut(void)
{
    g_auto(Brief) brief = {0};
    TalkFound found;
    Keep keep;

    make_brief(&brief, "e1", "s");
    g_autoptr(Talk) talk = talk_open(NULL, &brief, &found);
    g_autofree char *goal = g_strnfill(5000, 'g');
    talk_add_goal(talk, goal);
    for (guint i = 0; i < 10; i++)
        add_turn(talk, 1, 1, 4000);
    keep_init(&keep, &brief, NULL, talk);
    gint64 before = keep_tokens(&keep);
    g_assert_cmpint(before, >, 85000 / 4);

    /* Oldest first, and no more than needed. */
    keep_cut(&keep, before - 4000, KEEP_RECENT);
    g_assert_cmpint(keep_tokens(&keep), <=, before - 4000);
    g_assert_cmpuint(text_bytes(talk, 2), <, 400);
    g_assert_cmpuint(text_bytes(talk, 12), ==, 4000);

    keep_cut(&keep, 0, KEEP_RECENT);
    g_assert_cmpuint(text_bytes(talk, 0), ==, 5000);
    g_assert_cmpuint(text_bytes(talk, 12), <, 400);
    g_assert_cmpuint(text_bytes(talk, 14), ==, 4000);
    /* What stays of a call is still a call. */
    g_autoptr(Json) arguments = dialect_arguments(
        json_array_get(json_object_get(json_array_get(talk_messages(talk), 1), "calls"), 0));
    g_assert_nonnull(json_object_get(arguments, "command"));
    g_assert_cmpuint(json_string_length(json_object_get(arguments, "command")), <, 400);

    keep_cut(&keep, 0, 0);
    g_assert_cmpuint(text_bytes(talk, 20), <, 400);
    g_assert_cmpuint(text_bytes(talk, 0), ==, 5000);
    /* Once more changes nothing. */
    gint64 least = keep_tokens(&keep);
    keep_cut(&keep, 0, 0);
    g_assert_cmpint(keep_tokens(&keep), ==, least);
}

/* What is summarised ends before an answer, and the end stays. */
static void
test_boundary(void)
{
    g_auto(Brief) brief = {0};
    TalkFound found;
    Keep keep;

    make_brief(&brief, "e1", "s");
    g_autoptr(Talk) talk = talk_open(NULL, &brief, &found);
    talk_add_goal(talk, "goal");
    keep_init(&keep, &brief, NULL, talk);
    g_assert_cmpuint(keep_boundary(&keep), ==, 0);
    add_turn(talk, 2, 2, 1000);
    g_assert_cmpuint(keep_boundary(&keep), ==, 0);
    add_turn(talk, 2, 2, 1000);
    g_assert_cmpuint(keep_boundary(&keep), ==, 4);
    add_turn(talk, 0, 0, 0);
    talk_add_user(talk, "go on");
    add_turn(talk, 1, 1, 10);
    g_assert_cmpuint(keep_boundary(&keep), ==, 7);
    talk_replace(talk, 1, 7, "summary");
    g_assert_cmpint(talk_turns(talk), ==, 4);
    g_assert_cmpuint(json_array_size(talk_messages(talk)), ==, 6);
    /* A summary is not summarised alone. */
    g_assert_cmpuint(keep_boundary(&keep), ==, 0);
}

static void
test_goals_stay(void)
{
    g_auto(Brief) brief = {0};
    TalkFound found;

    make_brief(&brief, "e1", "s");
    g_autoptr(Talk) talk = talk_open(NULL, &brief, &found);
    talk_add_goal(talk, "goal");
    add_turn(talk, 1, 1, 1);
    talk_add_goal(talk, "second");
    add_turn(talk, 1, 1, 1);
    talk_add_goal(talk, "third");
    add_turn(talk, 0, 0, 0);
    add_turn(talk, 0, 0, 0);
    talk_replace(talk, 1, 8, "summary");
    g_autofree char *text = encode(talk);
    g_assert_cmpstr(
        text, ==,
        "[{\"role\":\"user\",\"text\":\"goal\",\"goal\":true},{\"role\":\"user\",\"text\":\"third\","
        "\"goal\":true},{\"role\":\"user\",\"text\":\"summary\"},{\"role\":\"assistant\",\"text\":"
        "\"thinking\",\"calls\":[]}]");
    g_assert_cmpint(talk_turns(talk), ==, 4);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/agent/talk/go-on", test_go_on);
    g_test_add_func("/agent/talk/broken-file", test_broken_file);
    g_test_add_func("/agent/talk/unwritable", test_unwritable);
    g_test_add_func("/agent/talk/malformed-arguments", test_malformed_arguments);
    g_test_add_func("/agent/keep/cut", test_cut);
    g_test_add_func("/agent/keep/boundary", test_boundary);
    g_test_add_func("/agent/keep/goals", test_goals_stay);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands.h"

#include <stdio.h>
#include <string.h>

#include "agent/brief.h"
#include "agent/face.h"
#include "agent/tool.h"
#include "base/err.h"
#include "base/exitcode.h"

enum { COMMAND_PATIENCE_MS = 30 * 1000 };

int
agent_fail(const GError *error)
{
    fprintf(stderr, "coop-agent: %s\n", error->message);
    return exit_code_of(error);
}

static int
fail_usage(const char *usage)
{
    fprintf(stderr, "usage: coop-agent %s\n", usage);
    return EXIT_CODE_USAGE;
}

static Face *
open_face(GError **error)
{
    Face *face = face_new(-1, error);

    if (face != NULL)
        face_set_patience(face, COMMAND_PATIENCE_MS);
    return face;
}

static void
print_text(const char *text)
{
    size_t n = strlen(text);

    fputs(text, stdout);
    if (n > 0 && text[n - 1] != '\n')
        putchar('\n');
}

/* The words of a command line, or the standard input for "-". */
static char *
join_words(int argc, char **argv, int from)
{
    GString *text = g_string_new(NULL);

    for (int i = from; i < argc; i++)
        g_string_append_printf(text, "%s%s", i > from ? " " : "", argv[i]);
    return g_string_free(text, FALSE);
}

/* ---- plan ---- */

static int
plan(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Face) face = open_face(&error);

    if (argc > 2)
        return fail_usage("plan [TASK]");
    g_autofree char *text = face != NULL
                                ? face_plan(face, argc == 2 ? argv[1] : g_getenv("CURRENT_TASK_ID"), &error)
                                : NULL;
    if (text == NULL)
        return agent_fail(error);
    print_text(text);
    return EXIT_CODE_OK;
}

/* ---- room ---- */

/* Of the environment, else of the brief. */
static char *
find_room(Face *face, GError **error)
{
    const char *own = g_getenv("ROOM_ID");
    g_auto(Brief) brief = {0};

    if (own != NULL && *own != '\0')
        return g_strdup(own);
    Json *tree = face_brief(face, error);
    if (tree == NULL || !brief_read(&brief, tree, error))
        return NULL;
    if (brief.room_id == NULL)
        err_set(error, ERR_NOT_FOUND, "this box has no room");
    return g_strdup(brief.room_id);
}

static bool
read_room(Face *face, const char *id, GError **error)
{
    g_autoptr(Json) room = face_room_read(face, id, error);

    if (room == NULL)
        return false;
    g_autofree char *text = brief_format_room(room);
    print_text(text);
    return true;
}

static int
room(int argc, char **argv)
{
    static const char usage[] = "room TEXT… | room --read";
    g_autoptr(GError) error = NULL;

    if (argc < 2)
        return fail_usage(usage);
    bool reads = strcmp(argv[1], "--read") == 0;
    if (reads && argc > 2)
        return fail_usage(usage);
    g_autoptr(Face) face = open_face(&error);
    g_autofree char *id = face != NULL ? find_room(face, &error) : NULL;
    g_autofree char *text = join_words(argc, argv, 1);
    if (id == NULL || !(reads ? read_room(face, id, &error) : face_room_post(face, id, text, NULL, &error)))
        return agent_fail(error);
    return EXIT_CODE_OK;
}

/* ---- ask ---- */

static int
ask(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;

    if (argc < 2)
        return fail_usage("ask TEXT…");
    g_autoptr(Face) face = open_face(&error);
    g_autofree char *question = join_words(argc, argv, 1);
    g_autofree char *id = face != NULL ? face_ask(face, question, NULL, &error) : NULL;
    g_autofree char *answer = id != NULL ? face_answer(face, id, &error) : NULL;
    if (answer == NULL)
        return agent_fail(error);
    print_text(answer);
    return EXIT_CODE_OK;
}

/* ---- done ---- */

/* "path:line:text"; the line may be missing. */
static Json *
parse_finding(const char *text, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 3);
    guint n = g_strv_length(parts);
    guint64 line = 0;

    if (n == 3 && g_ascii_string_to_unsigned(parts[1], 10, 0, G_MAXINT32, &line, NULL))
        return json_pack("{s:s, s:I, s:s}", "path", parts[0], "line", (json_int_t)line, "body",
                         g_strstrip(parts[2]));
    err_set(error, ERR_INVALID, "a finding is path:line:text, not '%s'", text);
    return NULL;
}

static bool
read_done(int argc, char **argv, Ending *ending, GError **error)
{
    ending->outcome = g_strdup("done");
    ending->findings = json_array();
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char **to = strcmp(argv[i], "--verdict") == 0   ? &ending->verdict
                    : strcmp(argv[i], "--summary") == 0 ? &ending->summary
                    : strcmp(argv[i], "--outcome") == 0 ? &ending->outcome
                                                        : NULL;
        bool finding = strcmp(argv[i], "--finding") == 0;

        if (value == NULL || (to == NULL && !finding))
            return err_set(error, ERR_INVALID, "'%s' is not understood, or has no value", argv[i]);
        i++;
        if (to != NULL) {
            g_free(*to);
            *to = g_strdup(value);
            continue;
        }
        Json *found = parse_finding(value, error);
        if (found == NULL)
            return false;
        json_array_append_new(ending->findings, found);
    }
    return true;
}

static int
done(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    Ending ending = {.is_set = true};
    int code = EXIT_CODE_OK;

    if (!read_done(argc, argv, &ending, &error)) {
        code = fail_usage("done [--verdict V] [--summary S] [--outcome O] [--finding path:line:text]…");
    } else {
        g_autoptr(Face) face = open_face(&error);
        g_autoptr(Json) report = ending_report(&ending);

        if (face == NULL || !face_done(face, report, &error))
            code = agent_fail(error);
    }
    ending_clear(&ending);
    return code;
}

const AgentCommand agent_commands[] = {
    {"plan", "plan [TASK]", "where the task stands", plan},
    {"room", "room TEXT…", "say something to the others of the task", room},
    {"room", "room --read", "plan, assignments, knowledge and the last messages", room},
    {"ask", "ask TEXT…", "ask a person, and print the answer", ask},
    {"done", "done [--verdict V] [--summary S] [--finding path:line:text]…", "the report", done},
    {NULL},
};

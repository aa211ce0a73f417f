/* SPDX-License-Identifier: Apache-2.0 */
/* The file is lines of JSON: a head that says whose it is, then the messages.  A line is appended for each
 * message; one that a crash has torn is the last, and is left out.  A file that cannot be written costs only
 * that there is nothing to go on with. */
#include "agent/talk.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"

struct Talk {
    char *path; /* NULL: none, or it cannot be written */
    Json *head;
    Json *messages;
    gint64 turns_base; /* and one for each answer that is here */
};

bool
talk_is_role(const Json *message, const char *role)
{
    return g_strcmp0(json_string_value(json_object_get(message, "role")), role) == 0;
}

static gint64
count_answers(const Talk *t)
{
    gint64 n = 0;
    size_t i;
    Json *message;

    json_array_foreach(t->messages, i, message) n += talk_is_role(message, "assistant");
    return n;
}

/* ---- the file ---- */

static void
give_up_file(Talk *t, const GError *error)
{
    log_warn("agent", "the conversation is not kept", log_gerror(error));
    g_clear_pointer(&t->path, g_free);
}

static void
append_line(GString *out, const Json *value)
{
    g_autofree char *text = json_encode(value);

    g_string_append(out, text);
    g_string_append_c(out, '\n');
}

/* As path_write_atomic(), but without waiting for the disk: what a power cut takes is only a convenience,
 * and the first question waits for this. */
static bool
replace_file(const char *path, const GString *text, GError **error)
{
    g_autofree char *next = g_strconcat(path, ".next", NULL);
    autofd fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0 || !io_write_all(fd, text->str, text->len) || rename(next, path) < 0)
        return err_errno(error, "write '%s'", path);
    return true;
}

void
talk_save(Talk *talk)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    size_t i;
    Json *message;

    if (talk->path == NULL)
        return;
    json_object_set_new(talk->head, "turns_base", json_integer(talk->turns_base));
    append_line(out, talk->head);
    json_array_foreach(talk->messages, i, message) append_line(out, message);
    if (!replace_file(talk->path, out, &error))
        give_up_file(talk, error);
}

static void
add(Talk *t, Json *message)
{
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    json_array_append_new(t->messages, message);
    if (t->path == NULL)
        return;
    append_line(line, message);
    autofd fd = open(t->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd >= 0 && io_write_all(fd, line->str, line->len))
        return;
    err_errno(&error, "write '%s'", t->path);
    give_up_file(t, error);
}

static Json *
make_head(const Brief *brief)
{
    return json_pack("{s:s?, s:s?, s:s?, s:s?, s:s?}", "execution_id", brief->execution_id, "task",
                     brief->task_id, "step", brief->step, "role", brief->role, "kind", brief->kind);
}

static bool
is_of(Json *head, const Json *own, const char *member)
{
    return json_equal(json_object_get(head, member), json_object_get(own, member));
}

static void
load_messages(Talk *t, char **lines)
{
    for (guint i = 0; lines[i] != NULL; i++) {
        g_autoptr(Json) message = json_decode(lines[i], strlen(lines[i]), NULL);

        if (!json_is_object(message) || json_object_get(message, "role") == NULL)
            return;
        json_array_append(t->messages, message);
    }
}

static TalkFound
load(Talk *t)
{
    g_autofree char *text = NULL;
    struct stat st;

    if (t->path == NULL || stat(t->path, &st) < 0 || st.st_size > TALK_FILE_MAX ||
        !g_file_get_contents(t->path, &text, NULL, NULL))
        return TALK_NEW;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(Json) head = lines[0] != NULL ? json_decode(lines[0], strlen(lines[0]), NULL) : NULL;
    if (head == NULL || !is_of(head, t->head, "task") || !is_of(head, t->head, "step") ||
        !is_of(head, t->head, "role") || !is_of(head, t->head, "kind"))
        return TALK_NEW;
    load_messages(t, lines + 1);
    if (json_array_size(t->messages) == 0)
        return TALK_NEW;
    if (is_of(head, t->head, "execution_id")) {
        t->turns_base = json_integer_value(json_object_get(head, "turns_base"));
        return TALK_SAME;
    }
    t->turns_base = -count_answers(t);
    return TALK_ANOTHER;
}

Talk *
talk_open(const char *path, const Brief *brief, TalkFound *ret_found)
{
    Talk *t = g_new0(Talk, 1);
    g_autofree char *folder = path != NULL ? g_path_get_dirname(path) : NULL;
    g_autoptr(GError) error = NULL;

    t->path = g_strdup(path);
    t->head = make_head(brief);
    t->messages = json_array();
    if (folder != NULL && mkdir(folder, 0700) < 0 && errno != EEXIST) {
        err_errno(&error, "make '%s'", folder);
        give_up_file(t, error);
    }
    *ret_found = load(t);
    talk_save(t);
    return t;
}

void
talk_free(Talk *talk)
{
    if (talk == NULL)
        return;
    g_free(talk->path);
    json_decref(talk->head);
    json_decref(talk->messages);
    g_free(talk);
}

/* ---- messages ---- */

Json *
talk_messages(const Talk *talk)
{
    return talk->messages;
}

gint64
talk_turns(const Talk *talk)
{
    return talk->turns_base + count_answers(talk);
}

/* Whatever a command or a file held: what is sent must be UTF-8. */
static Json *
make_text(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);

    return json_string(valid);
}

void
talk_add_user(Talk *talk, const char *text)
{
    add(talk, json_pack("{s:s, s:o}", "role", "user", "text", make_text(text)));
}

void
talk_add_goal(Talk *talk, const char *text)
{
    add(talk, json_pack("{s:s, s:o, s:b}", "role", "user", "text", make_text(text), "goal", 1));
}

static Json *
make_call(const AnswerCall *call)
{
    g_autoptr(Json) tree = json_decode(call->arguments->str, call->arguments->len, NULL);
    bool usable = json_is_object(tree);

    return json_pack("{s:s, s:s, s:o}", "id", call->id, "name", call->name, "arguments",
                     make_text(usable ? call->arguments->str : "{}"));
}

void
talk_add_answer(Talk *talk, const Answer *answer)
{
    Json *calls = json_array();

    for (guint i = 0; i < answer->calls->len; i++)
        json_array_append_new(calls, make_call(g_ptr_array_index(answer->calls, i)));
    add(talk, json_pack("{s:s, s:o, s:o}", "role", "assistant", "text", make_text(answer->text->str), "calls",
                        calls));
}

void
talk_add_result(Talk *talk, const char *id, const char *name, const char *text)
{
    add(talk,
        json_pack("{s:s, s:s, s:s, s:o}", "role", "tool", "id", id, "name", name, "text", make_text(text)));
}

Json *
talk_pending(const Talk *talk)
{
    size_t n = json_array_size(talk->messages), last = n;
    Json *pending = json_array();

    while (last > 0 && talk_is_role(json_array_get(talk->messages, last - 1), "tool"))
        last--;
    Json *answer = last > 0 ? json_array_get(talk->messages, last - 1) : NULL;
    Json *calls = talk_is_role(answer, "assistant") ? json_object_get(answer, "calls") : NULL;
    /* Results come in the order of the calls. */
    for (size_t i = n - last; i < json_array_size(calls); i++)
        json_array_append(pending, json_array_get(calls, i));
    return pending;
}

void
talk_replace(Talk *talk, size_t from, size_t to, const char *text)
{
    gint64 turns = talk_turns(talk);
    g_autoptr(Json) goal = NULL;

    for (size_t i = from; i < to; i++) {
        g_autoptr(Json) message = json_incref(json_array_get(talk->messages, from));

        json_array_remove(talk->messages, from);
        if (json_is_true(json_object_get(message, "goal"))) {
            json_decref(goal);
            goal = g_steal_pointer(&message);
        }
    }
    json_array_insert_new(talk->messages, from,
                          json_pack("{s:s, s:o}", "role", "user", "text", make_text(text)));
    if (goal != NULL)
        json_array_insert(talk->messages, from, goal);
    talk->turns_base = turns - count_answers(talk);
}

void
talk_set_text(Talk *talk, size_t index, const char *text)
{
    json_object_set_new(json_array_get(talk->messages, index), "text", make_text(text));
}

void
talk_set_arguments(Talk *talk, size_t index, size_t call, const char *arguments)
{
    Json *calls = json_object_get(json_array_get(talk->messages, index), "calls");

    json_object_set_new(json_array_get(calls, call), "arguments", make_text(arguments));
}

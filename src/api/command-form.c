/* SPDX-License-Identifier: Apache-2.0 */
#include "api/command-form.h"

#include "api/form.h"
#include "base/err.h"

enum {
    TIMEOUT_S = RUN_TIMEOUT_MS / 1000,
    TIMEOUT_S_MAX = 24 * 3600,
    LINE_MAX_BYTES = 64 * 1024,
    USER_MAX = 64,
    SIDE_MAX = 4096, /* rows or columns */
    ROWS = 24,
    COLUMNS = 80,
};

struct CommandForm {
    RunSpec run;      /* borrows from the rest */
    Json *body;       /* a reference */
    const char *line; /* for the box's shell; NULL: argv says it */
    char **argv, **env;
    bool wait;
};

void
command_form_free(CommandForm *form)
{
    if (form == NULL)
        return;
    g_strfreev(form->argv);
    g_strfreev(form->env);
    json_decref(form->body);
    g_free(form);
}

static bool
read_argv(CommandForm *form, Json *argv, GError **error)
{
    if ((form->line == NULL) == (argv == NULL))
        return err_set(error, ERR_INVALID, "either 'command' or 'argv' must be given");
    if (form->line != NULL)
        return true;
    if (json_array_size(argv) == 0)
        return err_set(error, ERR_INVALID, "'argv' must not be empty");
    return form_read_words(argv, "argv", &form->argv, error);
}

static bool
read_fields(CommandForm *form, GError **error)
{
    Json *argv = NULL, *env = NULL;
    gint64 timeout_s = TIMEOUT_S, rows = ROWS, columns = COLUMNS;
    bool tty = false, input = false, root = false;
    const JsonField fields[] = {
        {"command", JSON_KIND_STRING, &form->line, false, 1, LINE_MAX_BYTES},
        {"argv", JSON_KIND_ARRAY, &argv, false, 0, FRAME_ARGS_MAX},
        {"user", JSON_KIND_STRING, &form->run.user, false, 1, USER_MAX},
        {"cwd", JSON_KIND_STRING, &form->run.cwd, false, 1, FRAME_PATH_MAX - 1},
        {"env", JSON_KIND_OBJECT, &env},
        {"timeout", JSON_KIND_INT, &timeout_s, false, 0, TIMEOUT_S_MAX},
        {"tty", JSON_KIND_BOOL, &tty},
        {"rows", JSON_KIND_INT, &rows, false, 1, SIDE_MAX},
        {"columns", JSON_KIND_INT, &columns, false, 1, SIDE_MAX},
        {"stdin", JSON_KIND_BOOL, &input},
        {"root", JSON_KIND_BOOL, &root},
        {"wait", JSON_KIND_BOOL, &form->wait},
        {NULL},
    };

    form->run.user = form->run.cwd = "";
    if (!json_read(form->body, fields, error) || !read_argv(form, argv, error) ||
        !form_read_env(env, &form->env, error))
        return false;
    form->run.flags = (tty ? START_TTY : 0) | (input || tty ? START_STDIN : 0) | (root ? START_ROOT : 0);
    form->run.timeout_ms = (guint)(timeout_s * 1000);
    form->run.rows = (guint16)rows;
    form->run.columns = (guint16)columns;
    return true;
}

CommandForm *
command_form_read(Json *body, GError **error)
{
    g_autoptr(CommandForm) form = g_new0(CommandForm, 1);

    form->body = json_incref(body);
    return read_fields(form, error) ? g_steal_pointer(&form) : NULL;
}

bool
command_form_waits(const CommandForm *form)
{
    return form->wait;
}

Run *
command_form_start(CommandForm *form, Box *box, const char *actor, GError **error)
{
    BoxInfo info;

    box_info(box, &info);
    if ((form->run.flags & START_ROOT) != 0 && !info.sudo) {
        err_set(error, ERR_DENIED, "the template of this sandbox lets no command be root");
        return NULL;
    }
    const char *const line[] = {info.shell, "-c", form->line, NULL};

    form->run.argv = form->line != NULL ? line : (const char *const *)form->argv;
    form->run.env = (const char *const *)form->env;
    Run *run = box_start(box, &form->run, actor, error);

    form->run.argv = NULL;
    return run;
}

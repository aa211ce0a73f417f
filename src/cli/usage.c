/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/usage.h"

#include <string.h>

#include "cli/parse.h"

#define USAGE_EXIT_ROW(name, code, meaning) {code, meaning},
static const struct {
    int code;
    const char *meaning;
} exit_rows[] = {EXIT_CODES(USAGE_EXIT_ROW)};
#undef USAGE_EXIT_ROW

static char *
usage_line(const Command *const *path, guint depth)
{
    const Command *command = path[depth - 1];
    GString *line = g_string_new(path[0]->name);

    for (guint i = 1; i < depth; i++)
        g_string_append_printf(line, " %s", path[i]->name);
    if (command->commands != NULL)
        g_string_append(line, command->run != NULL ? " [COMMAND]" : " COMMAND");
    if (command->args != NULL)
        g_string_append_printf(line, " %s", command->args);
    g_string_append(line, " [OPTIONS]");
    return g_string_free(line, FALSE);
}

static char *
option_label(const CliOption *o)
{
    g_autofree char *letter = o->letter != 0 ? g_strdup_printf("-%c, ", o->letter) : g_strdup("    ");

    return g_strconcat(letter, "--", o->name, o->value != NULL ? " " : NULL, o->value, NULL);
}

static void
text_list(Out *out, const char *title, GPtrArray *labels, GPtrArray *texts)
{
    size_t width = 0;

    if (labels->len == 0)
        return;
    for (guint i = 0; i < labels->len; i++)
        width = MAX(width, strlen(labels->pdata[i]));
    out_text(out, OUT_BOLD, "\n%s:\n", title);
    for (guint i = 0; i < labels->len; i++)
        out_text(out, OUT_PLAIN, "  %-*s  %s\n", (int)width, (const char *)labels->pdata[i],
                 (const char *)texts->pdata[i]);
}

static void
text_commands(Out *out, const Command *command)
{
    g_autoptr(GPtrArray) labels = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);

    for (const Command *const *c = command->commands; c != NULL && *c != NULL; c++) {
        if ((*c)->hidden)
            continue;
        g_ptr_array_add(labels, g_strdup((*c)->name));
        g_ptr_array_add(texts, g_strdup((*c)->summary));
    }
    text_list(out, "Commands", labels, texts);
}

static void
text_options(Out *out, const Command *command)
{
    g_autoptr(GPtrArray) labels = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) options = cli_command_options(command);

    for (guint i = 0; i < options->len; i++) {
        const CliOption *o = &g_array_index(options, CliOption, i);

        g_ptr_array_add(labels, option_label(o));
        g_ptr_array_add(texts, g_strdup(o->help));
    }
    text_list(out, "Options", labels, texts);
}

static void
text_exit_codes(Out *out)
{
    g_autoptr(GPtrArray) labels = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);

    for (size_t i = 0; i < G_N_ELEMENTS(exit_rows); i++) {
        g_ptr_array_add(labels, g_strdup_printf("%d", exit_rows[i].code));
        g_ptr_array_add(texts, g_strdup(exit_rows[i].meaning));
    }
    text_list(out, "Exit codes", labels, texts);
}

static Json *
json_commands(const Command *command)
{
    Json *list = json_array();

    for (const Command *const *c = command->commands; c != NULL && *c != NULL; c++) {
        if (!(*c)->hidden)
            json_array_append_new(list, json_pack("{s:s,s:s}", "name", (*c)->name, "summary", (*c)->summary));
    }
    return list;
}

static Json *
json_options(const Command *command)
{
    g_autoptr(GArray) options = cli_command_options(command);
    Json *list = json_array();

    for (guint i = 0; i < options->len; i++) {
        const CliOption *o = &g_array_index(options, CliOption, i);
        char letter[2] = {o->letter, '\0'};

        json_array_append_new(list,
                              json_pack("{s:s,s:s*,s:s*,s:s}", "name", o->name, "letter",
                                        o->letter != 0 ? letter : NULL, "value", o->value, "help", o->help));
    }
    return list;
}

void
usage_show(Out *out, const Command *const *path, guint depth)
{
    const Command *command = path[depth - 1];
    g_autofree char *usage = usage_line(path, depth);

    if (out_format(out) == OUT_JSON) {
        g_autoptr(Json) value = json_pack("{s:s,s:s,s:s,s:o,s:o}", "name", command->name, "summary",
                                          command->summary, "usage", usage, "commands",
                                          json_commands(command), "options", json_options(command));

        out_json(out, value);
        return;
    }
    out_text(out, OUT_BOLD, "Usage: ");
    out_text(out, OUT_PLAIN, "%s\n\n%s.\n", usage, command->summary);
    if (command->details != NULL)
        out_text(out, OUT_PLAIN, "\n%s\n", command->details);
    text_commands(out, command);
    text_options(out, command);
    if (depth == 1)
        text_exit_codes(out);
}

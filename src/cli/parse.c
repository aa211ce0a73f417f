/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/parse.h"

#include <string.h>

#include "base/err.h"
#include "base/nearest.h"
#include "cli/settings.h"

static const char *const formats[] = {"text", "json", NULL};
static const CliOption common_options[] = {
    {.name = "output", .letter = 'o', .value = "FORMAT", .help = "text or json", .choices = formats},
    {.name = "help", .letter = 'h', .help = "show this help"},
    {NULL},
};

static void
append_options(GArray *all, const CliOption *options)
{
    for (const CliOption *o = options; o != NULL && o->name != NULL; o++)
        g_array_append_val(all, *o);
}

GArray *
cli_command_options(const Command *command)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(CliOption));

    append_options(all, command->options);
    cli_settings_append(all, command->settings);
    append_options(all, common_options);
    return all;
}

void
cli_parsed_clear(CliParsed *parsed)
{
    if (parsed->given != NULL)
        g_array_free(parsed->given, TRUE);
    if (parsed->args != NULL)
        g_ptr_array_free(parsed->args, TRUE);
    *parsed = (CliParsed){0};
}

static void
given_clear(void *data)
{
    CliGiven *given = data;

    g_free(given->name);
    g_free(given->value);
}

char *
cli_parsed_path(const CliParsed *parsed)
{
    GString *path = g_string_new(parsed->path[0]->name);

    for (guint i = 1; i < parsed->depth; i++)
        g_string_append_printf(path, " %s", parsed->path[i]->name);
    return g_string_free(path, FALSE);
}

/* `name` is not terminated: the value may follow after "=". */
static const CliOption *
find_option(const GArray *options, const char *name, size_t len)
{
    for (guint i = 0; i < options->len; i++) {
        const CliOption *o = &g_array_index(options, CliOption, i);

        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            return o;
    }
    return NULL;
}

static bool
fail_unknown_option(const GArray *options, const char *name, size_t len, GError **error)
{
    g_autofree const char **names = g_new0(const char *, options->len);
    g_autofree char *word = g_strndup(name, len);

    for (guint i = 0; i < options->len; i++)
        names[i] = g_array_index(options, CliOption, i).name;
    const char *near = nearest(word, names, options->len);
    if (near != NULL)
        return err_set(error, ERR_INVALID, "unknown option '--%s': did you mean '--%s'?", word, near);
    return err_set(error, ERR_INVALID, "unknown option '--%s'", word);
}

static bool
check_choice(const CliOption *option, const char *value, GError **error)
{
    if (option->choices == NULL || g_strv_contains(option->choices, value))
        return true;
    g_autofree char *choices = g_strjoinv(", ", (char **)(guintptr)option->choices);
    return err_set(error, ERR_INVALID, "'%s' is not a value of --%s: choose one of %s", value, option->name,
                   choices);
}

static bool
take_option(CliParsed *parsed, const CliOption *option, const char *value, GError **error)
{
    if (!check_choice(option, value, error))
        return false;
    if (strcmp(option->name, "help") == 0)
        parsed->help = true;
    CliGiven given = {g_strdup(option->name), g_strdup(value)};
    g_array_append_val(parsed->given, given);
    return true;
}

/* Returns how many further words the option used, or -1. */
static int
parse_long(CliParsed *parsed, const char *word, const char *next, GError **error)
{
    g_autoptr(GArray) options = cli_command_options(cli_parsed_command(parsed));
    const char *name = word + 2;
    size_t len = strcspn(name, "=");
    const CliOption *option = find_option(options, name, len);

    if (option == NULL)
        return fail_unknown_option(options, name, len, error) ? 0 : -1;
    if (option->value == NULL && name[len] == '=') {
        err_set(error, ERR_INVALID, "option '--%s' takes no value", option->name);
        return -1;
    }
    if (option->value == NULL)
        return take_option(parsed, option, "", error) ? 0 : -1;
    if (name[len] == '=')
        return take_option(parsed, option, name + len + 1, error) ? 0 : -1;
    if (next == NULL) {
        err_set(error, ERR_INVALID, "option '--%s' needs a value (%s)", option->name, option->value);
        return -1;
    }
    return take_option(parsed, option, next, error) ? 1 : -1;
}

static const CliOption *
find_letter(const GArray *options, char letter)
{
    for (guint i = 0; i < options->len; i++) {
        if (g_array_index(options, CliOption, i).letter == letter)
            return &g_array_index(options, CliOption, i);
    }
    return NULL;
}

/* "-o json", "-ojson", and switches in one word ("-hf"). */
static int
parse_short(CliParsed *parsed, const char *word, const char *next, GError **error)
{
    g_autoptr(GArray) options = cli_command_options(cli_parsed_command(parsed));

    for (const char *p = word + 1; *p != '\0'; p++) {
        const CliOption *option = find_letter(options, *p);

        if (option == NULL) {
            err_set(error, ERR_INVALID, "unknown option '-%c'", *p);
            return -1;
        }
        if (option->value == NULL) {
            if (!take_option(parsed, option, "", error))
                return -1;
            continue;
        }
        if (p[1] != '\0')
            return take_option(parsed, option, p + 1, error) ? 0 : -1;
        if (next == NULL) {
            err_set(error, ERR_INVALID, "option '-%c' needs a value (%s)", *p, option->value);
            return -1;
        }
        return take_option(parsed, option, next, error) ? 1 : -1;
    }
    return 0;
}

static bool
fail_unknown_command(const Command *parent, const char *word, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (const Command *const *c = parent->commands; *c != NULL; c++) {
        if (!(*c)->hidden)
            g_ptr_array_add(names, (gpointer)(guintptr)(*c)->name);
    }
    const char *near = nearest(word, (const char *const *)names->pdata, names->len);
    if (near != NULL)
        return err_set(error, ERR_INVALID, "unknown command '%s': did you mean '%s'?", word, near);
    return err_set(error, ERR_INVALID, "unknown command '%s'", word);
}

static bool
is_rest(const CliParsed *parsed)
{
    return cli_parsed_command(parsed)->rest && parsed->args->len > 0;
}

static bool
parse_word(CliParsed *parsed, const char *word, GError **error)
{
    const Command *command = cli_parsed_command(parsed);

    if (command->commands != NULL && parsed->args->len == 0) {
        for (const Command *const *c = command->commands; *c != NULL; c++) {
            if (strcmp((*c)->name, word) == 0) {
                g_assert(parsed->depth < CLI_DEPTH_MAX);
                parsed->path[parsed->depth++] = *c;
                return true;
            }
        }
        if (command->args_max == 0)
            return fail_unknown_command(command, word, error);
    }
    if (parsed->args->len == command->args_max)
        return err_set(error, ERR_INVALID, "'%s' is one argument too many", word);
    g_ptr_array_add(parsed->args, g_strdup(word));
    return true;
}

static bool
parse_words(CliParsed *parsed, int argc, const char *const *argv, GError **error)
{
    bool options_ended = false;

    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        int used = 0;

        if (strcmp(word, "--") == 0 && !options_ended)
            options_ended = true;
        else if (options_ended || is_rest(parsed) || word[0] != '-' || word[1] == '\0')
            used = parse_word(parsed, word, error) ? 0 : -1;
        else if (word[1] == '-')
            used = parse_long(parsed, word, next, error);
        else
            used = parse_short(parsed, word, next, error);
        if (used < 0)
            return false;
        i += used;
    }
    return true;
}

bool
cli_parse(const Command *root, int argc, const char *const *argv, CliParsed *parsed, GError **error)
{
    *parsed = (CliParsed){.path = {root}, .depth = 1};
    parsed->given = g_array_new(FALSE, FALSE, sizeof(CliGiven));
    g_array_set_clear_func(parsed->given, given_clear);
    parsed->args = g_ptr_array_new_with_free_func(g_free);

    if (!parse_words(parsed, argc, argv, error))
        return false;
    const Command *command = cli_parsed_command(parsed);
    if (!parsed->help && command->run == NULL)
        return err_set(error, ERR_INVALID, "a command is missing");
    if (!parsed->help && parsed->args->len < command->args_min)
        return err_set(error, ERR_INVALID, "an argument is missing: %s", command->args);
    g_ptr_array_add(parsed->args, NULL);
    return true;
}

OutFormat
cli_guess_format(int argc, const char *const *argv)
{
    OutFormat format = OUT_TEXT;

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *value = NULL;

        if (strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0)
            value = i + 1 < argc ? argv[i + 1] : NULL;
        else if (g_str_has_prefix(argv[i], "--output="))
            value = argv[i] + strlen("--output=");
        else if (g_str_has_prefix(argv[i], "-o"))
            value = argv[i] + strlen("-o");
        if (value != NULL)
            format = strcmp(value, "json") == 0 ? OUT_JSON : OUT_TEXT;
    }
    return format;
}

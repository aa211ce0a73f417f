/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts, written from the tree of commands.
 *
 * All three shells follow the same idea: the words before the cursor lead to a place in the
 * tree ("coop config show"); the place decides what may follow, and an option whose values
 * are known decides for the word after it.  Names of commands, options and values are plain
 * words; descriptions are quoted, in a way that all three read alike. */
#include <string.h>

#include "cli/commands.h"

typedef void (*Visit)(GString *script, const Command *command, const char *place);

static void
walk(GString *script, const Command *command, const char *place, Visit visit)
{
    visit(script, command, place);
    for (const Command *const *c = command->commands; c != NULL && *c != NULL; c++) {
        g_autofree char *below = g_strconcat(place, " ", (*c)->name, NULL);

        if (!(*c)->hidden)
            walk(script, *c, below, visit);
    }
}

static void
walk_all(GString *script, const Command *root, Visit visit)
{
    walk(script, root, root->name, visit);
}

/* "'coop config'|'coop config show'": the places below the root. */
static void
visit_place(GString *script, const Command *command, const char *place)
{
    if (strchr(place, ' ') != NULL)
        g_string_append_printf(script, "%s'%s'", script->len > 0 ? "|" : "", place);
}

static char *
all_places(const Command *root, const char *separator)
{
    g_autoptr(GString) places = g_string_new(NULL);

    walk_all(places, root, visit_place);
    g_string_replace(places, "|", separator, 0);
    return g_string_free(g_steal_pointer(&places), FALSE);
}

/* "'coop --output'|'coop -o'": what stands before a value of this option. */
static char *
before_value(const char *place, const CliOption *o)
{
    g_autofree char *letter = o->letter != 0 ? g_strdup_printf("|'%s -%c'", place, o->letter) : g_strdup("");

    return g_strdup_printf("'%s --%s'%s", place, o->name, letter);
}

static void
visit_bash_words(GString *script, const Command *command, const char *place)
{
    g_autoptr(GArray) options = cli_command_options(command);

    g_string_append_printf(script, "    '%s') words='", place);
    for (const Command *const *c = command->commands; c != NULL && *c != NULL; c++) {
        if (!(*c)->hidden)
            g_string_append_printf(script, "%s ", (*c)->name);
    }
    for (guint i = 0; i < options->len; i++)
        g_string_append_printf(script, "--%s ", g_array_index(options, CliOption, i).name);
    g_string_append(script, "' ;;\n");
}

/* An option with a free value leaves the word to the shell: file names. */
static void
visit_bash_values(GString *script, const Command *command, const char *place)
{
    g_autoptr(GArray) options = cli_command_options(command);

    for (guint i = 0; i < options->len; i++) {
        const CliOption *o = &g_array_index(options, CliOption, i);

        if (o->value == NULL)
            continue;
        g_autofree char *before = before_value(place, o);
        g_autofree char *values = o->choices != NULL ? g_strjoinv(" ", (char **)(guintptr)o->choices) : NULL;
        g_string_append_printf(script, "    %s) ", before);
        if (values != NULL)
            g_string_append_printf(script, "mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\");", values);
        g_string_append(script, " return ;;\n");
    }
}

static void
write_bash(GString *script, const Command *root)
{
    g_autofree char *places = all_places(root, "|");

    g_string_append_printf(script,
                           "# bash completion for coop\n"
                           "_coop() {\n"
                           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                           "    local place=coop words='' i\n"
                           "    COMPREPLY=()\n"
                           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                           "        case \"$place ${COMP_WORDS[i]}\" in\n"
                           "        %s) place+=\" ${COMP_WORDS[i]}\" ;;\n"
                           "        esac\n"
                           "    done\n"
                           "    case \"$place $prev\" in\n",
                           places);
    walk_all(script, root, visit_bash_values);
    g_string_append(script, "    esac\n    case $place in\n");
    walk_all(script, root, visit_bash_words);
    g_string_append(script, "    esac\n"
                            "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                            "}\n"
                            "complete -o default -F _coop coop\n");
}

static void
visit_zsh(GString *script, const Command *command, const char *place)
{
    g_autoptr(GArray) options = cli_command_options(command);

    g_string_append_printf(script, "    '%s')\n        commands=(", place);
    for (const Command *const *c = command->commands; c != NULL && *c != NULL; c++) {
        g_autofree char *pair = g_strconcat((*c)->name, ":", (*c)->summary, NULL);
        g_autofree char *quoted = g_shell_quote(pair);

        if (!(*c)->hidden)
            g_string_append_printf(script, "\n            %s", quoted);
    }
    g_string_append(script, ")\n        options=(");
    for (guint i = 0; i < options->len; i++) {
        const CliOption *o = &g_array_index(options, CliOption, i);
        g_autofree char *pair = g_strconcat("--", o->name, ":", o->help, NULL);
        g_autofree char *quoted = g_shell_quote(pair);

        g_string_append_printf(script, "\n            %s", quoted);
    }
    g_string_append(script, ")\n        ;;\n");
}

static void
visit_zsh_values(GString *script, const Command *command, const char *place)
{
    g_autoptr(GArray) options = cli_command_options(command);

    for (guint i = 0; i < options->len; i++) {
        const CliOption *o = &g_array_index(options, CliOption, i);

        if (o->value == NULL)
            continue;
        g_autofree char *before = before_value(place, o);
        g_autofree char *values = o->choices != NULL ? g_strjoinv(" ", (char **)(guintptr)o->choices) : NULL;
        g_string_append_printf(script, "    %s) %s%s; return ;;\n", before,
                               values != NULL ? "compadd " : "_files", values != NULL ? values : "");
    }
}

/* `path` is the search path in zsh, hence `place` everywhere. */
static void
write_zsh(GString *script, const Command *root)
{
    g_autofree char *places = all_places(root, "|");

    g_string_append_printf(script,
                           "#compdef coop\n"
                           "_coop() {\n"
                           "    local place=coop word\n"
                           "    local -a commands options\n"
                           "    for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
                           "        case \"$place $word\" in\n"
                           "        %s) place+=\" $word\" ;;\n"
                           "        esac\n"
                           "    done\n"
                           "    case \"$place ${words[CURRENT-1]}\" in\n",
                           places);
    walk_all(script, root, visit_zsh_values);
    g_string_append(script, "    esac\n    case $place in\n");
    walk_all(script, root, visit_zsh);
    g_string_append(script, "    esac\n"
                            "    (($#commands)) && _describe -t commands command commands\n"
                            "    _describe -o -t options option options\n"
                            "    (($#commands)) || _files\n"
                            "}\n"
                            "if [[ $funcstack[1] == _coop ]]; then\n"
                            "    _coop \"$@\"\n"
                            "else\n"
                            "    compdef _coop coop\n"
                            "fi\n");
}

static void
visit_fish(GString *script, const Command *command, const char *place)
{
    g_autoptr(GArray) options = cli_command_options(command);

    for (const Command *const *c = command->commands; c != NULL && *c != NULL; c++) {
        g_autofree char *quoted = g_shell_quote((*c)->summary);

        if (!(*c)->hidden)
            g_string_append_printf(script, "complete -c coop -f -n '__coop_at \"%s\"' -a %s -d %s\n", place,
                                   (*c)->name, quoted);
    }
    for (guint i = 0; i < options->len; i++) {
        const CliOption *o = &g_array_index(options, CliOption, i);
        g_autofree char *quoted = g_shell_quote(o->help);
        g_autofree char *values = o->choices != NULL ? g_strjoinv(" ", (char **)(guintptr)o->choices) : NULL;

        g_string_append_printf(script, "complete -c coop -n '__coop_at \"%s\"' -l %s", place, o->name);
        if (o->letter != 0)
            g_string_append_printf(script, " -s %c", o->letter);
        if (values != NULL)
            g_string_append_printf(script, " -x -a '%s'", values);
        else if (o->value != NULL)
            g_string_append(script, " -r");
        g_string_append_printf(script, " -d %s\n", quoted);
    }
}

static void
write_fish(GString *script, const Command *root)
{
    g_autofree char *places = all_places(root, " ");

    g_string_append_printf(script,
                           "# fish completion for coop\n"
                           "function __coop_at\n"
                           "    set -l place coop\n"
                           "    set -l tokens (commandline -opc)\n"
                           "    set -e tokens[1]\n"
                           "    for word in $tokens\n"
                           "        switch \"$place $word\"\n"
                           "            case %s\n"
                           "                set place \"$place $word\"\n"
                           "        end\n"
                           "    end\n"
                           "    test \"$place\" = \"$argv[1]\"\n"
                           "end\n",
                           places);
    walk_all(script, root, visit_fish);
}

static const struct {
    const char *shell;
    void (*write)(GString *script, const Command *root);
} writers[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};

static ExitCode
run(Cli *cli)
{
    const char *shell = cli_command(cli)->name;
    g_autoptr(GString) script = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(writers); i++) {
        if (strcmp(writers[i].shell, shell) == 0)
            writers[i].write(script, cli_root(cli));
    }
    g_autoptr(Json) value = json_pack("{s:s,s:s}", "shell", shell, "script", script->str);
    if (out_format(cli_out(cli)) == OUT_JSON)
        out_json(cli_out(cli), value);
    else
        out_raw(cli_out(cli), script->str);
    return EXIT_CODE_OK;
}

static const Command bash = {
    .name = "bash",
    .summary = "Write the script for bash",
    .details = "Put it in place with: coop completion bash >~/.local/share/bash-completion/completions/coop",
    .run = run,
};
static const Command zsh = {
    .name = "zsh",
    .summary = "Write the script for zsh",
    .details = "Put it in a folder of $fpath: coop completion zsh >~/.zfunc/_coop",
    .run = run,
};
static const Command fish = {
    .name = "fish",
    .summary = "Write the script for fish",
    .details = "Put it in place with: coop completion fish >~/.config/fish/completions/coop.fish",
    .run = run,
};
static const Command *const commands[] = {&bash, &zsh, &fish, NULL};

const Command command_completion = {
    .name = "completion",
    .summary = "Write a completion script for a shell",
    .commands = commands,
};

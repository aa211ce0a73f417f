/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <string.h>

#include "cli/parse.h"
#include "cli/usage.h"

struct Cli {
    CliParsed parsed;
    Out *out;
};

const Command *
cli_command(const Cli *cli)
{
    return cli_parsed_command(&cli->parsed);
}

const Command *
cli_root(const Cli *cli)
{
    return cli->parsed.path[0];
}

Out *
cli_out(const Cli *cli)
{
    return cli->out;
}

GPtrArray *
cli_option_all(const Cli *cli, const char *name)
{
    GPtrArray *values = g_ptr_array_new();

    for (guint i = 0; i < cli->parsed.given->len; i++) {
        const CliGiven *given = &g_array_index(cli->parsed.given, CliGiven, i);

        if (strcmp(given->name, name) == 0)
            g_ptr_array_add(values, given->value);
    }
    return values;
}

const char *
cli_option(const Cli *cli, const char *name)
{
    g_autoptr(GPtrArray) values = cli_option_all(cli, name);

    return values->len > 0 ? values->pdata[values->len - 1] : NULL;
}

const char *const *
cli_args(const Cli *cli)
{
    return (const char *const *)cli->parsed.args->pdata;
}

guint
cli_n_args(const Cli *cli)
{
    return cli->parsed.args->len - 1;
}

ExitCode
cli_fail(Cli *cli, ExitCode code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    out_error(cli->out, (int)code, "%s", text);
    return code;
}

ExitCode
cli_fail_error(Cli *cli, const GError *error)
{
    return cli_fail(cli, exit_code_of(error), "%s", error->message);
}

static ExitCode
fail_usage(Cli *cli, const GError *error)
{
    g_autofree char *path = cli_parsed_path(&cli->parsed);

    return cli_fail(cli, EXIT_CODE_USAGE, "%s\nTry '%s --help'.", error->message, path);
}

static ExitCode
run(Cli *cli, const Command *root, int argc, const char *const *argv)
{
    g_autoptr(GError) error = NULL;

    if (!cli_parse(root, argc, argv, &cli->parsed, &error))
        return fail_usage(cli, error);
    /* The guess took every -o for ours; one behind a command to run is not. */
    out_set_format(cli->out, g_strcmp0(cli_option(cli, "output"), "json") == 0 ? OUT_JSON : OUT_TEXT);
    if (cli->parsed.help) {
        usage_show(cli->out, cli->parsed.path, cli->parsed.depth);
        return EXIT_CODE_OK;
    }
    return cli_command(cli)->run(cli);
}

ExitCode
cli_main(const Command *root, int argc, const char *const *argv, int out_fd, int error_fd)
{
    g_autoptr(Out) out = out_new(out_fd, error_fd, cli_guess_format(argc, argv), out_wants_colour(out_fd));
    Cli cli = {.out = out};
    ExitCode code = run(&cli, root, argc, argv);

    if (code == EXIT_CODE_OK && !out_ok(out))
        code = cli_fail(&cli, EXIT_CODE_FAILED, "could not write the result");
    cli_parsed_clear(&cli.parsed);
    return code;
}

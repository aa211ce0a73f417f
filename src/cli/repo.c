/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/repo-watch.h"
#include "forge/repo.h"

char *
repo_path(const char *owner, const char *name, const char *more)
{
    g_autofree char *o = g_uri_escape_string(owner, NULL, FALSE);
    g_autofree char *n = g_uri_escape_string(name, NULL, FALSE);

    return g_strdup_printf("/api/v1/repos/%s/%s%s", o, n, more);
}

char *
repo_path_of_arg(Cli *cli, const char *more)
{
    g_autofree char *owner = NULL, *name = NULL;
    g_autoptr(GError) error = NULL;

    if (!repo_name_split(cli_args(cli)[0], &owner, &name, &error)) {
        cli_fail_error(cli, error);
        return NULL;
    }
    return repo_path(owner, name, more);
}

/* ---- coop repo ls ---- */

static void
make_readable(Json *repo)
{
    const char *owner = json_string_value(json_object_get(repo, "owner"));
    const char *name = json_string_value(json_object_get(repo, "name"));
    g_autofree char *full = g_strdup_printf("%s/%s", owner != NULL ? owner : "", name != NULL ? name : "");
    g_autofree char *size = g_format_size((guint64)json_integer_value(json_object_get(repo, "bytes")));

    json_object_set_new(repo, "name", json_string(full));
    json_object_set_new(repo, "bytes", json_string(size));
}

/* Every page of it. */
static ExitCode
fetch_all(Cli *cli, Remote *remote, Json *list)
{
    json_int_t after = 0;

    for (;;) {
        g_autofree char *path = g_strdup_printf("/api/v1/repos?limit=1000&after=%" JSON_INTEGER_FORMAT,
                                                after);
        g_autoptr(Json) body = NULL;
        ExitCode code = remote_call(remote, "GET", path, NULL, &body);
        const Json *next = json_object_get(body, "next");

        if (code != EXIT_CODE_OK)
            return code;
        if (json_array_extend(list, json_object_get(body, "repositories")) < 0)
            return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no list of repositories",
                            remote_address(remote));
        if (!json_is_integer(next) || json_integer_value(next) <= after)
            return EXIT_CODE_OK;
        after = json_integer_value(next);
    }
}

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"name", "NAME"},
        {"state", "STATE"},
        {"default_branch", "BRANCH"},
        {"bytes", "SIZE"},
        {"pushed_at", "PUSHED"},
        {"upstream", "MIRRORS"},
        {NULL},
    };
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) list = json_array();
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = fetch_all(cli, remote, list);
    if (code != EXIT_CODE_OK)
        return code;
    for (size_t i = 0; out_format(cli_out(cli)) == OUT_TEXT && i < json_array_size(list); i++)
        make_readable(json_array_get(list, i));
    out_table(cli_out(cli), columns, list);
    return EXIT_CODE_OK;
}

/* ---- coop repo show ---- */

static void
show_repo(Cli *cli, Json *repo)
{
    static const OutColumn fields[] = {
        {"name", "Name"},
        {"description", "What"},
        {"state", "State"},
        {"problem", "Problem"},
        {"default_branch", "Branch"},
        {"bytes", "Size"},
        {"source", "From"},
        {"upstream", "Mirrors"},
        {"created_at", "Created"},
        {"pushed_at", "Pushed"},
        {"fetched_at", "Fetched"},
        {"id", "Id"},
        {NULL},
    };

    if (out_format(cli_out(cli)) == OUT_TEXT)
        make_readable(repo);
    out_fields(cli_out(cli), fields, repo);
}

static ExitCode
run_show(Cli *cli)
{
    g_autofree char *path = repo_path_of_arg(cli, "");
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) body = NULL;

    if (path == NULL)
        return EXIT_CODE_USAGE;
    ExitCode code = remote_open(cli, &remote);
    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", path, NULL, &body);
    if (code == EXIT_CODE_OK)
        show_repo(cli, body);
    return code;
}

/* ---- coop repo add, create ---- */

/* "https://host/a/thing.git/" and "/home/me/thing" are both called thing. */
static char *
guess_name(const char *source)
{
    g_autofree char *base = g_path_get_basename(source);

    if (g_str_has_suffix(base, ".git"))
        base[strlen(base) - strlen(".git")] = '\0';
    return g_steal_pointer(&base);
}

/* A path is seen from where the user is. */
static char *
resolve_source(Cli *cli, const char *given)
{
    if (strstr(given, "://") != NULL)
        return g_strdup(given);
    char *real = realpath(given, NULL);

    if (real == NULL) {
        cli_fail(cli, EXIT_CODE_NOT_FOUND, "look at '%s': %s", given, g_strerror(errno));
        return NULL;
    }
    g_autofree char *copy = g_strdup(real);

    free(real);
    return g_steal_pointer(&copy);
}

static bool
set_name(Cli *cli, Json *body, const char *full)
{
    g_autofree char *owner = NULL, *name = NULL;
    g_autoptr(GError) error = NULL;

    if (!repo_name_split(full, &owner, &name, &error)) {
        cli_fail_error(cli, error);
        return false;
    }
    json_object_set_new(body, "owner", json_string(owner));
    json_object_set_new(body, "name", json_string(name));
    return true;
}

static void
set_options(Cli *cli, Json *body)
{
    static const struct {
        const char *option, *member;
    } texts[] = {{"branch", "default_branch"}, {"description", "description"}},
      switches[] = {{"mirror", "mirror"}, {"insecure", "insecure"}, {"commit", "first_commit"}};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (cli_option(cli, texts[i].option) != NULL)
            json_object_set_new(body, texts[i].member, json_string(cli_option(cli, texts[i].option)));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(switches); i++) {
        if (cli_option(cli, switches[i].option) != NULL)
            json_object_set_new(body, switches[i].member, json_true());
    }
}

static ExitCode
post(Cli *cli, const char *path, const Json *body)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) repo = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = repo_watch(cli, remote, path, body, &repo);
    if (code == EXIT_CODE_OK)
        show_repo(cli, repo);
    return code;
}

static ExitCode
run_add(Cli *cli)
{
    const char *given = cli_args(cli)[0];
    g_autofree char *source = resolve_source(cli, given);
    g_autofree char *guessed = source != NULL ? guess_name(source) : NULL;
    g_autoptr(Json) body = json_object();

    if (source == NULL)
        return EXIT_CODE_NOT_FOUND;
    if (!set_name(cli, body, cli_option(cli, "name") != NULL ? cli_option(cli, "name") : guessed))
        return EXIT_CODE_USAGE;
    json_object_set_new(body, "source", json_string(source));
    set_options(cli, body);
    return post(cli, "/api/v1/repos", body);
}

static ExitCode
run_create(Cli *cli)
{
    g_autoptr(Json) body = json_object();

    if (!set_name(cli, body, cli_args(cli)[0]))
        return EXIT_CODE_USAGE;
    set_options(cli, body);
    return post(cli, "/api/v1/repos", body);
}

static ExitCode
run_fetch(Cli *cli)
{
    g_autofree char *path = repo_path_of_arg(cli, "/fetch");

    return path != NULL ? post(cli, path, NULL) : EXIT_CODE_USAGE;
}

/* ---- coop repo rm ---- */

static ExitCode
run_rm(Cli *cli)
{
    g_autofree char *path = repo_path_of_arg(cli, cli_option(cli, "force") != NULL ? "?force=1" : "");

    return path != NULL ? remote_remove(cli, path, cli_args(cli)[0]) : EXIT_CODE_USAGE;
}

/* ---- the commands ---- */

#define ONE_REPO .args = "[OWNER/]NAME", .args_min = 1, .args_max = 1, .settings = CLI_SETTINGS_CLIENT

static const CliOption add_options[] = {
    {.name = "name", .value = "[OWNER/]NAME", .help = "what it is called here; guessed if not named"},
    {.name = "branch", .value = "NAME", .help = "the default branch; as the source has it if not named"},
    {.name = "description", .value = "TEXT", .help = "what it is"},
    {.name = "mirror", .help = "fetch from the URL again and again"},
    {.name = "insecure", .help = "allow http to another machine"},
    {NULL},
};
static const CliOption create_options[] = {
    {.name = "branch", .value = "NAME", .help = "the default branch, main if not named"},
    {.name = "description", .value = "TEXT", .help = "what it is"},
    {.name = "commit", .help = "begin with an empty commit"},
    {NULL},
};

static const CliOption rm_options[] = {
    {.name = "force", .letter = 'f', .help = "also while sandboxes have work trees of it"},
    {NULL},
};

static const Command repo_add = {
    .name = "add",
    .summary = "Import a repository with its history",
    .args = "PATH|URL",
    .args_min = 1,
    .args_max = 1,
    .details = "A path is read by the server, a URL fetched by it. Credentials in a URL "
               "are used once and kept nowhere.",
    .options = add_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_add};
static const Command repo_create_command = {.name = "create",
                                            .summary = "Make an empty repository",
                                            .options = create_options,
                                            ONE_REPO,
                                            .run = run_create};
static const Command repo_ls = {
    .name = "ls", .summary = "List the repositories", .settings = CLI_SETTINGS_CLIENT, .run = run_ls};
static const Command repo_show = {
    .name = "show", .summary = "Show one repository", ONE_REPO, .run = run_show};
static const Command repo_fetch_command = {
    .name = "fetch", .summary = "Fetch a mirror, or try a failed import again", ONE_REPO, .run = run_fetch};
static const Command repo_rm = {.name = "rm",
                                .summary = "Remove a repository with its issues and pull requests",
                                .options = rm_options,
                                ONE_REPO,
                                .run = run_rm};

static const Command *const commands[] = {
    &repo_add, &repo_create_command, &repo_ls, &repo_show, &repo_fetch_command, &repo_set, &repo_rm, NULL};

const Command command_repo = {
    .name = "repo",
    .summary = "Make, import, mirror and remove repositories",
    .commands = commands,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* A receipt, checked without any server if the key is given. */
#include <string.h>

#include "base/err.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/remote.h"
#include "forge/receipt.h"

enum {
    MS_PER_S = 1000,
    ASK_MS = 5000, /* the server for its key */
};

/* Whose signature it has to be. */
typedef struct Signer {
    char *key;     /* NULL: not known */
    char *whose;   /* the server that says that it is its own; NULL: given */
    char *problem; /* why it is not known; NULL: it does not matter */
} Signer;

static void
signer_clear(Signer *signer)
{
    g_free(signer->key);
    g_free(signer->whose);
    g_free(signer->problem);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Signer, signer_clear)

static const char *
text_of(const Json *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));

    return text != NULL ? text : "-";
}

/* ---- the key ---- */

static bool
is_key(const char *text)
{
    return strlen(text) == 2 * RECEIPT_KEY_LEN && strspn(text, "0123456789abcdefABCDEF") == strlen(text);
}

/* Hex digits; or a file with them, or with what GET /api/v1/receipts/key answers. */
static char *
read_key(const char *value, GError **error)
{
    g_autofree char *text = NULL;
    size_t len;

    if (is_key(value))
        return g_strdup(value);
    text = input_read(value, RECEIPT_TEXT_MAX, &len, error);
    if (text == NULL)
        return NULL;
    g_autoptr(Json) answer = json_decode(text, len, NULL);
    const char *member = json_string_value(json_object_get(answer, "key"));
    g_autofree char *key = g_strstrip(g_strdup(member != NULL ? member : text));

    if (!is_key(key)) {
        err_set(error, ERR_INVALID, "'%s' has no key of %d hex digits", value, 2 * RECEIPT_KEY_LEN);
        return NULL;
    }
    return g_steal_pointer(&key);
}

/* Of the server that any other command would talk to.  None, or none that says it, is no error here. */
static ExitCode
ask_key(Cli *cli, Signer *signer)
{
    g_autoptr(Remote) remote = NULL;
    g_auto(RemoteReply) reply = {0};
    RemoteCall call = REMOTE_CALL_INIT;
    ExitCode code = remote_open(cli, &remote);

    if (code != EXIT_CODE_OK)
        return code;
    call.path = "/api/v1/receipts/key";
    call.answer_ms = call.stall_ms = ASK_MS;
    remote_try(remote, &call, &reply);
    const char *key = json_string_value(json_object_get(reply.body, "key"));
    if (reply.code == EXIT_CODE_OK && key != NULL && is_key(key)) {
        signer->key = g_strdup(key);
        signer->whose = g_strdup(remote_address(remote));
    } else {
        signer->problem = reply.message != NULL
                              ? g_strdup(reply.message)
                              : g_strdup_printf("the server at %s says no key", remote_address(remote));
    }
    return EXIT_CODE_OK;
}

static ExitCode
find_signer(Cli *cli, Signer *signer)
{
    const char *given = cli_option(cli, "key");
    bool any = cli_option(cli, "any-key") != NULL;
    g_autoptr(GError) error = NULL;

    if (given != NULL && any)
        return cli_fail(cli, EXIT_CODE_USAGE, "--key and --any-key exclude each other");
    if (any)
        return EXIT_CODE_OK;
    if (given == NULL)
        return ask_key(cli, signer);
    signer->key = read_key(given, &error);
    return signer->key != NULL ? EXIT_CODE_OK : cli_fail_error(cli, error);
}

/* ---- a clone ---- */

/* The tree of a commit in a clone of whoever runs this. */
static char *
tree_in(const char *folder, const char *commit, GError **error)
{
    g_autofree char *what = g_strconcat(commit, "^{tree}", NULL);
    const char *const argv[] = {"git",      "-c",      "core.fsmonitor=false", "-C", folder, "rev-parse",
                                "--verify", "--quiet", "--end-of-options",     what, NULL};
    g_autofree char *out = NULL;
    int status;

    if (!g_spawn_sync(NULL, (char **)(guintptr)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, NULL,
                      &status, error))
        return NULL;
    if (status != 0) {
        err_set(error, ERR_NOT_FOUND, "the clone '%s' has no commit %s", folder, commit);
        return NULL;
    }
    return g_strdup(g_strstrip(out));
}

static bool
compare_clone(Cli *cli, const Json *receipt, GError **error)
{
    const char *folder = cli_option(cli, "repo"), *commit = cli_option(cli, "commit");
    const char *wanted = text_of(receipt, "tree");

    if (folder == NULL)
        return true;
    g_autofree char *tree = tree_in(folder, commit != NULL ? commit : text_of(receipt, "head"), error);

    return tree != NULL &&
           (strcmp(tree, wanted) == 0 ||
            err_set(error, ERR_DENIED, "the tree of that commit is %s: not what was checked", tree));
}

/* ---- in words ---- */

static OutStyle
style_of(const char *conclusion)
{
    return strcmp(conclusion, "success") == 0 || strcmp(conclusion, "passed") == 0 ? OUT_GOOD : OUT_BAD;
}

static void
show_command(Out *out, const Json *command)
{
    const char *conclusion = text_of(command, "conclusion");
    double seconds = (double)json_integer_value(json_object_get(command, "duration_ms")) / MS_PER_S;

    out_text(out, style_of(conclusion), "  %-9s", conclusion);
    out_text(out, OUT_PLAIN, " %s: %s\n", text_of(command, "name"), text_of(command, "run"));
    out_text(out, OUT_DIM,
             "            exit code %" JSON_INTEGER_FORMAT " (%s), %.1f s, %" JSON_INTEGER_FORMAT
             " bytes of output\n",
             json_integer_value(json_object_get(command, "exit_code")), text_of(command, "reason"), seconds,
             json_integer_value(json_object_get(command, "output_bytes")));
}

static void
show_signer(Out *out, const Signer *signer)
{
    out_text(out, OUT_GOOD, "The signature holds.\n");
    if (signer->key == NULL)
        out_text(out, OUT_WARN, "Whose it is was not asked of anybody: anyone can have signed this.\n");
    else if (signer->whose != NULL)
        out_text(out, OUT_PLAIN, "It is that of the server at %s.\n", signer->whose);
    else
        out_text(out, OUT_PLAIN, "It is that of the key that was given.\n");
}

static void
show(Cli *cli, const Json *receipt, const Signer *signer)
{
    Out *out = cli_out(cli);
    const Json *commands = json_object_get(receipt, "commands");
    gint64 number = json_integer_value(json_object_get(receipt, "number"));
    size_t i;
    Json *command;

    show_signer(out, signer);
    out_text(out, OUT_PLAIN, "A Coop server (key %s) says that it checked %s", text_of(receipt, "key_id"),
             text_of(receipt, "repository"));
    if (number > 0)
        out_text(out, OUT_PLAIN, " #%" G_GINT64_FORMAT, number);
    out_text(out, OUT_PLAIN, "\n  commit    %s\n  tree      %s\n  base      %s\n", text_of(receipt, "head"),
             text_of(receipt, "tree"), text_of(receipt, "base"));
    out_text(
        out, OUT_PLAIN, "  in a box  %s (%s)\n  with      %s of the %s\n  from      %s\n  to        %s\n",
        text_of(receipt, "template"), text_of(receipt, "template_hash"), text_of(receipt, "commands_source"),
        text_of(receipt, "commands_from"), text_of(receipt, "began"), text_of(receipt, "ended"));
    out_text(out, style_of(text_of(receipt, "result")), "Result: %s\n", text_of(receipt, "result"));
    json_array_foreach(commands, i, command) show_command(out, command);
    if (json_array_size(commands) == 0)
        out_text(out, OUT_WARN, "  no command was run\n");
}

static ExitCode
judge(Cli *cli, const Json *receipt, const Signer *signer)
{
    if (strcmp(text_of(receipt, "result"), "passed") != 0)
        return cli_fail(cli, EXIT_CODE_FAILED, "the receipt holds, but the checks did not pass");
    if (signer->problem == NULL)
        return EXIT_CODE_OK;
    return cli_fail(cli, EXIT_CODE_UNPROVEN,
                    "nothing was changed since it was signed, but who signed it is not known (%s). Give the "
                    "server's key with --key, or --any-key where it does not matter",
                    signer->problem);
}

static ExitCode
run(Cli *cli)
{
    g_auto(Signer) signer = {0};
    g_autoptr(GError) error = NULL;
    size_t len;
    ExitCode code = find_signer(cli, &signer);

    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *text = input_read(cli_args(cli)[0], RECEIPT_TEXT_MAX, &len, &error);

    if (text == NULL)
        return cli_fail_error(cli, error);
    g_autoptr(Json) receipt = receipt_verify(text, len, signer.key, &error);

    if (receipt == NULL && signer.whose != NULL && err_kind(error) == ERR_DENIED)
        return cli_fail(
            cli, EXIT_CODE_FAILED,
            "this receipt does not hold for the server at %s: %s (that of another server needs its "
            "--key)",
            signer.whose, error->message);
    if (receipt == NULL || !compare_clone(cli, receipt, &error))
        return cli_fail(cli, EXIT_CODE_FAILED, "this receipt does not hold: %s", error->message);
    out_json(cli_out(cli), receipt);
    show(cli, receipt, &signer);
    return judge(cli, receipt, &signer);
}

static const CliOption options[] = {
    {.name = "key", .value = "FILE|HEX", .help = "the public key of the server that must have signed it"},
    {.name = "any-key", .help = "whoever signed it: learn only that nothing was changed since"},
    {.name = "repo", .value = "PATH", .help = "also compare the tree with a commit of this clone"},
    {.name = "commit", .value = "REV", .help = "which commit; the one that was checked if not named"},
    {NULL},
};

const Command command_verify = {
    .name = "verify",
    .summary = "Check a receipt of a server's checks",
    .args = "RECEIPT",
    .args_min = 1,
    .args_max = 1,
    .details =
        "RECEIPT is a file, or - for standard input: what GET .../checks/{suite}/receipt answers. With "
        "--key, which is what GET /api/v1/receipts/key answers, no server is needed; without it the server "
        "is asked for its own. Ends with 1 where the receipt does not hold, and where it says that the "
        "checks did not "
        "pass; with 8 where nobody says whose key it is signed with.",
    .options = options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};

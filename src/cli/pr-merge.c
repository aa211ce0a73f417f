/* SPDX-License-Identifier: Apache-2.0 */
/* A merge goes through the queue of its branch: the command follows its entry there until that has ended,
 * and what it ends with is what the entry ended with. */
#include <glib-unix.h>
#include <signal.h>
#include <string.h>

#include "cli/pr.h"
#include "cli/repo-watch.h"
#include "cli/threads.h"

enum { WAIT_MS = 500, AGAIN_MS = 2000, LOST_MAX = 5 };

typedef struct Merge {
    Cli *cli;
    ForgeCall call;
    char *path;        /* of the queue */
    gint64 number, id; /* of the pull request, and of its entry */
    char *told;        /* what was said of it last */
} Merge;

static void
tell(Merge *m, const char *text)
{
    if (g_strcmp0(m->told, text) == 0)
        return;
    g_free(m->told);
    m->told = g_strdup(text);
    out_notice(cli_out(m->cli), "%s", text);
}

/* How many are before it for the same branch. */
static guint
count_before(Merge *m, const Json *entry)
{
    g_autofree char *target = g_uri_escape_string(forge_text(entry, "target"), NULL, FALSE);
    g_autofree char *path = g_strdup_printf("%s?target=%s&per_page=100", m->path, target);
    RemoteCall ask = REMOTE_CALL_INIT;
    g_auto(RemoteReply) reply = {0};
    guint n = 0;
    size_t i;
    Json *other;

    ask.path = path;
    remote_try(m->call.remote, &ask, &reply);
    json_array_foreach(json_object_get(reply.body, "merges"), i, other)
        n += json_integer_value(json_object_get(other, "id")) < m->id;
    return n;
}

static void
tell_state(Merge *m, const Json *entry)
{
    static const struct {
        const char *state, *text;
    } rows[] = {
        {"building", "merging onto the newest commit"},
        {"checking", "checking what came of it in a clean box"},
        {"landing", "moving the branch"},
    };
    const char *state = forge_text(entry, "state");

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].state, state) == 0)
            tell(m, rows[i].text);
    }
    if (strcmp(state, "queued") == 0) {
        guint before = count_before(m, entry);
        g_autofree char *text = before > 0 ? g_strdup_printf("waiting behind %u", before)
                                           : g_strdup("waiting for its turn");

        tell(m, text);
    }
}

static bool
is_under_way(const Json *entry)
{
    static const char *const states[] = {"queued", "building", "checking", "landing", NULL};

    return g_strv_contains(states, forge_text(entry, "state"));
}

/* ---- how it ended ---- */

static void
tell_conflicts(Merge *m, const Json *entry)
{
    size_t i;
    Json *file;

    json_array_foreach(json_object_get(json_object_get(entry, "conflict"), "files"), i, file)
        out_notice(cli_out(m->cli), "both sides changed %s", forge_text(file, "path"));
}

static ExitCode
end(Merge *m, const Json *entry)
{
    const char *state = forge_text(entry, "state"), *problem = forge_text(entry, "problem");

    if (strcmp(state, "landed") == 0) {
        out_json(cli_out(m->cli), entry);
        out_text(cli_out(m->cli), OUT_GOOD, "merged %s/%s#%" G_GINT64_FORMAT " into %s: %s\n", m->call.owner,
                 m->call.name, m->number, forge_text(entry, "target"), forge_text(entry, "landing_oid"));
        return EXIT_CODE_OK;
    }
    if (strcmp(state, "conflict") == 0) {
        tell_conflicts(m, entry);
        return cli_fail(m->cli, EXIT_CODE_CONFLICT,
                        "not merged: it conflicts with %s; put it right on its branch and push",
                        forge_text(entry, "target"));
    }
    if (*state == '\0')
        return cli_fail(m->cli, EXIT_CODE_FAILED, "the answer of the server cannot be used: it has no state");
    return cli_fail(m->cli, EXIT_CODE_FAILED, "not merged: %s", *problem != '\0' ? problem : state);
}

static ExitCode
follow(Merge *m, Json **entry)
{
    g_autofree char *path = g_strdup_printf("%s/%" G_GINT64_FORMAT "?wait_ms=%d", m->path, m->id, WAIT_MS);
    RemoteCall ask = REMOTE_CALL_INIT;

    ask.path = path;
    for (guint lost = 0; is_under_way(*entry);) {
        g_auto(RemoteReply) reply = {0};

        tell_state(m, *entry);
        remote_try(m->call.remote, &ask, &reply);
        if (remote_is_cancelled(m->call.remote))
            return cli_fail(m->cli, EXIT_CODE_FAILED, "it stays in the queue: 'coop queue' shows it");
        /* A server that is started again goes on with it. */
        if (reply.code == EXIT_CODE_UNREACHABLE && ++lost < LOST_MAX && remote_wait(m->call.remote, AGAIN_MS))
            continue;
        if (reply.message != NULL)
            return cli_fail(m->cli, reply.code, "%s", reply.message);
        lost = 0;
        json_decref(*entry);
        *entry = g_steal_pointer(&reply.body);
    }
    return end(m, *entry);
}

/* ---- how it begins ---- */

static gboolean
on_signal(gpointer data)
{
    remote_cancel(data);
    return G_SOURCE_CONTINUE;
}

static ExitCode
wait_for_it(Merge *m, Json **entry)
{
    const guint sources[] = {g_unix_signal_add(SIGINT, on_signal, m->call.remote),
                             g_unix_signal_add(SIGTERM, on_signal, m->call.remote)};
    ExitCode code = follow(m, entry);

    for (size_t i = 0; i < G_N_ELEMENTS(sources); i++)
        g_source_remove(sources[i]);
    return code;
}

static ExitCode
begin(Merge *m)
{
    g_autoptr(Json)
        body = json_pack("{s:I, s:s*, s:s*, s:s*, s:s*}", "number", (json_int_t)m->number, "method",
                         cli_option(m->cli, "method"), "title", cli_option(m->cli, "title"), "message",
                         cli_option(m->cli, "message"), "head_oid", cli_option(m->cli, "head"));
    g_autoptr(Json) entry = NULL;

    if (body == NULL)
        return cli_fail(m->cli, EXIT_CODE_USAGE, "the options must be UTF-8");
    ExitCode code = forge_call_run(&m->call, "POST", m->path, body, &entry);

    if (code != EXIT_CODE_OK)
        return code;
    m->id = json_integer_value(json_object_get(entry, "id"));
    if (cli_option(m->cli, "no-wait") == NULL)
        return wait_for_it(m, &entry);
    out_json(cli_out(m->cli), entry);
    out_text(cli_out(m->cli), OUT_PLAIN, "%s/%s#%" G_GINT64_FORMAT " is in the queue of %s\n", m->call.owner,
             m->call.name, m->number, forge_text(entry, "target"));
    return EXIT_CODE_OK;
}

static ExitCode
run(Cli *cli)
{
    Merge m = {.cli = cli};

    ExitCode code = forge_call_begin(cli, &m.call, &m.number);

    if (code == EXIT_CODE_OK) {
        m.path = repo_path(m.call.owner, m.call.name, "/merges");
        code = begin(&m);
    }
    forge_call_clear(&m.call);
    g_free(m.path);
    g_free(m.told);
    return code;
}

static const char *const methods[] = {"merge", "squash", "rebase", NULL};
static const CliOption options[] = {
    {.name = "method",
     .letter = 'm',
     .value = "METHOD",
     .help = "merge, squash or rebase",
     .choices = methods},
    {.name = "title", .value = "TEXT", .help = "of the commit; made of the pull request if not named"},
    {.name = "message", .value = "TEXT", .help = "below the title"},
    {.name = "head", .value = "COMMIT", .help = "only if this is its newest commit"},
    {.name = "no-wait", .help = "leave it in the queue"},
    REPO_OPTION,
    {NULL},
};
const Command pr_merge = {
    .name = "merge",
    .summary = "Merge a pull request, when its turn has come and its checks have passed",
    ONE_THREAD,
    .details =
        "What it is merged with is checked again first, in a clean box. The command waits for that; when\n"
        "it is interrupted the pull request stays in the queue.",
    .options = options,
    .run = run,
};

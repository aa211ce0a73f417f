/* SPDX-License-Identifier: Apache-2.0 */
/* A commit in a work tree from outside.  Where nobody says what it is about, git in the box says what
 * changed, and the message is made of that. */
#include "base/err.h"
#include "forge/forge-private.h"
#include "forge/message.h"
#include "forge/workspace-private.h"

enum { EXIT_NOTHING = 43, PATHS_MAX = 1000 };

#define STAGE                                                                                                \
    "git add --all -- \"$@\" || exit\n"                                                                      \
    "git diff --cached --quiet && exit 43\n"
#define COMMIT                                                                                               \
    "git commit --quiet --file=- || exit\n"                                                                  \
    "git rev-parse HEAD\n"

static GError *
commit_error(Op *op, int code, const char *err)
{
    op->idle = code == EXIT_NOTHING;
    if (op->idle)
        return g_error_new_literal(ERR_DOMAIN, ERR_CONFLICT, "nothing has changed");
    return box_call_error("commit", code, err);
}

static void
on_committed(int code, const char *out, const char *err, const GError *error, void *data)
{
    Op *op = data;
    g_autofree char *oid = g_strndup(out, GIT_OID_LEN);
    bool good = error == NULL && code == 0 && git_oid_is_valid(oid);
    g_autoptr(GError) said = error == NULL && !good ? commit_error(op, code, err) : NULL;

    if (!good) {
        op_end(op, NULL, error != NULL ? error : said);
        return;
    }
    Json *value = op_result(op, oid);

    json_object_set_new(value, "generated", json_boolean(op->message != NULL));
    if (op->message != NULL)
        json_object_set_new(value, "message", json_string(op->message));
    op_end(op, value, NULL);
}

/* ---- without a message ---- */

static char *
write_message(const Op *op, const char *changes)
{
    guint more;
    g_autoptr(GPtrArray) files = workspace_changes_parse(changes, &more);
    const char *identity_id = op->workspace->identity_id;
    const Identity *who = identity_id != NULL ? identity_find(op->forge, identity_id) : NULL;
    BoxInfo box;

    box_info(op->box, &box);
    return message_write(files, more,
                         &(MessageHint){.task = box.task_id, .agent = who != NULL ? who->name : NULL});
}

static void
on_listed(int code, const char *out, const char *err, const GError *error, void *data)
{
    Op *op = data;
    g_autoptr(GError) said = error == NULL && code != 0 ? commit_error(op, code, err) : NULL;

    if (error != NULL || said != NULL || op->forge->workspaces == NULL) {
        op_end(op, NULL, error != NULL ? error : said);
        return;
    }
    op->message = write_message(op, out);
    op_run(op, (const char *const[]){"/bin/sh", "-c", COMMIT, NULL}, op->message, on_committed);
}

void
workspace_commit(Forge *forge, Box *box, const CommitSpec *spec, ForgeJsonFunc done, void *data)
{
    static const char list[] = STAGE "export LC_ALL=C\n"
                                     "changes() { git -c core.quotePath=false diff --cached -M \"$1\"; }\n"
                                     "changes --shortstat && changes --name-status && changes --numstat\n";
    static const char *const everything[] = {".", NULL};
    Op *op = op_new(forge, box, "commit", spec->actor, done, data);
    const char *const *paths = spec->paths != NULL ? spec->paths : everything;
    g_autoptr(GPtrArray) argv = g_ptr_array_new();

    if (!op_begin(op, spec->repo))
        return;
    g_ptr_array_add(argv, (gpointer)(guintptr) "/bin/sh");
    g_ptr_array_add(argv, (gpointer)(guintptr) "-c");
    g_ptr_array_add(argv, (gpointer)(guintptr)(spec->message != NULL ? STAGE COMMIT : list));
    g_ptr_array_add(argv, (gpointer)(guintptr) "sh");
    for (size_t i = 0; paths[i] != NULL && i < PATHS_MAX; i++)
        g_ptr_array_add(argv, (gpointer)(guintptr)paths[i]);
    g_ptr_array_add(argv, NULL);
    op_run(op, (const char *const *)argv->pdata, spec->message,
           spec->message != NULL ? on_committed : on_listed);
}

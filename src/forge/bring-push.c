/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/bring.h"

enum { PUSH_TIMEOUT_MS = 15 * 60 * 1000 };

static char *
coded(const char *credentials)
{
    return g_base64_encode((const guchar *)credentials, strlen(credentials));
}

char *
bring_config(const char *credentials)
{
    if (credentials == NULL)
        return NULL;
    g_autofree char *code = coded(credentials);

    return g_strconcat("[http]\n\textraHeader = Authorization: Basic ", code, "\n", NULL);
}

bool
bring_failed(const char *credentials, GError **error)
{
    const char *colon = credentials != NULL ? strchr(credentials, ':') : NULL;

    if (colon == NULL || colon[1] == '\0' || error == NULL || *error == NULL)
        return false;
    g_autofree char *code = coded(credentials);
    g_autoptr(GString) text = g_string_new((*error)->message);

    (void)g_string_replace(text, colon + 1, "[secret]", 0);
    (void)g_string_replace(text, code, "[secret]", 0);
    g_free((*error)->message);
    (*error)->message = g_strdup(text->str);
    return false;
}

/* Never with force: a branch that has gone another way there is somebody's work. */
bool
bring_push(GitRepo *git, const BringPush *push, GError **error)
{
    g_autofree char *config = bring_config(push->credentials);
    g_autofree char *spec = g_strconcat(push->oid, ":refs/heads/", push->branch, NULL);
    g_autoptr(GError) failed = NULL;

    if (!git_oid_is_valid(push->oid))
        return err_set(error, ERR_INVALID, "'%s' is no commit", push->oid);
    if (!git_branch_is_valid(push->branch, error))
        return false;
    GitCall call = {
        .access = GIT_REMOTE,
        .args = GIT_ARGS("push", "--no-verify", "--no-force", "--no-follow-tags", "--", push->url, spec),
        .config = config,
        .timeout_ms = PUSH_TIMEOUT_MS,
        .cancel = push->cancel};

    if (git_run(git, &call, NULL, &failed))
        return true;
    if (strstr(failed->message, "rejected]") != NULL)
        failed->code = ERR_CONFLICT;
    g_propagate_error(error, g_steal_pointer(&failed));
    return bring_failed(push->credentials, error);
}

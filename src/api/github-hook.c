/* SPDX-License-Identifier: Apache-2.0 */
/* What GitHub sends.  Nobody is known before the signature is: the bytes are held, bounded, compared as
 * they came, and only then read as JSON. */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "base/log.h"
#include "github/github.h"
#include "github/news.h"

enum { EVENT_NAME_MAX = 64 };

static void
on_taken(GithubTaken taken, const GError *error, void *data)
{
    static const char *const words[] = {
        [GITHUB_TAKEN] = "taken", [GITHUB_TAKEN_BEFORE] = "known", [GITHUB_NOT_OURS] = "ignored"};
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, taken == GITHUB_TAKEN ? 202 : 200,
                          json_pack("{s:s}", "result", words[taken]));
    http_request_unref(call->request);
}

/* A header that stands in rows. */
static bool
is_word(const char *text, size_t max)
{
    size_t n = text != NULL ? strlen(text) : 0;

    for (size_t i = 0; i < n; i++) {
        if (!g_ascii_isalnum(text[i]) && strchr("_-", text[i]) == NULL)
            return false;
    }
    return n > 0 && n <= max;
}

static void
take(ApiCall *call, const char *base_url, const guint8 *body, size_t n)
{
    const char *name = http_request_header(call->request, "x-github-event");
    const char *guid = http_request_header(call->request, "x-github-delivery");
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) payload = NULL;

    if (!is_word(name, EVENT_NAME_MAX) || !is_word(guid, GITHUB_GUID_MAX))
        err_set(&error, ERR_INVALID, "X-GitHub-Event and X-GitHub-Delivery are missing or make no sense");
    else
        payload = json_decode_foreign(body, n, GITHUB_VALUES_MAX, NULL, &error);
    if (payload == NULL) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    github_news_take(github_accounts(call->api->github), call->api->forge, call->api->db,
                     &(GithubNews){base_url, name, guid, payload}, on_taken, call);
}

static void
on_body(HttpRequest *request, const guint8 *body, size_t n, const GError *error, void *data)
{
    ApiCall *call = data;
    const char *signature = http_request_header(request, "x-hub-signature-256");

    if (error != NULL) {
        if (err_kind(error) == ERR_LIMIT)
            log_warn("github", "a webhook was refused: its body is too large",
                     log_str("event", http_request_header(request, "x-github-event")),
                     log_str("delivery", http_request_header(request, "x-github-delivery")),
                     log_int("max_bytes", GITHUB_HOOK_BODY_MAX));
        call_respond_body_error(call, error);
        return;
    }
    const char *base_url = github_accounts_verify(github_accounts(call->api->github), signature, body, n);

    if (base_url == NULL)
        respond_error(request, 401, "X-Hub-Signature-256 is missing or made with another secret");
    else
        take(call, base_url, body, n);
}

static void
post_hook(ApiCall *call)
{
    const char *type = http_request_header(call->request, "content-type");

    if (call->api->github == NULL || !github_accounts_take_hooks(github_accounts(call->api->github)))
        respond_error(call->request, 404, "no account has a webhook secret: see 'coop github login --help'");
    else if (type == NULL || !g_str_has_prefix(type, "application/json"))
        respond_error(call->request, 415, "the webhook's content type has to be application/json");
    else
        http_request_read_all(call->request, GITHUB_HOOK_BODY_MAX, on_body, call);
}

const ApiRoute github_hook_routes[] = {
    {"POST", "/webhooks/github", 0, ROUTE_PUBLIC, post_hook},
    {NULL},
};

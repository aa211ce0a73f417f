/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "forge/hook.h"
#include "github/account-private.h"
#include "github/rights.h"
#include "github/text.h"

const char github_base_default[] = "https://api.github.com";

/* ---- one account ---- */

Account *
account_new(GithubAccounts *owner, const char *base_url, const char *token)
{
    Account *a = g_new0(Account, 1);

    *a = (Account){.owner = owner,
                   .base_url = g_strdup(base_url),
                   .login = g_strdup(""),
                   .token = g_strdup(token),
                   .rights = json_object(),
                   .created_us = clock_wall_us()};
    return a;
}

void
account_free(Account *a)
{
    if (a == NULL)
        return;
    github_client_free(a->client);
    github_wipe(a->token);
    github_wipe(a->webhook_secret);
    json_decref(a->rights);
    g_free(a->base_url);
    g_free(a->login);
    g_free(a);
}

static char *
token_of(void *ctx)
{
    return g_strdup(((Account *)ctx)->token);
}

GithubClient *
account_client(Account *a)
{
    if (a->client == NULL)
        a->client = github_client_new(&(GithubClientSpec){.loop = a->owner->spec.loop,
                                                          .base_url = a->base_url,
                                                          .token = token_of,
                                                          .ctx = a,
                                                          .write_pause_ms = a->owner->spec.write_pause_ms});
    return a->client;
}

static void
add_time(Json *object, const char *name, gint64 wall_us)
{
    char text[CLOCK_ISO_LEN + 1];

    clock_format_iso(wall_us, text);
    json_object_set_new(object, name, wall_us != 0 ? json_string(text) : json_null());
}

static Json *
rate_json(const Account *a)
{
    GithubStats stats;

    if (a->client == NULL)
        return json_null();
    github_client_stats(a->client, &stats);
    gint64 left_us = MAX(stats.budget.reset_us - clock_mono_us(), 0);

    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:i}", "limit", (json_int_t)stats.budget.limit,
                     "remaining", (json_int_t)stats.budget.remaining, "full_again_s",
                     (json_int_t)(left_us / G_USEC_PER_SEC), "calls", (json_int_t)stats.calls, "unchanged",
                     (json_int_t)stats.cached, "tried_again", (json_int_t)stats.retries, "waiting",
                     (int)stats.waiting);
}

Json *
account_json(const Account *a)
{
    static const char *const members[] = {"scopes", "may", "lacks", "probed"};
    Json *object = json_pack("{s:s, s:s, s:s, s:s, s:b, s:o}", "base_url", a->base_url, "login", a->login,
                             "kind", github_token_kind(a->token), "from",
                             a->from_environment ? "environment" : "row", "webhooks",
                             a->webhook_secret != NULL, "rate", rate_json(a));

    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        Json *value = json_object_get(a->rights, members[i]);

        json_object_set_new(object, members[i], value != NULL ? json_deep_copy(value) : json_null());
    }
    add_time(object, "expires_at", a->expires_us);
    add_time(object, "checked_at", a->checked_us);
    json_object_set_new(object, "warnings",
                        github_rights_warnings(a->rights, a->expires_us, clock_wall_us()));
    return object;
}

/* ---- all of them ---- */

GithubAccounts *
github_accounts_new(const GithubAccountsSpec *spec)
{
    GithubAccounts *accounts = g_new0(GithubAccounts, 1);

    *accounts = (GithubAccounts){.refs = 1, .spec = *spec, .asking = g_ptr_array_new()};
    accounts->spec.token = g_strdup(spec->token);
    accounts->spec.token_base = g_strdup(spec->token_base);
    accounts->list = g_ptr_array_new_with_free_func((GDestroyNotify)account_free);
    return accounts;
}

GithubAccounts *
accounts_ref(GithubAccounts *accounts)
{
    accounts->refs++;
    return accounts;
}

void
accounts_unref(GithubAccounts *accounts)
{
    if (--accounts->refs > 0)
        return;
    g_ptr_array_unref(accounts->list);
    g_ptr_array_unref(accounts->asking);
    github_wipe((char *)(guintptr)accounts->spec.token);
    g_free((gpointer)(guintptr)accounts->spec.token_base);
    g_free(accounts);
}

void
github_accounts_free(GithubAccounts *accounts)
{
    if (accounts == NULL)
        return;
    accounts->stopped = true;
    /* Each hears of its end, and leaves the list. */
    while (accounts->asking->len > 0)
        g_clear_pointer(&((Account *)accounts->asking->pdata[0])->client, github_client_free);
    g_ptr_array_set_size(accounts->list, 0);
    accounts_unref(accounts);
}

Account *
account_find(const GithubAccounts *accounts, const char *base_url)
{
    for (guint i = 0; i < accounts->list->len; i++) {
        Account *a = accounts->list->pdata[i];

        if (strcmp(a->base_url, base_url) == 0)
            return a;
    }
    return NULL;
}

void
account_drop(GithubAccounts *accounts, const char *base_url)
{
    Account *a = account_find(accounts, base_url);

    if (a != NULL)
        g_ptr_array_remove(accounts->list, a);
}

void
account_adopt(GithubAccounts *accounts, Account *account)
{
    account_drop(accounts, account->base_url);
    g_ptr_array_add(accounts->list, account);
}

Json *
github_accounts_json(const GithubAccounts *accounts)
{
    Json *list = json_array();

    for (guint i = 0; i < accounts->list->len; i++)
        json_array_append_new(list, account_json(accounts->list->pdata[i]));
    return list;
}

/* ---- whose repository ---- */

/* Where the repositories of a place are fetched from: "https://github.com". */
static char *
git_origin(const char *base_url)
{
    g_autoptr(GUri) uri = g_uri_parse(base_url, G_URI_FLAGS_ENCODED, NULL);

    if (strcmp(base_url, github_base_default) == 0)
        return g_strdup("https://github.com");
    return g_uri_join(G_URI_FLAGS_ENCODED, g_uri_get_scheme(uri), NULL, g_uri_get_host(uri),
                      g_uri_get_port(uri), "", NULL, NULL);
}

static Account *
account_of_url(const GithubAccounts *accounts, const char *git_url)
{
    for (guint i = 0; i < accounts->list->len; i++) {
        Account *a = accounts->list->pdata[i];
        g_autofree char *origin = git_origin(a->base_url);
        size_t n = strlen(origin);

        if (g_ascii_strncasecmp(git_url, origin, n) == 0 && git_url[n] == '/')
            return a;
    }
    return NULL;
}

/* The last two segments: "/o/r.git", or "/git/o/r.git" of a Coop. */
static bool
split_name(const char *git_url, char **ret_owner, char **ret_repo)
{
    const char *start = strstr(git_url, "://");
    const char *path = start != NULL ? strchr(start + strlen("://"), '/') : NULL;

    if (path == NULL)
        return false;
    g_auto(GStrv) parts = g_strsplit(path + 1, "/", 8);
    guint n = g_strv_length(parts);

    if (n > 0 && *parts[n - 1] == '\0')
        n--;
    if (n < 2 || *parts[n - 2] == '\0')
        return false;
    *ret_owner = g_strdup(parts[n - 2]);
    *ret_repo = g_strdup(parts[n - 1]);
    if (g_str_has_suffix(*ret_repo, ".git"))
        (*ret_repo)[strlen(*ret_repo) - strlen(".git")] = '\0';
    return true;
}

void
github_place_clear(GithubPlace *place)
{
    g_clear_pointer(&place->owner, g_free);
    g_clear_pointer(&place->repo, g_free);
}

bool
github_accounts_find(GithubAccounts *accounts, const char *git_url, GithubPlace *ret_place)
{
    Account *a = git_url != NULL ? account_of_url(accounts, git_url) : NULL;

    *ret_place = (GithubPlace){0};
    if (a == NULL || !split_name(git_url, &ret_place->owner, &ret_place->repo))
        return false;
    ret_place->client = account_client(a);
    ret_place->login = a->login;
    return true;
}

char *
github_accounts_credentials(GithubAccounts *accounts, const char *git_url)
{
    const Account *a = account_of_url(accounts, git_url);

    return a != NULL ? g_strconcat("x-access-token:", a->token, NULL) : NULL;
}

/* ---- webhooks ---- */

bool
github_accounts_take_hooks(const GithubAccounts *accounts)
{
    for (guint i = 0; i < accounts->list->len; i++) {
        if (((const Account *)accounts->list->pdata[i])->webhook_secret != NULL)
            return true;
    }
    return false;
}

/* All are tried, and each to its end. */
const char *
github_accounts_verify(const GithubAccounts *accounts, const char *signature, const void *body, size_t n)
{
    const char *whose = NULL;

    for (guint i = 0; signature != NULL && i < accounts->list->len; i++) {
        const Account *a = accounts->list->pdata[i];

        if (a->webhook_secret == NULL)
            continue;
        g_autofree char *ours = hook_sign(a->webhook_secret, strlen(a->webhook_secret), body, n);

        if (strlen(signature) == strlen(ours) && sodium_memcmp(signature, ours, strlen(ours)) == 0)
            whose = a->base_url;
    }
    return whose;
}

const char *
github_accounts_login(const GithubAccounts *accounts, const char *base_url)
{
    const Account *account = account_find(accounts, base_url);

    return account != NULL ? account->login : "";
}

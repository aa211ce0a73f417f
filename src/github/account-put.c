/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "github/account-private.h"
#include "github/rights.h"
#include "github/text.h"

/* One token that is looked at before it is kept. */
typedef struct Put {
    GithubAccounts *accounts;
    Account *account; /* as it will be; NULL once it was adopted */
    const char *action;
    char *actor;
    ForgeJsonFunc done;
    void *data;
} Put;

static void
put_free(Put *p)
{
    account_free(p->account);
    accounts_unref(p->accounts);
    g_free(p->actor);
    g_free(p);
}

static void
fail(Put *p, const GError *error)
{
    p->done(NULL, error, p->data);
    put_free(p);
}

static void
on_row(void *data, const GError *error)
{
    Put *p = data;

    if (error != NULL) {
        fail(p, error);
        return;
    }
    g_autoptr(Json) shown = account_json(p->account);

    if (!p->accounts->stopped)
        account_adopt(p->accounts, g_steal_pointer(&p->account));
    p->done(shown, NULL, p->data);
    put_free(p);
}

/* A look at the token that was there may end behind a sign-in or a sign-out, and takes nothing back. */
static bool
check_login(const Put *p, const char *login, GError **error)
{
    const Account *old = account_find(p->accounts, p->account->base_url);

    if (strcmp(p->action, "check") == 0 && (old == NULL || strcmp(old->token, p->account->token) != 0))
        return err_set(error, ERR_CONFLICT, "the account of %s has changed meanwhile", p->account->base_url);
    if (strcmp(p->action, "rotate") != 0 || old == NULL || *old->login == '\0' ||
        g_ascii_strcasecmp(old->login, login) == 0)
        return true;
    return err_set(error, ERR_CONFLICT,
                   "the new token is of '%s', the old one of '%s': use 'coop github login'", login,
                   old->login);
}

static void
on_rights(Json *rights, const GError *error, void *data)
{
    Put *p = data;
    Account *a = p->account;
    g_autoptr(GError) other = NULL;

    g_ptr_array_remove(p->accounts->asking, a);
    if (error != NULL || !check_login(p, github_text(rights, "login"), &other)) {
        fail(p, error != NULL ? error : other);
        return;
    }
    g_free(a->login);
    a->login = g_strdup(github_text(rights, "login"));
    json_decref(a->rights);
    a->rights = json_deep_copy(rights);
    a->expires_us = github_number(rights, "expires_us");
    a->checked_us = clock_wall_us();
    /* One of the environment stays there. */
    if (a->from_environment)
        on_row(p, NULL);
    else
        account_row_put(a, p->action, p->actor, on_row, p);
}

static bool
secret_is_plain(const char *text, size_t max)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (!g_ascii_isgraph(*at))
            return false;
    }
    return *text != '\0' && strlen(text) <= max;
}

static bool
check_spec(const GithubAccounts *accounts, const GithubLogin *login, const char *base_url, GError **error)
{
    const Account *old = account_find(accounts, base_url);

    if (login->token == NULL && old == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no account for %s", base_url);
    if (login->rotate && old == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no account for %s to rotate: use 'coop github login'",
                       base_url);
    if (login->token != NULL && !secret_is_plain(login->token, GITHUB_TOKEN_MAX))
        return err_set(error, ERR_INVALID, "a token has 1 to %d letters, digits and signs", GITHUB_TOKEN_MAX);
    if (login->webhook_secret != NULL && *login->webhook_secret != '\0' &&
        !secret_is_plain(login->webhook_secret, GITHUB_HOOK_SECRET_MAX))
        return err_set(error, ERR_INVALID, "a webhook's secret has at most %d letters, digits and signs",
                       GITHUB_HOOK_SECRET_MAX);
    if (old == NULL && accounts->list->len >= GITHUB_ACCOUNTS_MAX)
        return err_set(error, ERR_LIMIT, "there are %d accounts already", GITHUB_ACCOUNTS_MAX);
    return true;
}

static Account *
make_account(GithubAccounts *accounts, const GithubLogin *login, const char *base_url)
{
    const Account *old = account_find(accounts, base_url);
    const char *hook = login->webhook_secret != NULL ? login->webhook_secret
                       : old != NULL                 ? old->webhook_secret
                                                     : NULL;
    Account *a = account_new(accounts, base_url, login->token != NULL ? login->token : old->token);

    a->webhook_secret = hook != NULL && *hook != '\0' ? g_strdup(hook) : NULL;
    if (old != NULL)
        a->created_us = old->created_us;
    a->from_environment = login->token == NULL && old->from_environment;
    return a;
}

void
github_account_put(GithubAccounts *accounts, const GithubLogin *login, ForgeJsonFunc done, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *base_url = github_base_url(
        login->base_url != NULL ? login->base_url : github_base_default, &error);

    if (base_url == NULL || !check_spec(accounts, login, base_url, &error)) {
        done(NULL, error, data);
        return;
    }
    Put *p = g_new0(Put, 1);

    *p = (Put){.accounts = accounts_ref(accounts),
               .account = make_account(accounts, login, base_url),
               .action = login->rotate          ? "rotate"
                         : login->token != NULL ? "login"
                                                : "check",
               .actor = g_strdup(login->actor),
               .done = done,
               .data = data};
    g_ptr_array_add(accounts->asking, p->account);
    github_rights_ask(account_client(p->account), on_rights, p);
}

void
github_account_check(GithubAccounts *accounts, const char *base_url, ForgeJsonFunc done, void *data)
{
    github_account_put(accounts, &(GithubLogin){.base_url = base_url, .actor = "coop"}, done, data);
}

/* ---- removing ---- */

typedef struct Remove {
    GithubAccounts *accounts;
    char *base_url;
    DbDone done;
    void *data;
} Remove;

static void
on_removed(void *data, const GError *error)
{
    Remove *r = data;

    if (error == NULL && !r->accounts->stopped)
        account_drop(r->accounts, r->base_url);
    r->done(r->data, error);
    accounts_unref(r->accounts);
    g_free(r->base_url);
    g_free(r);
}

void
github_account_remove(GithubAccounts *accounts, const char *base_url, const char *actor, DbDone done,
                      void *data)
{
    g_autoptr(GError) error = NULL;
    const Account *a = account_find(accounts, base_url);

    if (a == NULL) {
        err_set(&error, ERR_NOT_FOUND, "there is no account for %s", base_url);
        done(data, error);
        return;
    }
    Remove *r = g_new0(Remove, 1);

    *r = (Remove){accounts_ref(accounts), g_strdup(base_url), done, data};
    account_row_delete(accounts, base_url, actor, on_removed, r);
}

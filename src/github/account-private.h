/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "github/account.h"

/* What account.c (in memory), account-rows.c (on the disk) and account-put.c (asking) share. */

typedef struct Account {
    GithubAccounts *owner;
    char *base_url, *login;
    char *token, *webhook_secret; /* NULL: none */
    Json *rights;                 /* rights.h */
    gint64 expires_us, created_us, checked_us;
    bool from_environment;
    GithubClient *client; /* NULL: not used yet */
} Account;

struct GithubAccounts {
    guint refs;              /* the owner, and each piece of work under way */
    GithubAccountsSpec spec; /* its texts are ours */
    GPtrArray *list;         /* Account* */
    GPtrArray *asking;       /* Account* that are no accounts yet; borrowed */
    bool stopped;            /* the owner has let go */
};
GithubAccounts *accounts_ref(GithubAccounts *accounts);
void accounts_unref(GithubAccounts *accounts);

Account *account_new(GithubAccounts *owner, const char *base_url, const char *token);
void account_free(Account *account);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Account, account_free)
Account *account_find(const GithubAccounts *accounts, const char *base_url);
GithubClient *account_client(Account *account);
Json *account_json(const Account *account);
/* Takes it, in the place of one for the same base URL. */
void account_adopt(GithubAccounts *accounts, Account *account);
void account_drop(GithubAccounts *accounts, const char *base_url);

/* Both with the event that tells of it; `action` is login, rotate, check or logout. */
void account_row_put(const Account *account, const char *action, const char *actor, DbDone done, void *data);
void account_row_delete(GithubAccounts *accounts, const char *base_url, const char *actor, DbDone done,
                        void *data);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"
#include "forge/seal.h"
#include "github/client.h"

/* Places that speak GitHub's dialect and what we may do there: one token for each base URL, sealed in
 * its row, open in this process alone.  It goes into the Authorization header of calls to that base URL,
 * and into the settings of the one git that fetches from or pushes to its repositories. */
typedef struct GithubAccounts GithubAccounts;

enum {
    GITHUB_TOKEN_MAX = 512,
    GITHUB_HOOK_SECRET_MAX = 512,
    GITHUB_ACCOUNTS_MAX = 16,
    GITHUB_EXPIRES_SOON_DAYS = 14,
};

extern const char github_base_default[]; /* "https://api.github.com" */

typedef struct GithubAccountsSpec {
    Loop *loop; /* borrowed, as are the next two */
    Db *db;
    const Seal *seal;
    guint write_pause_ms;
    /* Of the environment: an account without a row, where there is none for that place.  NULL: none. */
    const char *token, *token_base;
} GithubAccountsSpec;

GithubAccounts *github_accounts_new(const GithubAccountsSpec *spec);
/* Reads the rows.  Nothing is asked of anybody. */
void github_accounts_load(GithubAccounts *accounts, DbDone done, void *data);
void github_accounts_free(GithubAccounts *accounts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GithubAccounts, github_accounts_free)

/* An account as JSON: base_url, login, kind, scopes, may, lacks, probed, expires_at, checked_at, webhooks,
 * from ("row" or "environment"), rate, warnings: texts for people.  Never a secret. */

typedef struct GithubLogin {
    const char *actor;
    const char *base_url; /* NULL: GitHub */
    const char *token;    /* NULL: as it is */
    /* For /webhooks/github; NULL: as it is, "": none. */
    const char *webhook_secret;
    bool rotate; /* only where there is one, and for the same login */
} GithubLogin;
/* Asks the other side who that is and what it may do, then writes it down; a token that is not taken
 * there changes nothing. */
void github_account_put(GithubAccounts *accounts, const GithubLogin *login, ForgeJsonFunc done, void *data);
/* Asks once more. */
void github_account_check(GithubAccounts *accounts, const char *base_url, ForgeJsonFunc done, void *data);
void github_account_remove(GithubAccounts *accounts, const char *base_url, const char *actor, DbDone done,
                           void *data);
Json *github_accounts_json(const GithubAccounts *accounts); /* a list */

/* ---- for what goes there ---- */

typedef struct GithubPlace {
    GithubClient *client; /* borrowed */
    const char *login;    /* "": nobody has asked yet */
    char *owner, *repo;
} GithubPlace;
void github_place_clear(GithubPlace *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(GithubPlace, github_place_clear)
/* The account that a repository's upstream belongs to; false: there is none. */
bool github_accounts_find(GithubAccounts *accounts, const char *git_url, GithubPlace *ret_place);
/* "user:password" for git; to be wiped.  NULL: none. */
char *github_accounts_credentials(GithubAccounts *accounts, const char *git_url);

/* The base URL whose webhook secret made that signature of the bytes, in a time that says nothing; NULL:
 * nobody's. */
const char *
github_accounts_verify(const GithubAccounts *accounts, const char *signature, const void *body, size_t n);
/* Who we are there; "": nobody has asked yet, or there is no account. */
const char *github_accounts_login(const GithubAccounts *accounts, const char *base_url);
bool github_accounts_take_hooks(const GithubAccounts *accounts); /* whether anybody has a secret */

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "github/account-private.h"
#include "github/text.h"
#include "store/events.h"

static char *
purpose_of(const char *what, const char *base_url)
{
    return g_strconcat(what, ":", base_url, NULL);
}

static const char token_purpose[] = "github", hook_purpose[] = "github-hook";

/* ---- loading ---- */

typedef struct Load {
    GithubAccounts *accounts;
    GPtrArray *found; /* Account* */
    DbDone done;
    void *data;
} Load;

/* NULL: it was sealed with another key, or there is none. */
static char *
open_column(const Load *l, DbRows *rows, int column, const char *what, const char *base_url)
{
    g_autofree char *purpose = purpose_of(what, base_url);
    g_autoptr(GError) error = NULL;
    size_t n;
    const void *sealed = db_rows_blob(rows, column, &n);

    if (db_rows_is_null(rows, column))
        return NULL;
    char *secret = seal_unseal(l->accounts->spec.seal, purpose, sealed, n, NULL, &error);

    if (secret == NULL)
        log_warn("github", "a secret cannot be opened: sign in again", log_str("base_url", base_url),
                 log_gerror(error));
    return secret;
}

static Account *
read_account(const Load *l, DbRows *rows)
{
    const char *base_url = db_rows_text(rows, 0), *rights = db_rows_text(rows, 4);
    char *token = open_column(l, rows, 2, token_purpose, base_url);

    if (token == NULL)
        return NULL;
    Account *a = account_new(l->accounts, base_url, token);

    github_wipe(token);
    g_free(a->login);
    a->login = g_strdup(db_rows_text(rows, 1));
    a->webhook_secret = open_column(l, rows, 3, hook_purpose, base_url);
    json_decref(a->rights);
    a->rights = json_decode(rights, strlen(rights), NULL);
    if (a->rights == NULL)
        a->rights = json_object();
    a->expires_us = db_rows_int(rows, 5);
    a->created_us = db_rows_int(rows, 6);
    a->checked_us = db_rows_int(rows, 7);
    return a;
}

static bool
load_work(DbTx *tx, void *data, GError **error)
{
    Load *l = data;
    g_autoptr(DbRows) rows = db_query(tx,
                                      "SELECT base_url, login, secret, webhook_secret, scopes, expires_us, "
                                      "created_us, checked_us FROM github_accounts ORDER BY base_url",
                                      DB_NO_ARGS, error);
    bool more = rows != NULL;

    while (more) {
        if (!db_rows_next(rows, &more, error))
            return false;
        Account *a = more ? read_account(l, rows) : NULL;

        if (a != NULL)
            g_ptr_array_add(l->found, a);
    }
    return rows != NULL;
}

static void
add_environment(GithubAccounts *accounts)
{
    const GithubAccountsSpec *spec = &accounts->spec;
    const char *base = spec->token_base != NULL ? spec->token_base : github_base_default;

    if (spec->token == NULL || account_find(accounts, base) != NULL)
        return;
    Account *a = account_new(accounts, base, spec->token);

    a->from_environment = true;
    account_adopt(accounts, a);
}

static void
on_loaded(void *data, const GError *error)
{
    Load *l = data;

    if (error == NULL && !l->accounts->stopped) {
        g_ptr_array_set_size(l->accounts->list, 0);
        for (guint i = 0; i < l->found->len; i++)
            account_adopt(l->accounts, l->found->pdata[i]);
        g_ptr_array_set_size(l->found, 0);
        add_environment(l->accounts);
    }
    l->done(l->data, error);
    for (guint i = 0; i < l->found->len; i++)
        account_free(l->found->pdata[i]);
    g_ptr_array_unref(l->found);
    accounts_unref(l->accounts);
    g_free(l);
}

void
github_accounts_load(GithubAccounts *accounts, DbDone done, void *data)
{
    Load *l = g_new0(Load, 1);

    *l = (Load){accounts_ref(accounts), g_ptr_array_new(), done, data};
    db_read(accounts->spec.db, load_work, on_loaded, l, NULL);
}

/* ---- writing ---- */

typedef struct Write {
    char *base_url, *login, *rights, *action, *actor;
    GBytes *secret, *webhook_secret; /* sealed */
    gint64 expires_us, created_us, checked_us;
    DbDone done;
    void *data;
} Write;

static void
write_free(gpointer data)
{
    Write *w = data;

    g_free(w->base_url);
    g_free(w->login);
    g_free(w->rights);
    g_free(w->action);
    g_free(w->actor);
    g_clear_pointer(&w->secret, g_bytes_unref);
    g_clear_pointer(&w->webhook_secret, g_bytes_unref);
    g_free(w);
}

static DbValue
blob_of(GBytes *bytes)
{
    gsize n;
    const void *p = bytes != NULL ? g_bytes_get_data(bytes, &n) : NULL;

    return p != NULL ? db_blob(p, n) : db_null();
}

static bool
tell(DbTx *tx, const Write *w, GError **error)
{
    g_autoptr(Json)
        data = json_pack("{s:s, s:s, s:s?}", "action", w->action, "base_url", w->base_url, "login", w->login);
    g_autofree char *text = json_encode(data);

    return event_append(tx, &(EventSpec){.kind = "github.changed", .actor = w->actor, .data = text}, NULL,
                        error);
}

static bool
put_work(DbTx *tx, void *data, GError **error)
{
    const Write *w = data;

    return db_exec(
               tx,
               "INSERT INTO github_accounts (base_url, login, secret, webhook_secret, scopes, expires_us, "
               "budget, created_us, checked_us) VALUES (?, ?, ?, ?, ?, ?, '{}', ?, ?) ON CONFLICT "
               "(base_url) DO UPDATE SET login = excluded.login, secret = excluded.secret, "
               "webhook_secret = excluded.webhook_secret, scopes = excluded.scopes, "
               "expires_us = excluded.expires_us, checked_us = excluded.checked_us",
               DB_ARGS(db_text(w->base_url), db_text(w->login), blob_of(w->secret),
                       blob_of(w->webhook_secret), db_text(w->rights), db_int(w->expires_us),
                       db_int(w->created_us), db_int(w->checked_us)),
               error) &&
           tell(tx, w, error);
}

static bool
delete_work(DbTx *tx, void *data, GError **error)
{
    const Write *w = data;

    return db_exec(tx, "DELETE FROM github_accounts WHERE base_url = ?", DB_ARGS(db_text(w->base_url)),
                   error) &&
           tell(tx, w, error);
}

static void
on_written(void *data, const GError *error)
{
    Write *w = data;

    w->done(w->data, error);
}

static GBytes *
close_over(const Account *a, const char *what, const char *secret)
{
    g_autofree char *purpose = purpose_of(what, a->base_url);

    return secret != NULL ? seal_close_over(a->owner->spec.seal, purpose, secret, strlen(secret)) : NULL;
}

void
account_row_put(const Account *a, const char *action, const char *actor, DbDone done, void *data)
{
    Write *w = g_new0(Write, 1);

    *w = (Write){.base_url = g_strdup(a->base_url),
                 .login = g_strdup(a->login),
                 .rights = json_encode(a->rights),
                 .action = g_strdup(action),
                 .actor = g_strdup(actor),
                 .secret = close_over(a, token_purpose, a->token),
                 .webhook_secret = close_over(a, hook_purpose, a->webhook_secret),
                 .expires_us = a->expires_us,
                 .created_us = a->created_us,
                 .checked_us = a->checked_us,
                 .done = done,
                 .data = data};
    db_write(a->owner->spec.db, put_work, on_written, w, write_free);
}

void
account_row_delete(GithubAccounts *accounts, const char *base_url, const char *actor, DbDone done, void *data)
{
    Write *w = g_new0(Write, 1);

    *w = (Write){.base_url = g_strdup(base_url),
                 .action = g_strdup("logout"),
                 .actor = g_strdup(actor),
                 .done = done,
                 .data = data};
    db_write(accounts->spec.db, delete_work, on_written, w, write_free);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "github/github.h"

struct Github {
    guint refs; /* the owner, and a load under way */
    bool stopped;
    GithubSpec spec; /* borrowed things only */
    Seal *seal;
    GithubAccounts *accounts;
    Upstream *upstream;
    bool started;
};

static char *
find_credentials(const char *url, void *ctx)
{
    return github_accounts_credentials(((Github *)ctx)->accounts, url);
}

Github *
github_new(const GithubSpec *spec, GError **error)
{
    Seal *seal = seal_open(spec->home, error);

    if (seal == NULL)
        return NULL;
    Github *g = g_new0(Github, 1);

    *g = (Github){.refs = 1, .spec = *spec, .seal = seal};
    g->accounts = github_accounts_new(&(GithubAccountsSpec){.loop = spec->loop,
                                                            .db = spec->db,
                                                            .seal = seal,
                                                            .write_pause_ms = spec->write_pause_ms,
                                                            .token = spec->token,
                                                            .token_base = spec->token_base});
    g->upstream = upstream_new(&(UpstreamSpec){.forge = spec->forge,
                                               .accounts = g->accounts,
                                               .loop = spec->loop,
                                               .db = spec->db,
                                               .events = spec->events,
                                               .poll_ms = spec->poll_ms});
    forge_set_credentials(spec->forge, find_credentials, g);
    return g;
}

static void
github_unref(Github *g)
{
    if (--g->refs > 0)
        return;
    seal_free(g->seal);
    g_free(g);
}

typedef struct Load {
    Github *github;
    DbDone done;
    void *data;
} Load;

static void
on_loaded(void *data, const GError *error)
{
    Load *l = data;
    Github *g = l->github;

    if (error == NULL && !g->stopped && !g->started) {
        g->started = true;
        upstream_start(g->upstream);
    }
    l->done(l->data, error);
    github_unref(g);
    g_free(l);
}

void
github_load(Github *g, DbDone done, void *data)
{
    Load *l = g_new0(Load, 1);

    g->refs++;
    *l = (Load){g, done, data};
    github_accounts_load(g->accounts, on_loaded, l);
}

void
github_free(Github *g)
{
    if (g == NULL)
        return;
    g->stopped = true;
    forge_set_credentials(g->spec.forge, NULL, NULL);
    upstream_free(g->upstream);
    github_accounts_free(g->accounts);
    github_unref(g);
}

GithubAccounts *
github_accounts(Github *g)
{
    return g->accounts;
}

Upstream *
github_upstream(Github *g)
{
    return g->upstream;
}

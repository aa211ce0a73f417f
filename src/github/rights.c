/* SPDX-License-Identifier: Apache-2.0 */
#include "github/rights.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "github/account.h"
#include "github/text.h"

/* ---- what there is ---- */

const char *
github_token_kind(const char *token)
{
    static const struct {
        const char *start, *kind;
    } rows[] = {{"ghp_", "classic"},
                {"github_pat_", "fine-grained"},
                {"ghs_", "app"},
                {"ghu_", "app"},
                {"gho_", "classic"}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (g_str_has_prefix(token, rows[i].start))
            return rows[i].kind;
    }
    return "other";
}

/* Scopes of classic tokens that open nothing beyond what is needed. */
static const char *const fine_scopes[] = {"public_repo", "repo:status", "read:user", "user:email", NULL};

/* What is written has an empty body: whoever may write hears that it makes no sense (422), whoever may not
 * is told so first (403, 404), and nothing changes either way. */
typedef struct ProbeRow {
    const char *right, *path; /* below the repository */
    bool needed, writes;
} ProbeRow;

static const ProbeRow probes[] = {
    {"contents", "/branches?per_page=1", true},
    {"pull_requests", "/pulls?per_page=1&state=all", true},
    {"administration", "/keys?per_page=1", false},
    {"webhooks", "/hooks?per_page=1", false},
    {"secrets", "/actions/secrets?per_page=1", false},
    {"variables", "/actions/variables?per_page=1", false},
    {"vulnerability_alerts", "/dependabot/alerts?per_page=1", false},
    {"contents:write", "/git/refs", true, true},
    {"pull_requests:write", "/pulls", true, true},
    {"issues:write", "/issues", false, true},
    {"deployments:write", "/deployments", false, true},
};

/* ---- asking ---- */

typedef struct Ask {
    GithubClient *client;
    Json *rights, *nothing; /* the latter is {} */
    char *repo;             /* "/repos/owner/name" */
    size_t at;              /* in probes */
    void (*done)(Json *rights, const GError *error, void *data);
    void *data;
} Ask;

static void
finish(Ask *a, const GError *error)
{
    a->done(error == NULL ? a->rights : NULL, error, a->data);
    json_decref(a->rights);
    json_decref(a->nothing);
    g_free(a->repo);
    g_free(a);
}

static void probe_next(Ask *a);

static bool
is_about_rights(const GError *error)
{
    return error == NULL || err_kind(error) == ERR_DENIED || err_kind(error) == ERR_NOT_FOUND;
}

static void
on_probe(const GithubAnswer *answer, const GError *error, void *data)
{
    Ask *a = data;
    const ProbeRow *row = &probes[a->at++];

    /* Also of a repository that is empty. */
    bool makes_no_sense = error != NULL &&
                          (err_kind(error) == ERR_INVALID || err_kind(error) == ERR_CONFLICT);

    if (!is_about_rights(error) && !makes_no_sense) {
        finish(a, error);
        return;
    }
    bool is_there = error == NULL || (row->writes && makes_no_sense);

    if (is_there != row->needed)
        json_array_append_new(json_object_get(a->rights, row->needed ? "lacks" : "may"),
                              json_string(row->right));
    probe_next(a);
}

/* What is not there although it is needed is in `lacks`, what is there although it is not in `may`. */
static void
probe_next(Ask *a)
{
    if (a->at == G_N_ELEMENTS(probes)) {
        finish(a, NULL);
        return;
    }
    g_autofree char *path = g_strconcat(a->repo, probes[a->at].path, NULL);

    github_call(a->client,
                &(GithubRequest){.method = probes[a->at].writes ? "POST" : "GET",
                                 .path = path,
                                 .body = probes[a->at].writes ? a->nothing : NULL,
                                 .repeatable = true},
                on_probe, a);
}

static void
on_repos(const GithubAnswer *answer, const GError *error, void *data)
{
    Ask *a = data;
    const char *name = error == NULL ? github_text(json_array_get(answer->json, 0), "full_name") : NULL;
    const char *slash = name != NULL ? strchr(name, '/') : NULL;

    if (!is_about_rights(error) || slash == NULL) {
        finish(a, is_about_rights(error) ? NULL : error);
        return;
    }
    g_autofree char *owner = g_strndup(name, (size_t)(slash - name));

    a->repo = github_path("/repos/%s/%s", owner, slash + 1);
    json_object_set_new(a->rights, "probed", json_string(name));
    probe_next(a);
}

static void
read_scopes(Ask *a, const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, ",", 64);
    Json *scopes = json_object_get(a->rights, "scopes");

    for (guint i = 0; words[i] != NULL; i++) {
        g_autofree char *word = github_clean(g_strstrip(words[i]), 64);

        if (*word != '\0')
            json_array_append_new(scopes, json_string(word));
    }
}

static void
on_user(const GithubAnswer *answer, const GError *error, void *data)
{
    enum { LOGIN_MAX = 100 };
    Ask *a = data;
    const char *login = github_text(answer->json, "login");
    g_autoptr(GError) odd = NULL;

    if (error == NULL && login == NULL)
        err_set(&odd, ERR_INVALID, "%s: it does not say who we are there", github_client_base(a->client));
    if (error != NULL || odd != NULL) {
        finish(a, error != NULL ? error : odd);
        return;
    }
    g_autofree char *clean = github_clean(login, LOGIN_MAX);

    json_object_set_new(a->rights, "login", json_string(clean));
    json_object_set_new(a->rights, "expires_us", json_integer(github_expiry_us(answer->expires)));
    if (answer->scopes != NULL) {
        read_scopes(a, answer->scopes);
        finish(a, NULL);
        return;
    }
    github_call(a->client, &(GithubRequest){.path = "/user/repos?per_page=1&sort=pushed"}, on_repos, a);
}

void
github_rights_ask(GithubClient *client, void (*done)(Json *rights, const GError *error, void *data),
                  void *data)
{
    Ask *a = g_new0(Ask, 1);

    *a = (Ask){.client = client, .nothing = json_object(), .done = done, .data = data};
    a->rights = json_pack("{s:[], s:[], s:[], s:n}", "scopes", "may", "lacks", "probed");
    github_call(client, &(GithubRequest){.path = "/user"}, on_user, a);
}

/* ---- telling ---- */

static void warn(Json *list, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

static void
warn(Json *list, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, args);
    va_end(args);
    json_array_append_new(list, json_string(text));
}

static void
warn_of_scopes(Json *list, const Json *scopes)
{
    for (size_t i = 0; i < json_array_size(scopes); i++) {
        const char *scope = json_string_value(json_array_get(scopes, i));

        if (scope != NULL && !g_strv_contains(fine_scopes, scope))
            warn(list,
                 "the scope '%s' opens more than pull requests and contents of the repositories that are "
                 "meant: use a fine-grained token",
                 scope);
    }
}

static void
warn_of_rights(Json *list, const Json *rights, const char *member, const char *fmt)
{
    const Json *names = json_object_get(rights, member);

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        g_autoptr(GString) text = g_string_new(fmt);

        g_string_replace(text, "%", name != NULL ? name : "", 1);
        json_array_append_new(list, json_string(text->str));
    }
}

static void
warn_of_expiry(Json *list, gint64 expires_us, gint64 now_us)
{
    static const gint64 day_us = 24 * 3600 * (gint64)G_USEC_PER_SEC;
    char at[CLOCK_ISO_LEN + 1];

    if (expires_us == 0)
        return;
    clock_format_iso(expires_us, at);
    if (expires_us <= now_us)
        warn(list, "it has expired (%.10s): 'coop github rotate' takes a new one", at);
    else if (expires_us - now_us < GITHUB_EXPIRES_SOON_DAYS * day_us)
        warn(list, "it expires in %" G_GINT64_FORMAT " days (%.10s): 'coop github rotate' takes a new one",
             (expires_us - now_us) / day_us, at);
}

Json *
github_rights_warnings(const Json *rights, gint64 expires_us, gint64 now_us)
{
    Json *list = json_array();

    warn_of_expiry(list, expires_us, now_us);
    warn_of_scopes(list, json_object_get(rights, "scopes"));
    warn_of_rights(list, rights, "may",
                   "it has the permission '%', which is not needed: pull requests and contents will do");
    warn_of_rights(list, rights, "lacks", "it seems to lack the permission '%'");
    return list;
}

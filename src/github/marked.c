/* SPDX-License-Identifier: Apache-2.0 */
/* The comment that is written anew in its place. */
#include <string.h>

#include "github/calls.h"
#include "github/look.h"
#include "github/text.h"

typedef struct Put {
    GithubAsk ask; /* its texts are ours */
    gint64 number;
    char *login;
    Json *body;  /* what shall be there */
    Json *there; /* NULL: none yet */
} Put;

static void
put_free(Put *p)
{
    g_free((gpointer)(guintptr)p->ask.owner);
    g_free((gpointer)(guintptr)p->ask.repo);
    g_free(p->login);
    json_decref(p->body);
    json_decref(p->there);
    g_free(p);
}

/* Anybody can write a marker: it counts in what we wrote. */
static bool
on_page(const GithubAnswer *answer, void *data)
{
    Put *p = data;
    const Json *page = answer->json;

    for (size_t i = 0; i < json_array_size(page); i++) {
        Json *item = json_array_get(page, i);
        const char *login = github_text(json_object_get(item, "user"), "login");

        if (look_is_comment(item, p->body) && login != NULL && g_ascii_strcasecmp(login, p->login) == 0) {
            p->there = json_incref(item);
            return false;
        }
    }
    return true;
}

static void
on_pages(const GithubAnswer *answer, const GError *error, void *data)
{
    Put *p = data;
    bool is_same = p->there != NULL &&
                   look_same_text(github_text(p->there, "body"), github_text(p->body, "body"));

    if (error != NULL)
        p->ask.done(answer, error, p->ask.data);
    else if (is_same)
        p->ask.done(&(GithubAnswer){.status = 200, .json = p->there, .found = true}, NULL, p->ask.data);
    else if (p->there != NULL)
        github_comment_edit(&p->ask, github_number(p->there, "id"), p->body);
    else
        github_comment_create(&p->ask, p->number, p->body);
    put_free(p);
}

void
github_comment_put(const GithubAsk *ask, const GithubMarked *comment)
{
    g_autofree char *marker = look_marker(comment->marker);
    g_autofree char *text = g_strconcat(marker, "\n", comment->text, NULL);
    g_autofree char *path = github_path("/repos/%s/%s/issues/%d/comments?per_page=100", ask->owner, ask->repo,
                                        comment->number);
    Put *p = g_new0(Put, 1);

    *p = (Put){.ask = *ask,
               .number = comment->number,
               .login = g_strdup(comment->login),
               .body = json_pack("{s:s}", "body", text)};
    p->ask.owner = g_strdup(ask->owner);
    p->ask.repo = g_strdup(ask->repo);
    github_pages(ask->client, path, 0, on_page, on_pages, p);
}

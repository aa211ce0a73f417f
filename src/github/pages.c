/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "github/client.h"

typedef struct Pages {
    GithubClient *client;
    guint left;
    GithubPageFunc each;
    GithubFunc done;
    void *data;
} Pages;

static void on_page(const GithubAnswer *answer, const GError *error, void *data);

static void
ask(Pages *p, const char *path)
{
    github_call(p->client, &(GithubRequest){.path = path}, on_page, p);
}

static void
on_page(const GithubAnswer *answer, const GError *error, void *data)
{
    Pages *p = data;
    bool more = error == NULL && p->each(answer, p->data) && --p->left > 0 && answer->next != NULL;

    if (more) {
        ask(p, answer->next);
        return;
    }
    p->done(answer, error, p->data);
    g_free(p);
}

void
github_pages(GithubClient *client, const char *path, guint pages, GithubPageFunc each, GithubFunc done,
             void *data)
{
    Pages *p = g_new0(Pages, 1);

    *p = (Pages){client, pages > 0 ? MIN(pages, (guint)GITHUB_PAGES_MAX) : (guint)GITHUB_PAGES_MAX, each,
                 done, data};
    ask(p, path);
}

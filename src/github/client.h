/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "github/limits.h"
#include "http/client.h"
#include "json/json.h"

/* A place that speaks GitHub's REST dialect: GitHub itself, or a Coop, by base URL only.
 *
 * Reads go side by side; writes one after the other with a pause between them.  What the other side
 * says of its limits is kept to.  What passes by itself (5xx, broken connections, limits) is tried
 * again with growing, jittered pauses.  A write that may have been done although no answer came is
 * never just repeated: its GithubLook looks first.
 *
 * Everything runs on the loop; `done` never runs inside the call that starts it.  The token is asked
 * for at each try, goes to the base URL's own origin and nowhere else, and stands in no error. */
typedef struct GithubClient GithubClient;

enum {
    GITHUB_ANSWER_MAX = 8 << 20,    /* bytes of one answer's body */
    GITHUB_VALUES_MAX = 500 * 1000, /* JSON values in it */
    GITHUB_WAITING_MAX = 256,       /* calls; beyond: ERR_LIMIT */
    GITHUB_READS_MAX = 8,           /* at once */
    GITHUB_REDIRECTS_MAX = 3,
    GITHUB_PATH_MAX = 4096,
    GITHUB_PATIENCE_MS = 60 * 1000,
    GITHUB_TIMEOUT_MS = 30 * 1000, /* without a byte */
    GITHUB_TOTAL_MS = 120 * 1000,
    GITHUB_LOOK_PAGES = 3,
    GITHUB_PAGES_MAX = 100,
    GITHUB_CACHE_ENTRIES = 256, /* answers kept for If-None-Match */
    GITHUB_CACHE_BYTES = 8 << 20,
    GITHUB_BASE_MAX = 512,
};

typedef struct GithubClientSpec {
    Loop *loop;                /* borrowed */
    const char *base_url;      /* as github_base_url() gave it */
    char *(*token)(void *ctx); /* a copy, wiped after use; NULL: none is sent */
    void *ctx;
    guint write_pause_ms; /* between two writes */
    guint timeout_ms;     /* 0: GITHUB_TIMEOUT_MS */
    /* For tests; NULL: the monotonic clock, and GLib's numbers. */
    gint64 (*now_us)(void *ctx);
    guint32 (*random)(void *ctx);
} GithubClientSpec;

/* https, or http on this machine itself; no user, query or fragment; without a slash at its end. */
char *github_base_url(const char *text, GError **error);

GithubClient *github_client_new(const GithubClientSpec *spec);
/* What is under way ends with ERR_CANCELLED before this returns. */
void github_client_free(GithubClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GithubClient, github_client_free)
const char *github_client_base(const GithubClient *client);

/* What was learned under another token is forgotten. */
void github_client_forget(GithubClient *client);

typedef struct GithubAnswer {
    int status;       /* 0: none came */
    Json *json;       /* borrowed; NULL: it had none */
    const char *next; /* path of the next page; NULL: none */
    bool cached;      /* it was a 304: it cost nothing */
    bool found;       /* of a write: it had been done before, this is what was found */
    gint64 wait_us;   /* with ERR_LIMIT: so long is to be waited */
    /* Headers; NULL: absent. */
    const char *scopes, *expires, *accepted;
} GithubAnswer;

/* Without an error: 2xx, or what the cache had.  With one `answer` is what there is of it, never NULL:
 * ERR_DENIED (401, 403, a redirect elsewhere), ERR_NOT_FOUND, ERR_CONFLICT (405, 409), ERR_INVALID (422,
 * no sense), ERR_LIMIT (longer to wait than asked for; too much), ERR_UNAVAILABLE, ERR_TIMEOUT,
 * ERR_CANCELLED. */
typedef void (*GithubFunc)(const GithubAnswer *answer, const GError *error, void *data);

/* How a write is recognised whose answer was lost. */
typedef struct GithubLook {
    const char *path;   /* of a list, or of one object */
    const char *member; /* the list is in this one; NULL: it is the whole */
    /* Whether `item` is what `body` asked for. */
    bool (*is_it)(const Json *item, const Json *body);
} GithubLook;

/* As a request's path: not below the base, but where GraphQL is, beside it. */
extern const char github_path_graphql[];

typedef struct GithubRequest {
    const char *method; /* NULL: GET */
    const char *path;   /* below the base, with its query: "/repos/a/b" */
    const Json *body;   /* NULL: none */
    const char *accept; /* NULL: application/vnd.github+json; another one's answer is a JSON string */
    const GithubLook *look;
    bool look_first;   /* an earlier life may have sent it */
    bool repeatable;   /* a POST that does no harm twice */
    guint patience_ms; /* how long limits may hold it; 0: GITHUB_PATIENCE_MS */
} GithubRequest;

/* Copies the request. */
void github_call(GithubClient *client, const GithubRequest *request, GithubFunc done, void *data);

/* Every page of a list, one after the other, at most `pages` (0: GITHUB_PAGES_MAX).  `each` says
 * whether it wants more; what it gets is one answer.  `done` gets the last answer; its `next` is not NULL
 * when some were left. */
typedef bool (*GithubPageFunc)(const GithubAnswer *page, void *data);
void github_pages(GithubClient *client, const char *path, guint pages, GithubPageFunc each, GithubFunc done,
                  void *data);

typedef struct GithubStats {
    GithubBudget budget;
    guint waiting, under_way;
    guint64 calls, cached, retries, found;
} GithubStats;
void github_client_stats(const GithubClient *client, GithubStats *ret_stats);
/* When something that waits is due, by the client's clock; 0: nothing waits. */
gint64 github_client_due_us(const GithubClient *client);
/* Looks at what is due: for tests, which move the clock. */
void github_client_wake(GithubClient *client);

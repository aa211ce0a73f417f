/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "api/call.h"
#include "forge/forge.h"
#include "forge/repo-settings.h"
#include "forge/thread.h"

/* GitHub's REST dialect: what the routes below /api/v3 share.
 *
 * The gate, call_repo(), call_read_json() and call_respond_error() are those of the whole API; under
 * these paths their errors have GitHub's form: {"message", "documentation_url", "status"}, a 404 is
 * "Not Found", ERR_INVALID is 422 "Validation Failed" with its text in `errors`.
 *
 * A route has ROUTE_BASIC, since a token may come as a password too. */

#define V3 "/api/v3"
#define V3_REPO V3 "/repos/{owner}/{repo}"

enum {
    V3_PAGE = 30,
    V3_PAGE_MAX = 100,
    V3_PAGE_NUMBER_MAX = 1000 * 1000, /* so that no product of the two runs over */
    V3_TIME_LEN = 20,                 /* "2026-01-31T12:00:00Z" */
};

/* ---- errors ---- */

/* Is it answered in this dialect? */
bool v3_is_asked(const HttpRequest *request);
int v3_error_status(const GError *error);
Json *v3_error_json(const HttpRequest *request, int status, const char *message);

/* 422 with one entry in `errors`.  Codes: missing, missing_field, invalid, already_exists,
 * unprocessable, custom.  `field` and `message` may be NULL. */
typedef struct V3Invalid {
    const char *resource; /* "Reference", "PullRequest" */
    const char *field;
    const char *code;
    const char *message;
} V3Invalid;
void v3_respond_invalid(ApiCall *call, const V3Invalid *invalid);

/* ---- answers ---- */

/* Takes `value`.  A 200 to GET has a weak ETag made of what is sent; one that the caller has already is a
 * 304 without a body, which does not count against the key's rate. */
void v3_respond(ApiCall *call, int status, Json *value);
/* The same with what was encoded before, in a thread. */
typedef struct V3Encoded {
    GBytes *bytes;
    const char *type;
    char *tag; /* without the W/ */
} V3Encoded;
void v3_encode(V3Encoded *encoded, const Json *value);
void v3_encode_bytes(V3Encoded *encoded, const char *type, GBytes *bytes); /* takes `bytes` */
void v3_encoded_clear(V3Encoded *encoded);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(V3Encoded, v3_encoded_clear)
void v3_respond_encoded(ApiCall *call, int status, const V3Encoded *encoded);
void v3_respond_empty(ApiCall *call); /* 204 */
/* What every answer has: the rate, the version.  The functions above and errors do it themselves. */
void v3_add_headers(HttpRequest *request);

/* Ends of work that was begun with a reference to the request, which they drop: `data` is the call. */
void v3_on_done(void *data, const GError *error); /* 204 */

/* ---- pages ---- */

/* page and per_page of the query; what is no number, or is out of bounds, is taken for the nearest that
 * is allowed, as GitHub does. */
void v3_read_page(const ApiCall *call, ForgePage *ret_page);
/* The same where a list is as long as `max` if nobody says otherwise. */
void v3_read_page_of(const ApiCall *call, guint max, ForgePage *ret_page);
/* The Link header: of a list that has `total` entries, or of one of which no more is known. */
void v3_link(ApiCall *call, const ForgePage *page, gint64 total);
void v3_link_more(ApiCall *call, const ForgePage *page, bool more);

/* ---- requests ---- */

/* Accept: "application/vnd.github.v3.diff" or "application/vnd.github.diff". */
typedef enum V3Media { V3_JSON, V3_DIFF, V3_PATCH, V3_RAW, V3_SHA, V3_OBJECT } V3Media;
V3Media v3_media(const ApiCall *call);

/* The value of one query parameter, NULL: not there (or empty).  False: answered. */
bool v3_query(ApiCall *call, const char *name, char **ret_value);
/* Members of a body as json_read() has them, but what no row names is passed over and null is as good as
 * absent.  False: answered, with `resource` and the first field that is wrong. */
bool v3_read_fields(ApiCall *call, Json *body, const JsonField *fields, const char *resource);
/* A positive number in the path; false: answered with 404. */
bool v3_param_int(ApiCall *call, const char *name, gint64 *ret_value);

/* ---- work in the forge's threads ---- */

/* Where things are, for whoever renders.  Never changed, so a thread may have it. */
typedef struct V3Place {
    char *server; /* "http://host:port" */
    char *root;   /* SERVER/api/v3 */
    char *api;    /* ROOT/repos/OWNER/NAME */
    char *html;   /* SERVER/OWNER/NAME */
    char *branch; /* the default one */
} V3Place;
/* `repo` may be NULL: then there is nothing but the first two. */
void v3_place_init(V3Place *place, Api *api, const Repo *repo);
void v3_place_clear(V3Place *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(V3Place, v3_place_clear)

/* The first member of a route's own struct.  `func` is called in a thread of the forge with that struct
 * and makes `value`, or `bytes`, or neither for a 204; it may read what the call's path and body say, for
 * both stay as they are, and must not touch the request otherwise. */
typedef struct V3Work V3Work;
typedef bool (*V3WorkFunc)(GitRepo *git, void *work, GError **error);
struct V3Work {
    ApiCall *call; /* with a reference to its request */
    Repo *repo;
    V3Place place;
    Json *body;    /* NULL: none; kept for what is borrowed from it */
    bool is_rowed; /* set before it is begun: the next two are read first */
    RepoSettings *settings;
    Json *caller;     /* who calls, as people.h has it */
    int status;       /* 200 */
    int error_status; /* of a failure; 0: as its kind says */
    Json *value;
    GBytes *bytes; /* in the place of `value`, as `type` */
    const char *type;
    int fd; /* in the place of both: a file, as `type`; -1: none */
    ForgePage page;
    bool paged, more; /* paged: a Link header, from `page` and `more` */
    /* On the loop when the thread has done its part, in the place of the answer; NULL: none.  It calls
     * v3_work_end(), now or later. */
    void (*then)(V3Work *work);
    V3WorkFunc func;
    V3Encoded encoded;
    GStringChunk *texts;
    const char *what;
    bool writes;
};
/* `size` is that of the route's struct.  NULL: answered, since the repository is not there or not ready. */
V3Work *v3_work_new(ApiCall *call, size_t size);
#define V3_WORK_NEW(type, call) ((type *)(void *)v3_work_new(call, sizeof(type)))
/* A copy that lives as long as the work; NULL stays NULL. */
const char *v3_work_text(V3Work *work, const char *text);
/* Both take `work`.  `what` is for the queue that people see. */
void v3_work_read(V3Work *work, const char *what, V3WorkFunc func);
void v3_work_write(V3Work *work, const char *what, V3WorkFunc func);
void v3_work_drop(V3Work *work); /* of one that was not begun */
/* The end of `then`: answers, and frees it. */
void v3_work_end(V3Work *work, const GError *error);

/* The commit that somebody names, as GitHub understands it: as commit_resolve(), "heads/x", "tags/x" and
 * "HEAD" too.  NULL is the default branch, and ERR_CONFLICT where that has no commit yet.  In a thread. */
char *v3_resolve(GitRepo *git, const V3Place *place, const char *name, GError **error);

/* ---- common parts of what is rendered ---- */

/* "2026-01-31T12:00:00Z"; 0 is null. */
Json *v3_time(gint64 us);

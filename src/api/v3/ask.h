/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/scene.h"

/* One question to the rows of a repository, answered with what a function makes of them.
 *
 * Errors are answered as everywhere in this dialect, but what is in the way of a change (ERR_CONFLICT) is
 * 422 as GitHub has it, and so is one list entry too many (ERR_LIMIT). */
typedef struct V3Ask V3Ask;
struct V3Ask {
    ApiCall *call; /* with a reference to its request */
    Repo *repo;    /* a reference */
    const char *resource;
    int status;
    V3Render render;
    ForgePage page;   /* as the query has it */
    gint64 number;    /* what the path says under `number`; 0: nothing */
    const void *more; /* what the route likes */
};

/* NULL: answered, since there is no such repository, or the path has no number where one belongs. */
V3Ask *v3_ask_new(ApiCall *call, const char *resource, int status, V3Render render);
/* The same for those who have read the number themselves. */
V3Ask *v3_ask_of(ApiCall *call, gint64 number, const char *resource, int status, V3Render render);
void v3_ask_free(V3Ask *ask);

/* ForgeJsonFuncs, with the question as data, which they take. */
void v3_ask_on_row(Json *row, const GError *error, void *ask);
void v3_ask_on_list(Json *list, const GError *error, void *ask);  /* {"items", "total"} */
void v3_ask_on_gone(Json *value, const GError *error, void *ask); /* 204 */
/* For those who go on themselves: answers with the error and takes the question. */
void v3_ask_fail(V3Ask *ask, const GError *error);
/* The row as the answer shows it. */
Json *v3_ask_render(const V3Ask *ask, V3Render render, const Json *row);

/* A list of strings, or (GitHub's own) of objects with a `name`: NULL-terminated, borrowed from `array`;
 * NULL: answered. */
const char **v3_read_names(ApiCall *call, const Json *array, const char *resource, const char *field);

/* The one member `body`, which is needed; false: answered. */
bool v3_read_body(ApiCall *call, Json *body, const char *resource, const char **ret_text);

/* Parameters of the query; false: answered.  What is not there leaves `*ret` as it is. */
/* One of a NULL-terminated list: its place. */
bool
v3_query_word(ApiCall *call, const char *resource, const char *name, const char *const *words, guint *ret);
bool v3_query_time(ApiCall *call, const char *resource, const char *name, gint64 *ret_us);
/* `sort` out of `sorts`, and whether `direction` is asc. */
bool v3_query_sort(ApiCall *call, const char *resource, const char *const *sorts, guint *ret_sort,
                   bool *ret_ascending);

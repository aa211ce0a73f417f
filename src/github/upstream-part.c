/* SPDX-License-Identifier: Apache-2.0 */
#include "github/upstream-part.h"

#include <string.h>

#include "base/err.h"
#include "github/item.h"
#include "github/look.h"
#include "github/text.h"

static void
part_free(Part *p)
{
    work_row_free(p->row);
    repo_unref(p->repo);
    upstream_unref(p->upstream);
    json_decref(p->here);
    json_decref(p->body);
    g_free(p->text);
    g_free(p->login);
    g_free(p);
}

static void
part_end(Part *p, const UpstreamEnd *end)
{
    upstream_ended(p->upstream, g_steal_pointer(&p->row), end);
    part_free(p);
}

static void
part_fail(Part *p, gint64 wait_us, const GError *error)
{
    part_end(p, &(UpstreamEnd){.wait_us = wait_us, .error = error});
}

/* False: it has ended, for there is no account any more. */
static bool
make_ask(Part *p, GithubFunc done, GithubPlace *ret_place, GithubAsk *ret_ask)
{
    g_autoptr(GError) error = NULL;

    if (!upstream_find_place(p->upstream, p->repo, ret_place, &error)) {
        part_fail(p, 0, error);
        return false;
    }
    *ret_ask = (GithubAsk){.client = ret_place->client,
                           .owner = ret_place->owner,
                           .repo = ret_place->repo,
                           .look_first = p->row->was_sent,
                           .done = done,
                           .data = p};
    return true;
}

/* ---- sending ---- */

static void send_part(Part *p);

static const PartKind *
sender_of(const Part *p)
{
    return p->as_comment ? upstream_part_kind("comment") : p->kind;
}

static void
make_body(Part *p)
{
    g_autofree char *name = upstream_part_marker(p), *marker = look_marker(name);

    g_clear_pointer(&p->text, g_free);
    g_clear_pointer(&p->body, json_decref);
    p->text = p->kind->text(p);
    if (p->text == NULL)
        return;
    g_autofree char *marked = g_strconcat(marker, "\n", p->text, NULL);

    p->body = sender_of(p)->body(p, marked);
}

static char *
digest_of(const Json *body)
{
    g_autofree char *text = json_encode(body);

    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
}

/* A line that is not in the changes as they are seen there: what was said is said all the same. */
static bool
is_no_line(const Part *p, const GError *error)
{
    return error != NULL && err_kind(error) == ERR_INVALID && strcmp(p->row->kind, "line") == 0 &&
           !p->as_comment && github_number(p->row->answer, "id") == 0;
}

static void
on_sent(const GithubAnswer *answer, const GError *error, void *data)
{
    Part *p = data;
    gint64 id = github_number(answer->json, "id");

    if (is_no_line(p, error)) {
        p->as_comment = true;
        make_body(p);
        send_part(p);
        return;
    }
    if (error != NULL) {
        part_fail(p, answer->wait_us, error);
        return;
    }
    g_autofree char *digest = digest_of(p->body);
    g_autoptr(Json) kept = json_pack("{s:I, s:s, s:b}", "id", (json_int_t)(p->kind->is_item ? id : 0), "sent",
                                     digest, "as_comment", p->as_comment);
    UpstreamEnd end = {.answer = kept};

    if (p->kind->is_item && id > 0 && !p->as_comment)
        end.item = (UpstreamItem){p->kind->kind, id, github_number(p->row->body, "id")};
    part_end(p, &end);
}

static void
send_part(Part *p)
{
    g_auto(GithubPlace) place = {0};
    GithubAsk ask;
    gint64 id = github_number(p->row->answer, "id");
    g_autofree char *digest = p->body != NULL ? digest_of(p->body) : NULL;

    if (digest == NULL || g_strcmp0(digest, github_text(p->row->answer, "sent")) == 0)
        part_end(p, &(UpstreamEnd){0});
    else if (!make_ask(p, on_sent, &place, &ask))
        return;
    else if (id > 0)
        sender_of(p)->edit(&ask, p, id);
    else
        sender_of(p)->create(&ask, p);
}

static void
on_removed(const GithubAnswer *answer, const GError *error, void *data)
{
    if (error != NULL && err_kind(error) != ERR_NOT_FOUND)
        part_fail(data, answer->wait_us, error);
    else
        part_end(data, &(UpstreamEnd){0});
}

static void
remove_part(Part *p)
{
    g_auto(GithubPlace) place = {0};
    gint64 id = github_number(p->row->answer, "id");
    GithubAsk ask;

    if (id == 0 || p->kind->remove == NULL)
        part_end(p, &(UpstreamEnd){0});
    else if (make_ask(p, on_removed, &place, &ask))
        sender_of(p)->remove(&ask, p, id);
}

/* ---- finding ---- */

static bool
is_thread(const Part *p)
{
    return strcmp(p->row->kind, "thread") == 0;
}

/* What it is there, and what a line answers, by what that is there. */
static bool
pairs_work(DbTx *tx, void *data, GError **error)
{
    Part *p = data;
    gint64 parent = github_number(p->here, "in_reply_to");
    const char *kind = is_thread(p) ? "line" : p->row->kind;

    return upstream_item_there(tx, p->row->repository_id, kind, github_number(p->row->body, "id"), &p->there,
                               error) &&
           (parent == 0 ||
            upstream_item_there(tx, p->row->repository_id, "line", parent, &p->in_reply_to, error));
}

static void
on_pairs(void *data, const GError *error)
{
    Part *p = data;

    if (error != NULL) {
        part_fail(p, 0, error);
        return;
    }
    /* Made there: whatever somebody has made of it here, it is theirs. */
    if (p->there > 0 && p->row->answer == NULL && !is_thread(p)) {
        part_end(p, &(UpstreamEnd){0});
        return;
    }
    g_autoptr(GError) none = NULL;

    if (is_thread(p) && p->there == 0) {
        err_set(&none, ERR_UNAVAILABLE, "its comment is not there yet");
        part_fail(p, 0, none);
        return;
    }
    make_body(p);
    send_part(p);
}

static void
on_loaded(Json *here, const GError *error, void *data)
{
    Part *p = data;

    if (error != NULL && err_kind(error) == ERR_NOT_FOUND) {
        remove_part(p);
        return;
    }
    if (error != NULL) {
        part_fail(p, 0, error);
        return;
    }
    p->here = json_incref(here);
    db_read(p->upstream->spec.db, pairs_work, on_pairs, p, NULL);
}

static void
begin(Part *p)
{
    g_auto(GithubPlace) place = {0};
    g_autoptr(GError) error = NULL;

    if (!upstream_find_place(p->upstream, p->repo, &place, &error)) {
        part_fail(p, 0, error);
        return;
    }
    p->login = g_strdup(place.login);
    p->kind->load(p, on_loaded);
}

static void
on_checked(Json *account, const GError *error, void *data)
{
    if (error != NULL)
        part_fail(data, 0, error);
    else
        begin(data);
}

void
upstream_part(Upstream *u, WorkRow *row, Repo *repo)
{
    g_auto(GithubPlace) place = {0};
    g_autoptr(GError) error = NULL;
    Part *p = g_new0(Part, 1);

    *p = (Part){.upstream = upstream_ref(u),
                .row = row,
                .repo = repo_ref(repo),
                .kind = upstream_part_kind(row->kind),
                .number = github_number(row->above, "number"),
                .as_comment = json_is_true(json_object_get(row->answer, "as_comment"))};
    if (p->kind == NULL || p->number == 0)
        err_set(&error, ERR_NOT_FOUND, "its pull request is not there");
    else
        (void)upstream_find_place(u, repo, &place, &error);
    if (error != NULL)
        part_fail(p, 0, error);
    else if (*place.login == '\0') /* of the environment: nobody has asked yet who that is */
        github_account_check(u->spec.accounts, github_client_base(place.client), on_checked, p);
    else
        begin(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Events become rows, one after the other, together with the place in the log.  Whatever fails leaves the
 * place where it was, and the next tick begins again behind it; the same event asks for nothing twice. */
#include <string.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "forge/repo-settings.h"
#include "github/text.h"
#include "github/upstream-private.h"

static const char place_name[] = "github.seq";

static void follow(Upstream *u);

typedef struct Step {
    Upstream *upstream;
    gint64 seq;
    char *repository_id; /* NULL: only the place is written */
    char *branch, *oid;  /* of a push */
    gint64 number;       /* of a pull request */
} Step;

static void
step_free(gpointer data)
{
    Step *s = data;

    g_free(s->repository_id);
    g_free(s->branch);
    g_free(s->oid);
    upstream_unref(s->upstream);
    g_free(s);
}

/* ---- in the database ---- */

/* What is protected here is nobody's to change there by way of a box. */
static bool
may_push(DbTx *tx, const Step *s, bool *ret_may, GError **error)
{
    g_autoptr(RepoSettings) settings = repo_settings_load(tx, s->repository_id, error);
    g_autoptr(DbRows) rows = db_query(tx, "SELECT default_branch FROM repositories WHERE id = ?",
                                      DB_ARGS(db_text(s->repository_id)), error);
    bool more = false;

    if (settings == NULL || rows == NULL || !db_rows_next(rows, &more, error))
        return false;
    *ret_may = more && !repo_settings_protect(settings, db_rows_text(rows, 0), s->branch);
    return true;
}

static bool
ask_push(DbTx *tx, const Step *s, GError **error)
{
    bool may = false;
    g_autoptr(Json)
        body = json_pack("{s:s, s:s, s:I}", "branch", s->branch, "oid", s->oid, "seq", (json_int_t)s->seq);

    if (!may_push(tx, s, &may, error))
        return false;
    return !may || work_ask(tx, &(WorkAsk){s->repository_id, "push", s->branch, body}, error);
}

/* Of a branch that a box pushed: others' pull requests are no business of theirs. */
static bool
is_of_box(DbTx *tx, const Step *s, bool *ret_is, GError **error)
{
    g_autofree char *start = g_strconcat("push:", s->repository_id, ":", NULL);
    g_autoptr(DbRows)
        rows = db_query(tx,
                        "SELECT 1 FROM threads t JOIN upstream_work w ON w.key = ? || t.head WHERE "
                        "t.repository_id = ? AND t.number = ? AND t.kind = 'pull'",
                        DB_ARGS(db_text(start), db_text(s->repository_id), db_int(s->number)), error);

    return rows != NULL && db_rows_next(rows, ret_is, error);
}

static bool
ask_pull(DbTx *tx, const Step *s, GError **error)
{
    g_autofree char *name = g_strdup_printf("%" G_GINT64_FORMAT, s->number);
    g_autoptr(Json)
        body = json_pack("{s:I, s:I}", "number", (json_int_t)s->number, "seq", (json_int_t)s->seq);
    bool is = false;

    if (!is_of_box(tx, s, &is, error))
        return false;
    return !is || work_ask(tx, &(WorkAsk){s->repository_id, "pull", name, body}, error);
}

static bool
step_work(DbTx *tx, void *data, GError **error)
{
    const Step *s = data;
    g_autofree char *seq = g_strdup_printf("%" G_GINT64_FORMAT, s->seq);

    if (s->branch != NULL && !ask_push(tx, s, error))
        return false;
    if (s->number > 0 && !ask_pull(tx, s, error))
        return false;
    FAILPOINT("upstream-asking");
    return db_exec(
        tx,
        "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = "
        "excluded.value",
        DB_ARGS(db_text(place_name), db_text(seq)), error);
}

/* ---- on the loop ---- */

static void
begin_again(Upstream *u, const GError *error)
{
    log_warn("github", "events wait for what follows from them", log_gerror(error));
    g_clear_pointer(&u->cursor, event_cursor_free);
    if (!u->stopped)
        loop_timer_set(u->spec.loop, &u->tick, UPSTREAM_TICK_MS);
}

static void
on_stepped(void *data, const GError *error)
{
    Step *s = data;
    Upstream *u = s->upstream;

    u->following = false;
    if (error != NULL) {
        begin_again(u, error);
    } else if (!u->stopped) {
        if (s->repository_id != NULL)
            upstream_wake(u);
        follow(u);
    }
}

static void
write_step(Upstream *u, Step *s)
{
    s->upstream = upstream_ref(u);
    u->following = true;
    u->passed = 0;
    db_write(u->spec.db, step_work, on_stepped, s, step_free);
}

/* NULL: nothing follows from it. */
static Step *
step_of(Upstream *u, const Event *event)
{
    g_autoptr(Json) whole = json_decode(event->json, event->json_len, NULL);
    const Json *data = json_object_get(whole, "data");
    const char *id = github_text(data, "repository_id"), *ref = github_text(data, "ref");
    Repo *repo = id != NULL && github_text(data, "source") == NULL ? forge_find_id(u->spec.forge, id) : NULL;
    bool is_pull = g_str_has_prefix(event->kind, "pr.");
    bool is_push = !is_pull && event->box_id != NULL && ref != NULL && g_str_has_prefix(ref, "refs/heads/");
    g_auto(GithubPlace) place = {0};
    RepoInfo info;

    if (repo == NULL || (!is_pull && !is_push))
        return NULL;
    repo_info(repo, &info);
    if (!github_accounts_find(u->spec.accounts, info.upstream, &place))
        return NULL;
    Step *s = g_new0(Step, 1);

    *s = (Step){.seq = event->seq, .repository_id = g_strdup(id)};
    if (is_pull)
        s->number = github_number(data, "number");
    else {
        s->branch = g_strdup(ref + strlen("refs/heads/"));
        s->oid = g_strdup(github_text(data, "after"));
    }
    return s;
}

static void
take(Upstream *u, const Event *event)
{
    Step *s = step_of(u, event);

    if (s == NULL && ++u->passed >= UPSTREAM_PLACE_EVERY) {
        s = g_new0(Step, 1);
        s->seq = event->seq;
    }
    if (s != NULL)
        write_step(u, s);
}

static void
follow(Upstream *u)
{
    while (!u->stopped && !u->following && u->cursor != NULL) {
        g_autoptr(Event) event = NULL;

        switch (event_cursor_next(u->cursor, &event)) {
        case EVENT_READY:
            take(u, event);
            break;
        case EVENT_WAIT:
            return;
        case EVENT_RESYNC:
            break;
        case EVENT_FAILED:
            g_clear_pointer(&u->cursor, event_cursor_free);
            loop_timer_set(u->spec.loop, &u->tick, UPSTREAM_TICK_MS);
            return;
        }
    }
}

static void
on_wake(void *data)
{
    follow(data);
}

/* ---- beginning ---- */

typedef struct Beginning {
    Upstream *upstream;
    gint64 place;
} Beginning;

static bool
read_place(DbTx *tx, void *data, GError **error)
{
    Beginning *b = data;
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT value FROM settings WHERE name = ?", DB_ARGS(db_text(place_name)), error);
    bool more = false;

    if (rows == NULL || !db_rows_next(rows, &more, error))
        return false;
    if (more)
        b->place = g_ascii_strtoll(db_rows_text(rows, 0), NULL, 10);
    return true;
}

static void
on_place(void *data, const GError *error)
{
    static const char *const kinds[] = {"branch.created", "commit.pushed", "pr.*", NULL};
    Beginning *b = data;
    Upstream *u = b->upstream;

    if (error != NULL)
        begin_again(u, error);
    if (error != NULL || u->stopped || u->cursor != NULL)
        return;
    b->place = MAX(b->place, event_log_first_seq(u->spec.events) - 1);
    u->cursor = event_cursor_new(u->spec.events, &(EventFilter){.kinds = kinds}, b->place, on_wake, u);
    event_cursor_is_own(u->cursor);
    follow(u);
}

static void
beginning_free(gpointer data)
{
    Beginning *b = data;

    upstream_unref(b->upstream);
    g_free(b);
}

void
upstream_follow_start(Upstream *u)
{
    Beginning *b = g_new0(Beginning, 1);

    *b = (Beginning){upstream_ref(u), event_log_last_seq(u->spec.events)};
    db_read(u->spec.db, read_place, on_place, b, beginning_free);
}

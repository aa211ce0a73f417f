/* SPDX-License-Identifier: Apache-2.0 */
/* Who commits for a member.  An identity names its member and squad, so what a killed server left half done
 * is found by looking: a member without an identity gets the one that names it, or a new one; an identity
 * whose squad is there and whose member is not is revoked. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "forge/identity.h"
#include "forge/workspace.h"
#include "team/member-private.h"

enum { TITLE_MAX = 40, SUFFIX_LEN = 8 };

typedef struct Settle {
    Team *team;
    Json *rows; /* {members: [{id, name, identity_id, squad_id, squad_name}], squads: {id: true}} */
    size_t next;
    bool with_suffix;   /* the plain name was taken */
    GPtrArray *orphans; /* ids of identities */
    DbDone done;
    void *data;
} Settle;

static void settle_next(Settle *s);

static void
settle_end(Settle *s, const GError *error)
{
    s->done(s->data, error);
    team_unref(s->team);
    json_decref(s->rows);
    g_ptr_array_unref(s->orphans);
    g_free(s);
}

/* ---- rows ---- */

static const RowMember one_text[] = {{ROW_POINTER_TEXT, 0}, ROW_AT_END};

static bool
collect_squads(RowJob *job, const char *squad_id, Json *squads, GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx, "SELECT id FROM squads WHERE ? IS NULL OR id = ?",
                                      DB_ARGS(db_text(squad_id), db_text(squad_id)), error);
    bool more = rows != NULL;

    while (more) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (more)
            json_object_set_new(squads, db_rows_text(rows, 0), json_true());
    }
    return rows != NULL;
}

static bool
collect_members(RowJob *job, const char *squad_id, Json *members, GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx,
                                      "SELECT m.id, m.name, m.identity_id, s.id, s.name FROM squad_members m "
                                      "JOIN squads s ON s.id = m.squad_id WHERE ? IS NULL OR s.id = ?",
                                      DB_ARGS(db_text(squad_id), db_text(squad_id)), error);
    bool more = rows != NULL;

    while (more) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (more)
            json_object_set_new(members, db_rows_text(rows, 0),
                                json_pack("{s:s, s:s, s:s?, s:s, s:s}", "id", db_rows_text(rows, 0), "name",
                                          db_rows_text(rows, 1), "identity_id", db_rows_text(rows, 2),
                                          "squad_id", db_rows_text(rows, 3), "squad_name",
                                          db_rows_text(rows, 4)));
    }
    return rows != NULL;
}

static bool
run_look(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const char *squad_id = *(const char *const *)spec;

    *ret_value = json_pack("{s:{}, s:{}}", "members", "squads");
    return collect_squads(job, squad_id, json_object_get(*ret_value, "squads"), error) &&
           collect_members(job, squad_id, json_object_get(*ret_value, "members"), error);
}

static const RowOp look_op = {ROW_READS, sizeof(char *), one_text, run_look};

typedef struct Link {
    const char *member_id, *identity_id;
} Link;

static const RowMember link_members[] = {
    ROW_AT_TEXT(Link, member_id),
    ROW_AT_TEXT(Link, identity_id),
    ROW_AT_END,
};

static bool
run_link(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const Link *l = spec;

    return db_exec(job->tx, "UPDATE squad_members SET identity_id = ? WHERE id = ?",
                   DB_ARGS(db_text(l->identity_id), db_text(l->member_id)), error);
}

static const RowOp link_op = {ROW_WRITES, sizeof(Link), link_members, run_link};

/* ---- one after the other ---- */

static void
on_linked(Json *value, const GError *error, void *data)
{
    Settle *s = data;

    if (error != NULL) {
        settle_end(s, error);
        return;
    }
    s->next++;
    s->with_suffix = false;
    settle_next(s);
}

static const Json *
member_at(const Settle *s, size_t i)
{
    return json_array_get(json_object_get(s->rows, "list"), i);
}

static void
on_made(Json *identity, const GError *error, void *data)
{
    Settle *s = data;

    if (error != NULL && err_kind(error) == ERR_CONFLICT && !s->with_suffix) {
        s->with_suffix = true;
        settle_next(s);
    } else if (error != NULL) {
        /* Its commits are not signed then; the squad works. */
        log_warn("team", "a member has no identity",
                 log_str("member", row_text(member_at(s, s->next), "name")), log_gerror(error));
        on_linked(NULL, NULL, s);
    } else {
        const Link link = {row_text(member_at(s, s->next), "id"), row_text(identity, "id")};

        team_run(s->team, &link_op, &link, on_linked, s);
    }
}

/* Of the default squad plainly the member's; of others with the squad's before it. */
static char *
identity_name(const Json *member, bool with_suffix)
{
    const char *squad = row_text(member, "squad_name");
    g_autofree char *slug = workspace_slug(squad);
    g_autofree char *plain = strcmp(squad, SQUAD_DEFAULT) == 0
                                 ? g_strdup(row_text(member, "name"))
                                 : g_strdup_printf("%s-%s", slug, row_text(member, "name"));

    if (strlen(plain) > TITLE_MAX)
        plain[TITLE_MAX] = '\0';
    return with_suffix ? g_strdup_printf("%s-%.*s", plain, SUFFIX_LEN, row_text(member, "id"))
                       : g_steal_pointer(&plain);
}

static void
make_one(Settle *s, const Json *member)
{
    const Identity *there = identity_of_agent(s->team->spec.forge, row_text(member, "id"));

    if (there != NULL) {
        const Link link = {row_text(member, "id"), there->id};

        team_run(s->team, &link_op, &link, on_linked, s);
        return;
    }
    g_autofree char *name = identity_name(member, s->with_suffix);

    identity_create(s->team->spec.forge,
                    &(IdentitySpec){.name = name,
                                    .agent_id = row_text(member, "id"),
                                    .squad_id = row_text(member, "squad_id"),
                                    .actor = "coop"},
                    on_made, s);
}

static void
on_revoked(Json *identity, const GError *error, void *data)
{
    Settle *s = data;

    if (error != NULL)
        settle_end(s, error);
    else
        settle_next(s);
}

static void
settle_next(Settle *s)
{
    /* Freed meanwhile: the forge may be gone before long. */
    bool closed = s->team->flow == NULL;

    if (!closed && s->next < json_array_size(json_object_get(s->rows, "list"))) {
        make_one(s, member_at(s, s->next));
    } else if (!closed && s->orphans->len > 0) {
        g_autofree char *id = g_ptr_array_steal_index(s->orphans, s->orphans->len - 1);

        identity_revoke(s->team->spec.forge, id, "coop", on_revoked, s);
    } else {
        settle_end(s, NULL);
    }
}

/* ---- the look ---- */

static void
find_orphans(Settle *s)
{
    g_autoptr(Json) all = identities_json(s->team->spec.forge);
    const Json *squads = json_object_get(s->rows, "squads"), *members = json_object_get(s->rows, "members");
    size_t i;
    Json *one;

    json_array_foreach(all, i, one)
    {
        const char *agent = row_text(one, "agent_id"), *squad = row_text(one, "squad_id");

        if (agent == NULL || squad == NULL || row_text(one, "revoked_at") != NULL || !id_is_uuid(agent))
            continue;
        if (json_object_get(squads, squad) != NULL && json_object_get(members, agent) == NULL)
            g_ptr_array_add(s->orphans, g_strdup(row_text(one, "id")));
    }
}

static void
on_looked(Json *rows, const GError *error, void *data)
{
    Settle *s = data;
    Json *list = json_array(), *member;
    const char *id;

    if (error != NULL || s->team->flow == NULL) {
        json_decref(list);
        settle_end(s, error);
        return;
    }
    s->rows = json_incref(rows);
    json_object_foreach(json_object_get(rows, "members"), id, member)
    {
        if (row_text(member, "identity_id") == NULL)
            json_array_append(list, member);
    }
    json_object_set_new(rows, "list", list);
    find_orphans(s);
    settle_next(s);
}

void
member_identities(Team *team, const char *squad_id, DbDone done, void *data)
{
    if (team->spec.forge == NULL || team->flow == NULL) {
        done(data, NULL);
        return;
    }
    Settle *s = g_new0(Settle, 1);

    *s = (Settle){.team = team_ref(team),
                  .orphans = g_ptr_array_new_with_free_func(g_free),
                  .done = done,
                  .data = data};
    team_run(team, &look_op, &squad_id, on_looked, s);
}

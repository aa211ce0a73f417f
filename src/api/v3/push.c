/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/push.h"

#include <string.h>

#include "api/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "forge/commit.h"
#include "forge/push.h"
#include "forge/ref-move.h"

static void
on_told(void *data, const GError *error)
{
    V3Push *push = data;

    v3_work_end(&push->work, error);
}

static void
tell(V3Work *work)
{
    V3Push *push = (V3Push *)(void *)work;
    const ForgePush told = {
        .actor = work->call->caller.actor, .ref = push->ref, .old = push->old_oid, .new = push->new_oid};

    if (strcmp(push->old_oid, push->new_oid) == 0)
        v3_work_end(work, NULL);
    else
        forge_pushed_then(work->call->api->forge, work->repo, &told, on_told, push);
}

void
v3_push_begin(V3Push *push, const char *what, V3WorkFunc func)
{
    push->work.is_rowed = true;
    push->work.then = tell;
    v3_work_write(&push->work, what, func);
}

bool
v3_push_move(GitRepo *git, V3Push *push, const V3Move *move, GError **error)
{
    const V3Work *work = &push->work;
    const RefMove asked = {
        .ref = push->ref,
        .old = move->old,
        .new = move->new,
        .force = move->force,
        .may_advance = call_is_admin(work->call),
        .settings = work->settings,
        .default_branch = work->place.branch,
        .why = "by the API",
    };

    if (!ref_move(git, &asked, push->old_oid, error))
        return false;
    g_strlcpy(push->new_oid, move->new, sizeof push->new_oid);
    return true;
}

/* ---- people ---- */

/* An address that nobody can have, made of what may stand in one. */
static char *
dup_address(const char *login)
{
    GString *address = g_string_new(NULL);

    for (const char *p = login; *p != '\0'; p++) {
        if (g_ascii_isalnum(*p) || strchr("._-", *p) != NULL)
            g_string_append_c(address, *p);
    }
    g_string_append(address, "@coop.invalid");
    return g_string_free(address, FALSE);
}

static bool
read_date(const Json *person, MergePerson *ret_person, GError **error)
{
    const char *text = json_string_value(json_object_get(person, "date"));
    g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
    g_autoptr(GDateTime) date = text != NULL ? g_date_time_new_from_iso8601(text, utc) : NULL;

    ret_person->time_s = clock_wall_us() / G_USEC_PER_SEC;
    if (text == NULL)
        return true;
    if (date == NULL || g_date_time_to_unix(date) < 0)
        return err_set(error, ERR_INVALID, "'%s' is no time since 1970", text);
    ret_person->time_s = g_date_time_to_unix(date);
    ret_person->zone_min = (int)(g_date_time_get_utc_offset(date) / G_TIME_SPAN_MINUTE);
    return true;
}

bool
v3_person_read(V3Work *work, const Json *person, MergePerson *ret_person, GError **error)
{
    const char *login = json_string_value(json_object_get(work->caller, "login"));
    const char *name = json_string_value(json_object_get(person, "name"));
    const char *email = json_string_value(json_object_get(person, "email"));
    g_autofree char *address = dup_address(login);

    *ret_person = (MergePerson){.name = name != NULL ? name : login,
                                .email = email != NULL ? email : v3_work_text(work, address)};
    if (strlen(ret_person->name) > COMMIT_PERSON_MAX || strlen(ret_person->email) > COMMIT_PERSON_MAX)
        return err_set(error, ERR_INVALID, "a name or an address has at most %d bytes", COMMIT_PERSON_MAX);
    return read_date(person, ret_person, error);
}

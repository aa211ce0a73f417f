/* SPDX-License-Identifier: Apache-2.0 */
/* What `coop serve` says about boxes.
 *
 * 1. A box that is told again is the same one if its listener is the same socket: then only what
 *    was said about it changes, and its streams go on.
 * 2. Policies are counted by the boxes that use them and go with the last one; serve counts in
 *    the same way, so both ends know the same names without saying so. */
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "door/control-private.h"
#include "door/labels.h"

enum {
    POLICY_NAME_MAX = 64,
    POLICIES_MAX = DOOR_BOXES_MAX + 64,
    COOKIE_DIGITS_MAX = 20,
    USED_MAX = 1000, /* boxes in a message */
};

typedef struct ControlPolicy {
    Policy *policy;
    guint users;
    guint64 visit;
} ControlPolicy;

typedef struct ControlBox {
    ino_t socket; /* of its listener */
    guint64 cookie, visit;
    char *policy; /* name */
    DoorDay told; /* in this visit */
    guint64 told_visit;
} ControlBox;

static void
policy_free(gpointer data)
{
    ControlPolicy *p = data;

    policy_unref(p->policy);
    g_free(p);
}

static void
box_free(gpointer data)
{
    ControlBox *box = data;

    g_free(box->policy);
    g_free(box);
}

void
control_boxes_init(DoorControl *c)
{
    c->boxes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, box_free);
    c->policies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, policy_free);
}

/* ---- policies ---- */

static void
unuse_policy(DoorControl *c, const char *name)
{
    ControlPolicy *p = name != NULL ? g_hash_table_lookup(c->policies, name) : NULL;

    if (p != NULL && --p->users == 0)
        g_hash_table_remove(c->policies, name);
}

static bool
find_policy(DoorControl *c, const char *name, ControlPolicy **ret, GError **error)
{
    *ret = g_hash_table_lookup(c->policies, name);
    return *ret != NULL || err_set(error, ERR_NOT_FOUND, "there is no policy '%s'", name);
}

bool
control_policy(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    const char *name = NULL;
    Json *object = NULL;
    const JsonField fields[] = {
        {"do", JSON_KIND_STRING, &(const char *){NULL}, true, 1, CONTROL_VERB_MAX},
        {"name", JSON_KIND_STRING, &name, true, 1, POLICY_NAME_MAX},
        {"policy", JSON_KIND_OBJECT, &object, true},
        {NULL},
    };

    if (!json_read(call->message, fields, error))
        return false;
    call->id = name;
    ControlPolicy *known = g_hash_table_lookup(c->policies, name);

    if (known != NULL) {
        known->visit = c->visit;
        return true;
    }
    if (g_hash_table_size(c->policies) >= POLICIES_MAX)
        return err_set(error, ERR_LIMIT, "the door has %d policies", POLICIES_MAX);
    Policy *policy = policy_new(object, error);

    if (policy == NULL)
        return false;
    ControlPolicy *p = g_new(ControlPolicy, 1);

    *p = (ControlPolicy){.policy = policy, .visit = c->visit};
    g_hash_table_insert(c->policies, g_strdup(name), p);
    return true;
}

static gboolean
is_old_policy(gpointer key, gpointer value, gpointer data)
{
    const ControlPolicy *p = value;

    return p->users == 0 && p->visit != ((DoorControl *)data)->visit;
}

/* ---- boxes ---- */

/* What "box" and "change" have in common; members that are not there are NULL. */
typedef struct BoxWords {
    const char *id, *cookie, *policy;
    Json *labels, *limits;
    gint64 day, day_bytes;
} BoxWords;

static bool
read_words(Json *message, bool all, BoxWords *w, GError **error)
{
    const JsonField fields[] = {
        {"do", JSON_KIND_STRING, &(const char *){NULL}, true, 1, CONTROL_VERB_MAX},
        {"id", JSON_KIND_STRING, &w->id, true, 1, DOOR_LABEL_MAX},
        {"policy", JSON_KIND_STRING, &w->policy, all, 1, POLICY_NAME_MAX},
        {"labels", JSON_KIND_OBJECT, &w->labels},
        {"limits", JSON_KIND_OBJECT, &w->limits},
        {"day", JSON_KIND_INT, &w->day, false, 0, G_MAXINT64},
        {"day_bytes", JSON_KIND_INT, &w->day_bytes, false, 0, G_MAXINT64},
        {all ? "cookie" : NULL, JSON_KIND_STRING, &w->cookie, true, 1, COOKIE_DIGITS_MAX},
        {NULL},
    };

    return json_read(message, fields, error);
}

static void
use_policy(DoorControl *c, ControlBox *box, const char *name, ControlPolicy *p)
{
    p->users++;
    unuse_policy(c, box->policy);
    g_free(box->policy);
    box->policy = g_strdup(name);
}

static bool
change_box(DoorControl *c, DoorBox *door_box, ControlBox *box, const BoxWords *w, GError **error)
{
    ControlPolicy *p = NULL;
    DoorLabels labels = {0};
    DoorLimits limits = DOOR_LIMITS_INIT;

    if ((w->policy != NULL && !find_policy(c, w->policy, &p, error)) ||
        (w->labels != NULL && !door_labels_read(w->labels, &labels, error)) ||
        (w->limits != NULL && !door_limits_read(w->limits, &limits, error)))
        return false;
    if (p != NULL && g_strcmp0(box->policy, w->policy) != 0) {
        use_policy(c, box, w->policy, p);
        door_set_policy(door_box, p->policy);
    }
    if (w->labels != NULL)
        door_set_labels(door_box, &labels);
    if (w->limits != NULL)
        door_set_limits(door_box, &limits);
    return true;
}

static void
forget_box(DoorControl *c, const char *id)
{
    ControlBox *box = g_hash_table_lookup(c->boxes, id);
    DoorBox *door_box = door_find(c->spec.door, id);

    if (door_box != NULL)
        door_remove(c->spec.door, door_box);
    if (box != NULL)
        unuse_policy(c, box->policy);
    g_hash_table_remove(c->boxes, id);
}

static bool
add_box(ControlCall *call, const BoxWords *w, guint64 cookie, ino_t socket, GError **error)
{
    DoorControl *c = call->control;
    ControlPolicy *p;
    DoorBoxSpec spec = {.id = w->id, .cookie = cookie, .limits = DOOR_LIMITS_INIT};

    if (!find_policy(c, w->policy, &p, error) ||
        (w->labels != NULL && !door_labels_read(w->labels, &spec.labels, error)) ||
        (w->limits != NULL && !door_limits_read(w->limits, &spec.limits, error)))
        return false;
    spec.policy = p->policy;
    /* First, so that what is replaced does not take the policy along. */
    ControlBox *box = g_new0(ControlBox, 1);

    use_policy(c, box, w->policy, p);
    *box = (ControlBox){.socket = socket, .cookie = cookie, .visit = c->visit, .policy = box->policy};
    forget_box(c, w->id);
    g_hash_table_insert(c->boxes, g_strdup(w->id), box);
    DoorBox *added = door_add(c->spec.door, g_steal_fd(&call->fd), &spec, error);

    if (added != NULL)
        door_box_note_day(added, &(DoorDay){w->day, (guint64)w->day_bytes});
    else
        forget_box(c, w->id);
    return added != NULL;
}

/* Anything else would be ready for ever and never give a connection. */
static bool
is_listener(int fd)
{
    int listens = 0;
    socklen_t n = sizeof listens;

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 && listens != 0;
}

bool
control_box(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    BoxWords w = {0};
    guint64 cookie;
    struct stat st;

    if (!read_words(call->message, true, &w, error))
        return false;
    call->id = w.id;
    if (!g_ascii_string_to_unsigned(w.cookie, 10, 0, G_MAXUINT64, &cookie, NULL))
        return err_set(error, ERR_INVALID, "'cookie' is no number");
    if (call->fd < 0 || fstat(call->fd, &st) < 0 || !is_listener(call->fd))
        return err_set(error, ERR_INVALID, "a box comes with its listener");
    ControlBox *box = g_hash_table_lookup(c->boxes, w.id);
    DoorBox *door_box = door_find(c->spec.door, w.id);

    if (box == NULL || door_box == NULL || box->socket != st.st_ino || box->cookie != cookie)
        return add_box(call, &w, cookie, st.st_ino, error);
    box->visit = c->visit;
    return change_box(c, door_box, box, &w, error);
}

bool
control_change(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    BoxWords w = {0};

    if (!read_words(call->message, false, &w, error))
        return false;
    call->id = w.id;
    ControlBox *box = g_hash_table_lookup(c->boxes, w.id);
    DoorBox *door_box = door_find(c->spec.door, w.id);

    if (box == NULL || door_box == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no box '%s'", w.id);
    return change_box(c, door_box, box, &w, error);
}

bool
control_gone(ControlCall *call, GError **error)
{
    const char *id = json_string_value(json_object_get(call->message, "id"));

    if (id == NULL)
        return err_set(error, ERR_INVALID, "'id' is missing");
    forget_box(call->control, id);
    return true;
}

/* ---- everything was told ---- */

static void
list_unnamed(DoorBox *box, void *data)
{
    GPtrArray *ids = data;

    g_ptr_array_add(ids, g_strdup(door_box_id(box)));
}

void
control_drop_boxes(DoorControl *c)
{
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);

    door_each(c->spec.door, list_unnamed, ids);
    for (guint i = 0; i < ids->len; i++) {
        const ControlBox *box = g_hash_table_lookup(c->boxes, ids->pdata[i]);

        if (box == NULL || box->visit != c->visit)
            forget_box(c, ids->pdata[i]);
    }
    g_hash_table_foreach_remove(c->policies, is_old_policy, c);
}

/* ---- what they have used ---- */

typedef struct Used {
    DoorControl *control;
    gint64 day;
    Json *boxes; /* NULL: none yet */
} Used;

static void
send_used(Used *used)
{
    if (used->boxes != NULL)
        (void)door_peer_send(
            used->control->peer,
            json_pack("{s:s, s:I, s:o}", "say", "used", "day", (json_int_t)used->day, "boxes", used->boxes),
            -1);
    used->boxes = NULL;
}

static void
add_used(DoorBox *door_box, void *data)
{
    Used *used = data;
    ControlBox *box = g_hash_table_lookup(used->control->boxes, door_box_id(door_box));
    DoorDay now;

    door_box_day(door_box, &now);
    if (box == NULL || now.bytes == 0 ||
        (box->told_visit == used->control->visit && box->told.day == now.day && box->told.bytes == now.bytes))
        return;
    /* Around midnight a message is of one day. */
    if (used->boxes != NULL && (used->day != now.day || json_object_size(used->boxes) >= USED_MAX))
        send_used(used);
    if (used->boxes == NULL)
        used->boxes = json_object();
    used->day = now.day;
    json_object_set_new(used->boxes, door_box_id(door_box), json_integer((json_int_t)now.bytes));
    box->told = now;
    box->told_visit = used->control->visit;
}

void
control_send_used(DoorControl *c)
{
    Used used = {.control = c};

    if (c->peer == NULL)
        return;
    door_each(c->spec.door, add_used, &used);
    send_used(&used);
}

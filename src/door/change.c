/* SPDX-License-Identifier: Apache-2.0 */
#include "door/change.h"

typedef struct Change {
    const ChangeKind *kind;
    ChangeSpec spec;
} Change;

static bool
change_work(DbTx *tx, void *data, GError **error)
{
    Change *c = data;

    if (c->spec.refused == NULL)
        return c->kind->work(tx, c->spec.what, error);
    /* A copy: the store may run it again. */
    g_propagate_error(error, g_error_copy(c->spec.refused));
    return false;
}

static void
change_done(void *data, const GError *error)
{
    Change *c = data;

    if (error == NULL && c->kind->apply != NULL)
        c->kind->apply(c->spec.owner, &c->spec.what);
    if (c->spec.done != NULL)
        c->spec.done(c->spec.data, error);
}

static void
change_free(gpointer data)
{
    Change *c = data;

    c->kind->free(c->spec.what);
    c->kind->unref(c->spec.owner);
    g_clear_error(&c->spec.refused);
    g_free(c);
}

void
door_change(const ChangeKind *kind, const ChangeSpec *spec)
{
    Change *c = g_new(Change, 1);

    *c = (Change){kind, *spec};
    (kind->reads ? db_read : db_write)(spec->db, change_work, change_done, c, change_free);
}

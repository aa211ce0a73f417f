/* SPDX-License-Identifier: Apache-2.0 */
#include "api/grant.h"

#include <string.h>

#include "base/clock.h"

typedef struct Grant {
    char secret[GRANT_SECRET_LEN + 1]; /* first: the key of the table; the token, later the cookie */
    bool redeemed;
    char box[ID_BOX_LEN + 1];
    guint16 port;
    char key_id[ID_UUID_LEN + 1];
    gint64 link_until_us, until_us; /* monotonic */
} Grant;

struct GrantBook {
    GHashTable *by_secret; /* a set of Grants, owned */
    GQueue by_age;         /* of Grant, oldest first */
};

GrantBook *
grant_book_new(void)
{
    GrantBook *b = g_new0(GrantBook, 1);

    b->by_secret = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    g_queue_init(&b->by_age);
    return b;
}

void
grant_book_free(GrantBook *book)
{
    if (book == NULL)
        return;
    g_queue_clear(&book->by_age);
    g_hash_table_unref(book->by_secret);
    g_free(book);
}

static void
forget(GrantBook *book, GList *link)
{
    Grant *g = link->data;

    g_queue_delete_link(&book->by_age, link);
    g_hash_table_remove(book->by_secret, g->secret);
}

/* Who asks for many loses its own first. */
static void
make_room(GrantBook *book, const char *key_id)
{
    GList *oldest = NULL;
    guint own = 0;

    for (GList *l = book->by_age.head; l != NULL; l = l->next) {
        if (strcmp(((const Grant *)l->data)->key_id, key_id) != 0)
            continue;
        oldest = own++ == 0 ? l : oldest;
    }
    if (own >= GRANTS_PER_KEY)
        forget(book, oldest);
    else if (g_queue_get_length(&book->by_age) >= GRANTS_MAX)
        forget(book, book->by_age.head);
}

void
grant_new(GrantBook *book, const GrantFor *what, const char *key_id, gint64 life_s,
          char ret_token[GRANT_SECRET_LEN + 1])
{
    Grant *g = g_new0(Grant, 1);
    gint64 now = clock_mono_us();

    make_room(book, key_id);
    id_random_hex(g->secret, GRANT_SECRET_LEN / 2);
    g_strlcpy(g->box, what->box, sizeof g->box);
    g->port = what->port;
    g_strlcpy(g->key_id, key_id, sizeof g->key_id);
    g->until_us = now + life_s * G_USEC_PER_SEC;
    g->link_until_us = now + MIN(life_s, GRANT_LINK_S) * G_USEC_PER_SEC;
    g_hash_table_add(book->by_secret, g);
    g_queue_push_tail(&book->by_age, g);
    memcpy(ret_token, g->secret, sizeof g->secret);
}

static Grant *
find(GrantBook *book, const GrantFor *what, const char *secret, bool redeemed)
{
    Grant *g = g_hash_table_lookup(book->by_secret, secret);
    gint64 now = clock_mono_us();

    if (g == NULL || g->redeemed != redeemed || g->port != what->port || strcmp(g->box, what->box) != 0)
        return NULL;
    return now < (redeemed ? g->until_us : g->link_until_us) ? g : NULL;
}

bool
grant_redeem(GrantBook *book, const GrantFor *what, const char *token, char ret_cookie[GRANT_SECRET_LEN + 1],
             gint64 *ret_left_s)
{
    Grant *g = find(book, what, token, false);

    if (g == NULL)
        return false;
    g_hash_table_steal(book->by_secret, g->secret);
    g->redeemed = true;
    id_random_hex(g->secret, GRANT_SECRET_LEN / 2);
    g_hash_table_add(book->by_secret, g);
    memcpy(ret_cookie, g->secret, sizeof g->secret);
    *ret_left_s = (g->until_us - clock_mono_us()) / G_USEC_PER_SEC;
    return true;
}

const char *
grant_find(GrantBook *book, const GrantFor *what, const char *cookie)
{
    const Grant *g = find(book, what, cookie, true);

    return g != NULL ? g->key_id : NULL;
}

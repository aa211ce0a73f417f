/* SPDX-License-Identifier: Apache-2.0 */
#include "api/session.h"

#include <sodium.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/events.h"
#include "json/json.h"

enum { HASH_LEN = 32 };

typedef struct Ticket {
    char text[TICKET_LEN + 1];
    char key_id[ID_UUID_LEN + 1];
    gint64 due_us; /* monotonic */
} Ticket;

typedef struct Session {
    guint8 hash[HASH_LEN];
    char key_id[ID_UUID_LEN + 1];
    gint64 expires_us;
} Session;

struct SessionBook {
    Db *db;
    GQueue tickets;      /* Ticket*, oldest first */
    GHashTable *by_hash; /* hash bytes -> Session*, owned */
};

static void
hash_cookie(const char *cookie, guint8 ret_hash[HASH_LEN])
{
    crypto_generichash(ret_hash, HASH_LEN, (const guint8 *)cookie, strlen(cookie), NULL, 0);
}

static guint
hash_of_hash(gconstpointer hash)
{
    guint h;

    memcpy(&h, hash, sizeof h);
    return h;
}

static gboolean
hash_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, HASH_LEN) == 0;
}

SessionBook *
session_book_new(Db *db)
{
    SessionBook *book = g_new0(SessionBook, 1);

    book->db = db;
    g_queue_init(&book->tickets);
    book->by_hash = g_hash_table_new_full(hash_of_hash, hash_equal, NULL, g_free);
    return book;
}

void
session_book_free(SessionBook *book)
{
    if (book == NULL)
        return;
    g_queue_clear_full(&book->tickets, g_free);
    g_hash_table_unref(book->by_hash);
    g_free(book);
}

static void
add_session(SessionBook *book, const Session *session)
{
    Session *copy = g_new0(Session, 1);

    *copy = *session;
    g_hash_table_replace(book->by_hash, copy->hash, copy);
}

/* ---- loading ---- */

typedef struct Load {
    SessionBook *book;
    GArray *sessions; /* Session */
    DbDone done;
    void *data;
} Load;

static bool
load_work(DbTx *tx, void *data, GError **error)
{
    Load *load = data;
    gint64 now = clock_wall_us();
    bool more = true;

    if (!db_exec(tx, "DELETE FROM sessions WHERE expires_us <= ?", DB_ARGS(db_int(now)), error))
        return false;
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT hash, key_id, expires_us FROM sessions ORDER BY created_us DESC LIMIT ?",
                        DB_ARGS(db_int(SESSIONS_MAX)), error);
    while (rows != NULL && db_rows_next(rows, &more, error)) {
        if (!more)
            return true;
        Session s = {.expires_us = db_rows_int(rows, 2)};
        size_t n;
        const void *hash = db_rows_blob(rows, 0, &n);

        memcpy(s.hash, hash, MIN(n, (size_t)HASH_LEN));
        g_strlcpy(s.key_id, db_rows_text(rows, 1), sizeof s.key_id);
        g_array_append_val(load->sessions, s);
    }
    return false;
}

static void
load_done(void *data, const GError *error)
{
    Load *load = data;

    if (error == NULL) {
        g_hash_table_remove_all(load->book->by_hash);
        for (guint i = 0; i < load->sessions->len; i++)
            add_session(load->book, &g_array_index(load->sessions, Session, i));
    }
    load->done(load->data, error);
}

static void
load_free(gpointer data)
{
    Load *load = data;

    g_array_unref(load->sessions);
    g_free(load);
}

void
session_book_load(SessionBook *book, DbDone done, void *data)
{
    Load *load = g_new0(Load, 1);

    *load = (Load){.book = book, .done = done, .data = data};
    load->sessions = g_array_new(FALSE, FALSE, sizeof(Session));
    db_write(book->db, load_work, load_done, load, load_free);
}

/* ---- tickets ---- */

void
session_ticket_new(SessionBook *book, const char *key_id, char ret_ticket[TICKET_LEN + 1])
{
    Ticket *t = g_new0(Ticket, 1);

    id_random_hex(t->text, TICKET_LEN / 2);
    g_strlcpy(t->key_id, key_id, sizeof t->key_id);
    t->due_us = clock_mono_us() + (gint64)TICKET_LIFE_S * G_USEC_PER_SEC;
    if (book->tickets.length == TICKETS_MAX)
        g_free(g_queue_pop_head(&book->tickets));
    g_queue_push_tail(&book->tickets, t);
    memcpy(ret_ticket, t->text, sizeof t->text);
}

static Ticket *
take_ticket(SessionBook *book, const char *text)
{
    for (GList *l = book->tickets.head; l != NULL; l = l->next) {
        Ticket *t = l->data;

        if (strlen(text) != TICKET_LEN || sodium_memcmp(t->text, text, TICKET_LEN) != 0)
            continue;
        g_queue_delete_link(&book->tickets, l);
        if (t->due_us > clock_mono_us())
            return t;
        g_free(t);
        return NULL;
    }
    return NULL;
}

/* ---- opening and closing ---- */

typedef struct Open {
    SessionBook *book;
    Session session;
    char cookie[SESSION_COOKIE_LEN + 1];
    SessionOpenFunc done;
    void *data;
} Open;

static bool
open_work(DbTx *tx, void *data, GError **error)
{
    Open *o = data;
    char id[ID_UUID_LEN + 1];
    g_autofree char *actor = g_strdup_printf("key:%s", o->session.key_id);
    EventSpec event = {.kind = "session.opened", .actor = actor};

    id_new_uuid(id);
    return db_exec(tx,
                   "INSERT INTO sessions (id, hash, key_id, created_us, expires_us) VALUES (?, ?, ?, ?, ?)",
                   DB_ARGS(db_text(id), db_blob(o->session.hash, HASH_LEN), db_text(o->session.key_id),
                           db_int(clock_wall_us()), db_int(o->session.expires_us)),
                   error) &&
           event_append(tx, &event, NULL, error);
}

static void
open_done(void *data, const GError *error)
{
    Open *o = data;

    if (error == NULL)
        add_session(o->book, &o->session);
    o->done(error == NULL ? o->cookie : NULL, error, o->data);
}

static void
open_free(gpointer data)
{
    sodium_memzero(data, sizeof(Open));
    g_free(data);
}

static gboolean
is_over(gpointer hash, gpointer session, gpointer data)
{
    return ((Session *)session)->expires_us <= clock_wall_us();
}

void
session_open(SessionBook *book, const char *ticket, SessionOpenFunc done, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autofree Ticket *t = take_ticket(book, ticket);

    if (g_hash_table_size(book->by_hash) >= SESSIONS_MAX)
        g_hash_table_foreach_remove(book->by_hash, is_over, NULL);
    if (t == NULL)
        err_set(&error, ERR_DENIED, "this link was used or is too old; 'coop link' prints another");
    else if (g_hash_table_size(book->by_hash) >= SESSIONS_MAX)
        err_set(&error, ERR_LIMIT, "there are %d sessions already", SESSIONS_MAX);
    if (error != NULL) {
        done(NULL, error, data);
        return;
    }
    Open *o = g_new0(Open, 1);
    o->book = book;
    o->done = done;
    o->data = data;
    id_random_hex(o->cookie, SESSION_COOKIE_LEN / 2);
    hash_cookie(o->cookie, o->session.hash);
    g_strlcpy(o->session.key_id, t->key_id, sizeof o->session.key_id);
    o->session.expires_us = clock_wall_us() + (gint64)SESSION_LIFE_S * G_USEC_PER_SEC;
    db_write(book->db, open_work, open_done, o, open_free);
}

const char *
session_find(SessionBook *book, const char *cookie)
{
    guint8 hash[HASH_LEN];

    if (strlen(cookie) != SESSION_COOKIE_LEN)
        return NULL;
    hash_cookie(cookie, hash);
    Session *s = g_hash_table_lookup(book->by_hash, hash);
    return s != NULL && s->expires_us > clock_wall_us() ? s->key_id : NULL;
}

typedef struct Close {
    SessionBook *book;
    guint8 hash[HASH_LEN];
    DbDone done;
    void *data;
} Close;

static bool
close_work(DbTx *tx, void *data, GError **error)
{
    Close *c = data;

    return db_exec(tx, "DELETE FROM sessions WHERE hash = ?", DB_ARGS(db_blob(c->hash, HASH_LEN)), error);
}

static void
close_done(void *data, const GError *error)
{
    Close *c = data;

    if (error == NULL)
        g_hash_table_remove(c->book->by_hash, c->hash);
    c->done(c->data, error);
}

void
session_close(SessionBook *book, const char *cookie, DbDone done, void *data)
{
    Close *c = g_new0(Close, 1);

    *c = (Close){.book = book, .done = done, .data = data};
    hash_cookie(cookie, c->hash);
    db_write(book->db, close_work, close_done, c, g_free);
}

static gboolean
is_of_key(gpointer hash, gpointer session, gpointer key_id)
{
    return strcmp(((Session *)session)->key_id, key_id) == 0;
}

void
session_forget_key(SessionBook *book, const char *key_id)
{
    g_hash_table_foreach_remove(book->by_hash, is_of_key, (gpointer)(guintptr)key_id);
    for (GList *l = book->tickets.head, *next; l != NULL; l = next) {
        next = l->next;
        if (strcmp(((Ticket *)l->data)->key_id, key_id) != 0)
            continue;
        g_free(l->data);
        g_queue_delete_link(&book->tickets, l);
    }
}

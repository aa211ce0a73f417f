/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/id.h"
#include "store/db.h"

/* Browsers: a one-time ticket (in the fragment of a link, so it reaches no log) is exchanged
 * for a cookie.  Tickets live in memory only; sessions are stored by the hash of their
 * cookie and end with the key they came from. */
enum {
    TICKET_LEN = 48,
    TICKETS_MAX = 64,
    TICKET_LIFE_S = 600,
    SESSION_COOKIE_LEN = 64,
    SESSION_LIFE_S = 30 * 24 * 3600,
    SESSIONS_MAX = 10000,
};
#define SESSION_COOKIE "coop_session"

typedef struct SessionBook SessionBook;

SessionBook *session_book_new(Db *db);
void session_book_free(SessionBook *book);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SessionBook, session_book_free)
/* Reads the table anew; expired rows are deleted. */
void session_book_load(SessionBook *book, DbDone done, void *data);

/* A ticket for a session with the rights of `key_id`.  The oldest one goes when there are
 * too many. */
void session_ticket_new(SessionBook *book, const char *key_id, char ret_ticket[TICKET_LEN + 1]);

/* Uses the ticket up.  `cookie` is the value for the browser. */
typedef void (*SessionOpenFunc)(const char *cookie, const GError *error, void *data);
void session_open(SessionBook *book, const char *ticket, SessionOpenFunc done, void *data);

/* The id of the key a cookie stands for; NULL: no such session. */
const char *session_find(SessionBook *book, const char *cookie);
void session_close(SessionBook *book, const char *cookie, DbDone done, void *data);
/* After a key was revoked: its sessions and its tickets. */
void session_forget_key(SessionBook *book, const char *key_id);

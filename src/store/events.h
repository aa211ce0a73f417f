/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "store/db.h"

/* The event log: append-only, ordered by `seq`, and the only place others learn from.
 *
 * A change of state and its event are written in one transaction.  After the commit the
 * event is put into a ring in memory, from which all followers read the same copy; one that
 * is further behind reads pages from the database until it has caught up.  So memory is
 * bounded whatever the followers do, and nothing is lost for them.  Only what retention has
 * deleted can be missed, and then the cursor says EVENT_RESYNC.
 *
 * Each row carries a hash over the previous row's hash and its own content, so that a change
 * or deletion inside the log shows (event_log_verify). */

typedef struct EventSpec {
    const char *kind;  /* one of the vocabulary (event_kind_is_known); anything else asserts */
    const char *actor; /* who did it: "coop", "key:<id>", "agent:<id>", "local" */
    const char *task_id, *squad_id, *box_id, *execution_id; /* NULL: does not apply */
    /* A JSON object as text; NULL: {}.  Without `seen_by` it gets event_seen_by(). */
    const char *data;
    const char *owner; /* NULL: whose it is follows from what it is about; else EVENT_FOR_ALL */
} EventSpec;

/* The owner of what all who may read events are shown.  Others are a key's id, or "": nobody's but the
 * machine's, for admins alone. */
#define EVENT_FOR_ALL "*"

/* Longer data is ERR_LIMIT: an event fits into one pull of a stream. */
enum { EVENT_DATA_MAX = 32 * 1024 };

/* Inside a write job.  The time is the server's; `ret_seq` may be NULL.  Where they are not said, the
 * execution and the task are those of the agent in the box, and the squad is the task's.  Its owner is that
 * of the box; where there is none, of the execution, of the task, of the squad. */
bool event_append(DbTx *tx, const EventSpec *event, gint64 *ret_seq, GError **error);

bool event_kind_is_known(const char *kind);
const char *const *event_kinds(void); /* sorted, NULL-terminated */
/* Whose word an event is that does not say so itself: "coop" where Coop looked or did it, "agent" or "person"
 * where it tells what one of them wrote. */
const char *event_seen_by(const char *kind, const char *actor);
/* `pattern`: an exact name, or "box.*". */
bool event_kind_matches(const char *pattern, const char *kind);

/* ---- a stored event: immutable, shared ---- */

typedef struct Event {
    gint64 seq;
    gint64 at_us;
    const char *kind, *actor;
    const char *task_id, *squad_id, *box_id, *execution_id; /* NULL: none */
    const char *owner;
    const char *json; /* the whole event as the API shows it: seq, at, kind, actor, …, data */
    size_t json_len;
} Event;
Event *event_ref(Event *event);
void event_unref(Event *event);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Event, event_unref)

/* ---- following ---- */

typedef struct EventLog EventLog;

enum { EVENT_RING_MAX = 4096, EVENT_RING_BYTES_MAX = 4 * 1024 * 1024, EVENT_PAGE_MAX = 500 };

EventLog *event_log_new(Db *db, GError **error); /* blocks: start-up */
void event_log_free(EventLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EventLog, event_log_free)

gint64 event_log_last_seq(const EventLog *log);  /* of what is committed and published */
gint64 event_log_first_seq(const EventLog *log); /* oldest that retention has left */

typedef struct EventFilter {
    const char *task_id, *squad_id, *box_id, *execution_id; /* NULL: any */
    const char *const *kinds;                               /* exact names or "box.*"; NULL: any */
    const char *owner; /* only what this key may read; NULL: everything */
} EventFilter;

typedef enum EventStep {
    EVENT_READY,  /* *ret_event is the next one that passes the filter; the caller owns a reference */
    EVENT_WAIT,   /* `wake` will be called once */
    EVENT_RESYNC, /* what follows `after` is not there any more (or `after` lies in the future, as
                     after a restore): start again from the state, then follow from event_cursor_seq() */
    EVENT_FAILED, /* the database could not be read */
} EventStep;

typedef struct EventCursor EventCursor;
/* Everything after `after`; `after` < 0: only what comes from now on.  The filter is
 * copied.  `wake` runs on the loop, never inside a call here. */
EventCursor *event_cursor_new(EventLog *log, const EventFilter *filter, gint64 after,
                              void (*wake)(void *data), void *data);
/* It is the server's own, and no follower that anybody would count. */
void event_cursor_is_own(EventCursor *cursor);
void event_cursor_free(EventCursor *cursor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EventCursor, event_cursor_free)
EventStep event_cursor_next(EventCursor *cursor, Event **ret_event);
/* Everything up to here has been seen or filtered out. */
gint64 event_cursor_seq(const EventCursor *cursor);

/* One page as of now: at most `limit` events after `after` that pass the filter, oldest
 * first.  `done` gets the events (borrowed), the seq the page is true for and whether more
 * are there. */
typedef struct EventPage {
    GPtrArray *events; /* Event* */
    gint64 next_after;
    gint64 seq;
    bool more;
} EventPage;
typedef void (*EventPageFunc)(const EventPage *page, const GError *error, void *data);
void event_log_read(EventLog *log, const EventFilter *filter, gint64 after, guint limit, EventPageFunc done,
                    void *data);

/* Deletes what is older than `before_us`, in small steps; the newest event always stays.
 * The hash of the last deleted row is kept, so that what is left can still be verified. */
void event_log_prune(EventLog *log, gint64 before_us, DbDone done, void *data);

typedef void (*EventVerifyFunc)(gint64 events, gint64 bad_seq /* 0: sound */, const GError *error,
                                void *data);
void event_log_verify(EventLog *log, EventVerifyFunc done, void *data);

typedef struct EventStats {
    guint cursors;
    guint ring_events;
    size_t ring_bytes;
    gint64 first_seq, last_seq;
} EventStats;
void event_log_stats(const EventLog *log, EventStats *ret_stats);

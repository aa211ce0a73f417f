/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* What went wrong, from the caller's point of view: what it can do about it, not where it
 * happened.  The API layer has the only table that turns kinds into HTTP statuses. */
typedef enum ErrKind {
    ERR_INVALID, /* the request can never succeed as written */
    ERR_DENIED,  /* the caller may not do this */
    ERR_NOT_FOUND,
    ERR_CONFLICT, /* not in this state; a change elsewhere may help */
    ERR_LIMIT,    /* a configured bound was reached */
    ERR_FULL,     /* the host has no room (disk, inodes) */
    ERR_TIMEOUT,
    ERR_CANCELLED,   /* the caller gave up; not a failure, never logged */
    ERR_UNAVAILABLE, /* the host lacks something now; the message says what */
    ERR_INTERNAL,
    ERR_KIND_MAX,
} ErrKind;

#define ERR_DOMAIN (err_quark())
GQuark err_quark(void);

const char *err_kind_name(ErrKind kind);

/* The kind of an error of our domain; ERR_INTERNAL for one of another domain. */
ErrKind err_kind(const GError *error);

/* Both return false so that a failing path is one statement:
 *     return err_errno(error, "mount '%s'", target);
 * err_errno() reads errno before doing anything else. */
bool err_set(GError **error, ErrKind kind, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
bool err_errno(GError **error, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

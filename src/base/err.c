/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>

G_DEFINE_QUARK(coop_error, err)

static const char *const kind_names[ERR_KIND_MAX] = {
    [ERR_INVALID] = "invalid",   [ERR_DENIED] = "denied",       [ERR_NOT_FOUND] = "not_found",
    [ERR_CONFLICT] = "conflict", [ERR_LIMIT] = "limit",         [ERR_FULL] = "full",
    [ERR_TIMEOUT] = "timeout",   [ERR_CANCELLED] = "cancelled", [ERR_UNAVAILABLE] = "unavailable",
    [ERR_INTERNAL] = "internal",
};

const char *
err_kind_name(ErrKind kind)
{
    g_assert(kind < ERR_KIND_MAX);
    return kind_names[kind];
}

ErrKind
err_kind(const GError *error)
{
    return error->domain == ERR_DOMAIN ? (ErrKind)error->code : ERR_INTERNAL;
}

bool
err_set(GError **error, ErrKind kind, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (error != NULL)
        *error = g_error_new_valist(ERR_DOMAIN, kind, fmt, ap);
    va_end(ap);
    return false;
}

static ErrKind
kind_of_errno(int e)
{
    switch (e) {
    case ELOOP:
    case ENAMETOOLONG:
    case EISDIR:
        return ERR_INVALID;
    case ENOENT:
    case ENOTDIR:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_DENIED;
    case EEXIST:
    case EBUSY:
    case EADDRINUSE:
    case ENOTEMPTY:
    case ETXTBSY:
        return ERR_CONFLICT;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EFBIG:
        return ERR_LIMIT;
    case ENOSPC:
    case EDQUOT:
        return ERR_FULL;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case ENOSYS:
    case EOPNOTSUPP:
    case ECONNREFUSED:
        return ERR_UNAVAILABLE;
    default:
        return ERR_INTERNAL;
    }
}

bool
err_errno(GError **error, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return err_set(error, kind_of_errno(saved), "%s: %s", what, g_strerror(saved));
}

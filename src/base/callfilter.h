/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <errno.h>
#include <seccomp.h>
#include <stddef.h>

/* What the filters of system calls have in common; a header alone, so that only programs with a filter
 * need libseccomp.  Failures are negative error numbers, as libseccomp's are. */

static inline void
callfilter_free(scmp_filter_ctx *context)
{
    if (*context != NULL)
        seccomp_release(*context);
}
#define auto_callfilter __attribute__((cleanup(callfilter_free))) scmp_filter_ctx

/* `names` ends with NULL. */
static inline int
callfilter_add_names(scmp_filter_ctx context, const char *const *names, uint32_t action)
{
    int result = 0;

    for (size_t i = 0; names[i] != NULL && result == 0; i++) {
        int call = seccomp_syscall_resolve_name(names[i]);

        /* A call that only another architecture has is no rule here. */
        result = call == __NR_SCMP_ERROR ? -EINVAL : seccomp_rule_add(context, action, call, 0);
    }
    return result;
}

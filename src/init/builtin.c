/* SPDX-License-Identifier: Apache-2.0 */
#include "init/builtin.h"

#include <errno.h>

int
builtin_run(int argc, const char *const *argv)
{
    return ENOSYS;
}

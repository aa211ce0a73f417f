/* SPDX-License-Identifier: Apache-2.0 */
#include "base/exitcode.h"

#include "base/err.h"

ExitCode
exit_code_of(const GError *error)
{
    static const ExitCode codes[ERR_KIND_MAX] = {
        [ERR_INVALID] = EXIT_CODE_USAGE,       [ERR_DENIED] = EXIT_CODE_DENIED,
        [ERR_NOT_FOUND] = EXIT_CODE_NOT_FOUND, [ERR_CONFLICT] = EXIT_CODE_CONFLICT,
        [ERR_LIMIT] = EXIT_CODE_FAILED,        [ERR_FULL] = EXIT_CODE_FAILED,
        [ERR_TIMEOUT] = EXIT_CODE_TIMEOUT,     [ERR_CANCELLED] = EXIT_CODE_FAILED,
        [ERR_UNAVAILABLE] = EXIT_CODE_FAILED,  [ERR_INTERNAL] = EXIT_CODE_FAILED,
    };

    return codes[err_kind(error)];
}

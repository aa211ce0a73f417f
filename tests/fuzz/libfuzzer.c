/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    guint32 hash = 2166136261u;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ data[i]) * 16777619u;
    fuzz_input(data, n, n);
    fuzz_input(data, n, FUZZ_EACH_BYTE);
    /* Every cut would cost n runs an input; the replay does that. */
    if (n > 0)
        fuzz_input(data, n, hash % n);
    return 0;
}

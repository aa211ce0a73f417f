/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/circuit.h"

struct Circuit {
    guint refs; /* the provider's place, and each exchange with it */
    guint failures;
    gint64 open_until_us; /* 0: closed */
};

Circuit *
circuit_new(void)
{
    Circuit *circuit = g_new0(Circuit, 1);

    circuit->refs = 1;
    return circuit;
}

Circuit *
circuit_ref(Circuit *circuit)
{
    circuit->refs++;
    return circuit;
}

void
circuit_unref(Circuit *circuit)
{
    if (circuit != NULL && --circuit->refs == 0)
        g_free(circuit);
}

bool
circuit_pass(Circuit *circuit, gint64 now_us, guint *ret_wait_s)
{
    if (circuit->open_until_us == 0)
        return true;
    if (now_us < circuit->open_until_us) {
        *ret_wait_s = (guint)((circuit->open_until_us - now_us) / G_USEC_PER_SEC + 1);
        return false;
    }
    /* This one is the probe.  Should nothing be heard of it, the next may be another. */
    circuit->open_until_us = now_us + CIRCUIT_OPEN_S * G_USEC_PER_SEC;
    return true;
}

void
circuit_answered(Circuit *circuit)
{
    circuit->failures = 0;
    circuit->open_until_us = 0;
}

void
circuit_failed(Circuit *circuit, gint64 now_us)
{
    if (++circuit->failures >= CIRCUIT_FAILURES)
        circuit->open_until_us = now_us + CIRCUIT_OPEN_S * G_USEC_PER_SEC;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake-gate.h"

#include <string.h>

#include "brain/gate.h"

/* The model gateway, played: it answers with who asked. */
struct Gate {
    guint forgotten;
};

struct Breaker {
    int unused;
};

Gate *
fake_gate_new(void)
{
    return g_new0(Gate, 1);
}

guint
fake_gate_forgotten(const Gate *gate)
{
    return gate->forgotten;
}

void
gate_free(Gate *gate)
{
    g_free(gate);
}

bool
gate_owns(const char *path)
{
    return g_str_has_prefix(path, "/openai/") || g_str_has_prefix(path, "/anthropic/");
}

void
gate_handle(Gate *gate, HttpRequest *request, const GateCaller *caller)
{
    g_autofree char *text = g_strdup_printf("%s %s %s %s\n", caller->box, caller->agent, caller->task,
                                            caller->squad);

    g_assert_nonnull(caller->breaker);
    http_respond_text(request, 200, "text/plain", text);
}

void
gate_forget_box(Gate *gate, const char *box)
{
    gate->forgotten++;
}

Breaker *
breaker_new(void)
{
    return g_new0(Breaker, 1);
}

void
breaker_free(Breaker *breaker)
{
    g_free(breaker);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/err.h"
#include "http/client.h"

/* One call and what was heard of it. */
typedef enum ProbeEvent { PROBE_HEAD, PROBE_DATA, PROBE_DONE } ProbeEvent;

typedef struct Probe Probe;
struct Probe {
    HttpClient *client; /* borrowed */
    HttpCall *call;     /* NULL: ended */
    guint heads, chunks, dones;
    int status;
    GString *body;
    GError *error;
    /* In the callback, before anything is returned.  May be NULL. */
    void (*hook)(Probe *probe, ProbeEvent event);
    void *hook_data;
    bool stop; /* what `data` answers: stop after these bytes */
    bool discard;
    guint64 got;
};

#define probe_init(c)                                                                                        \
    {                                                                                                        \
        .client = (c), .body = g_string_new(NULL)                                                            \
    }
void probe_clear(Probe *probe);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Probe, probe_clear)

void probe_start(Probe *probe, const HttpCallSpec *spec);
void probe_get(Probe *probe, const char *url);
void probe_wait(Probe *probe);

/* NULL `text`: any message. */
void probe_check_error(const Probe *probe, ErrKind kind, const char *text);
void probe_check_ok(const Probe *probe, int status, const char *body);

/* Ends the program when a test hangs. */
void probe_start_watchdog(void);

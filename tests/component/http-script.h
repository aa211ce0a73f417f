/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* A server that plays given bytes, right or wrong, one thread a connection.  Connection number
 * i plays scripts[i]; when there are fewer, the last one again. */
typedef enum ScriptOp {
    SCRIPT_CLOSE,   /* ends the script */
    SCRIPT_RESET,   /* ends it with a reset */
    SCRIPT_REQUEST, /* reads a request: its head, and a body if it has Content-Length */
    SCRIPT_HEAD,    /* reads only the head */
    SCRIPT_SEND,    /* `bytes`, `n` of them or (0) up to the NUL */
    SCRIPT_FILL,    /* `n` bytes of the pattern */
    SCRIPT_HOLD,    /* waits until the peer closes */
    SCRIPT_IGNORE,  /* the same, without reading */
    SCRIPT_SIP,     /* reads `n` bytes of a body, a little at a time, with breaks */
    SCRIPT_AGAIN,   /* from the first step, on the same connection */
} ScriptOp;

typedef struct ScriptStep {
    ScriptOp op;
    const char *bytes;
    guint64 n;
} ScriptStep;

/* Byte i of the pattern is i % SCRIPT_PATTERN. */
enum { SCRIPT_PATTERN = 251 };
bool script_pattern_matches(const guint8 *bytes, size_t n, guint64 at);
void script_pattern_fill(guint8 *to, size_t n, guint64 at);

typedef struct Script Script;

/* Both outlive the server.  `unix_path` NULL: a port of 127.0.0.1. */
Script *script_serve(const ScriptStep *const *scripts, guint n_scripts, const char *unix_path);
Script *script_serve_one(const ScriptStep *steps);
void script_free(Script *script);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Script, script_free)

char *script_url(const Script *script, const char *target);
guint script_accepts(Script *script);
/* The head of the latest request, and its body: how long, and whether it was the pattern. */
char *script_dup_head(Script *script);
guint64 script_body_len(Script *script);
bool script_body_is_pattern(Script *script);

/* Bytes that SCRIPT_FILL has given to the kernel; whether it has been stuck for a moment. */
guint64 script_filled(Script *script);
bool script_is_stuck(Script *script);

/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/dialect.h"

#include <string.h>

static const char *const dialect_names[DIALECT_MAX] = {
    [DIALECT_OPENAI] = "openai",
    [DIALECT_ANTHROPIC] = "anthropic",
};

/* Codes are ours and the same in both dialects; types are the dialects' own, since clients
 * choose their exception by them. */
static const struct {
    int status;
    bool may_pass;
    const char *code;
    const char *types[DIALECT_MAX];
} faults[FAULT_MAX] = {
    [FAULT_INVALID] = {400, false, "invalid_request", {"invalid_request_error", "invalid_request_error"}},
    [FAULT_STATEFUL] = {400, false, "stateful_refused", {"invalid_request_error", "invalid_request_error"}},
    [FAULT_PATH] = {404, false, "unknown_path", {"invalid_request_error", "not_found_error"}},
    [FAULT_METHOD] = {405, false, "wrong_method", {"invalid_request_error", "invalid_request_error"}},
    [FAULT_UPGRADE] = {426, false, "no_upgrade", {"invalid_request_error", "invalid_request_error"}},
    [FAULT_LARGE] = {413, false, "request_too_large", {"invalid_request_error", "request_too_large"}},
    [FAULT_SLOW] = {408, true, "request_too_slow", {"invalid_request_error", "timeout_error"}},
    [FAULT_ENCODING] = {415, false, "encoding_refused", {"invalid_request_error", "invalid_request_error"}},
    [FAULT_MODEL] = {404, false, "model_not_found", {"invalid_request_error", "not_found_error"}},
    [FAULT_BUDGET] = {402, false, "budget_exceeded", {"insufficient_quota", "billing_error"}},
    [FAULT_PRICE] = {402, false, "price_unknown", {"insufficient_quota", "billing_error"}},
    [FAULT_RATE] = {429, true, "rate_exceeded", {"rate_limit_error", "rate_limit_error"}},
    [FAULT_LOOP] = {403, false, "loop_broken", {"permission_error", "permission_error"}},
    [FAULT_BUSY] = {503, true, "gateway_busy", {"server_error", "overloaded_error"}},
    [FAULT_UPSTREAM] = {502, true, "upstream_failed", {"server_error", "api_error"}},
    [FAULT_UPSTREAM_AUTH] = {502, false, "upstream_auth", {"server_error", "api_error"}},
    [FAULT_UPSTREAM_TIMEOUT] = {504, true, "upstream_timeout", {"server_error", "timeout_error"}},
    [FAULT_NO_RECORDING] = {404, false, "no_recording", {"invalid_request_error", "not_found_error"}},
};

const char *
dialect_name(Dialect dialect)
{
    return dialect_names[dialect];
}

bool
dialect_from_name(const char *name, Dialect *ret)
{
    for (guint i = 0; i < DIALECT_MAX; i++) {
        if (strcmp(dialect_names[i], name) == 0) {
            *ret = (Dialect)i;
            return true;
        }
    }
    return false;
}

int
fault_status(Fault fault)
{
    return faults[fault].status;
}

const char *
fault_code(Fault fault)
{
    return faults[fault].code;
}

bool
fault_may_pass(Fault fault)
{
    return faults[fault].may_pass;
}

static Json *
error_object(Fault fault, Dialect dialect, const char *message)
{
    const char *type = faults[fault].types[dialect];
    g_autofree char *text = g_utf8_make_valid(message, -1);

    if (dialect == DIALECT_ANTHROPIC)
        return json_pack("{s:s, s:{s:s, s:s, s:s}}", "type", "error", "error", "type", type, "message", text,
                         "code", faults[fault].code);
    return json_pack("{s:{s:s, s:s, s:n, s:s}}", "error", "message", text, "type", type, "param", "code",
                     faults[fault].code);
}

char *
fault_body(Fault fault, Dialect dialect, const char *message)
{
    g_autoptr(Json) object = error_object(fault, dialect, message);

    return json_encode(object);
}

char *
fault_event(Fault fault, StreamShape shape, const char *message)
{
    Dialect dialect = shape == SHAPE_MESSAGES ? DIALECT_ANTHROPIC : DIALECT_OPENAI;
    g_autoptr(Json) object = error_object(fault, dialect, message);

    if (shape == SHAPE_RESPONSES) {
        Json *inner = json_object_get(object, "error");

        /* As the API itself has it, beside the member that its clients look for. */
        json_object_set_new(object, "type", json_string("error"));
        json_object_set(object, "code", json_object_get(inner, "code"));
        json_object_set(object, "message", json_object_get(inner, "message"));
        json_object_set_new(object, "param", json_null());
    }
    g_autofree char *text = json_encode(object);
    return g_strdup_printf("%sdata: %s\n\n", shape == SHAPE_CHAT ? "" : "event: error\n", text);
}

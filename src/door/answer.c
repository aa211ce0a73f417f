/* SPDX-License-Identifier: Apache-2.0 */
#include "door/door-private.h"

enum { TARGET_SHOWN_MAX = 256 };

void
answer_refusal(HttpRequest *request, int status, const char *text)
{
    http_response_header(request, "X-Coop-Door", "denied");
    /* What a client has sent after a CONNECT is not for us to read as a request. */
    if (g_str_equal(http_request_method(request), "CONNECT"))
        http_response_close(request);
    http_respond_text(request, status, "text/plain; charset=utf-8", text);
}

char *
answer_host(const DoorName *name, guint16 default_port)
{
    bool v6 = name->is_address && name->address.ss_family == AF_INET6;
    g_autofree char *host = v6 ? g_strdup_printf("[%s]", name->host) : g_strdup(name->host);

    return name->port == default_port ? g_steal_pointer(&host) : g_strdup_printf("%s:%d", host, name->port);
}

void
answer_bad_name(DoorBox *box, HttpRequest *request, const GError *error)
{
    g_autofree char *text = g_strdup_printf("coop: %s\n", error->message);
    g_autofree char *target = g_strndup(http_request_target(request), TARGET_SHOWN_MAX);

    box->door->stats.denied++;
    door_box_tell(box, json_pack("{s:s, s:s, s:s, s:s}", "kind", "door.denied", "method",
                                 http_request_method(request), "target", target, "why", error->message));
    answer_refusal(request, 400, text);
}

static char *
denial_reason(const PolicyVerdict *v, PolicyMode mode, const DoorName *name)
{
    if (mode == POLICY_DENY)
        return g_strdup("everything is denied for this box");
    if (v->rule != NULL)
        return g_strdup_printf("the rule \"deny %s\" (%s) denies it", v->rule,
                               v->source[0] != '\0' ? v->source : "of this box");
    if (v->port_only)
        return g_strdup_printf("the rules for this name do not have port %d", name->port);
    return g_strdup("no rule allows it");
}

void
answer_denied(DoorBox *box, HttpRequest *request, const DoorName *name, const PolicyVerdict *verdict)
{
    g_autofree char *why = denial_reason(verdict, policy_mode(box->policy), name);
    g_autofree char *place = answer_host(name, 0);
    g_autofree char *pattern = answer_host(name, name->port == 80 || name->port == 443 ? name->port : 0);
    g_autofree char *text = g_strdup_printf("coop: the door does not let this box reach %s: %s.\n"
                                            "To allow it: coop door allow %s --box %s\n",
                                            place, why, pattern, box->id);

    answer_refusal(request, 403, text);
}

void
answer_limit(DoorBox *box, HttpRequest *request, const char *what)
{
    g_autofree char *text = g_strdup_printf("coop: this box has reached its limit of %s.\n", what);

    box->door->stats.denied++;
    if (meter_may_tell(&box->meter))
        door_box_tell(box, json_pack("{s:s, s:s}", "kind", "door.limited", "why", what));
    http_response_header(request, "Retry-After", "60");
    answer_refusal(request, 429, text);
}

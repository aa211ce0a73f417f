/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/message-core.h"
#include "fuzz.h"

/* The input is a commit message.  The parts of a good one lie in it; the explanation of a bad one can be
 * shown. */

static void
check_part(MessagePart part, size_t n)
{
    g_assert_cmpuint(part.at, <=, n);
    g_assert_cmpuint(part.n, <=, n - part.at);
}

static void
check(const char *text, size_t n, bool comments)
{
    Message m;
    char why[MESSAGE_PROBLEM_MAX];
    MessageRule rule = message_parse(text, n, comments, &m);

    g_assert_cmpint(rule, <, MESSAGE_RULE_MAX);
    message_explain(rule, text, n, why, sizeof why);
    g_assert_true(g_utf8_validate(why, -1, NULL));
    g_assert_true(g_str_has_suffix(why, "\n"));
    if (rule != MESSAGE_OK)
        return;
    const MessagePart parts[] = {m.type, m.scope, m.subject, m.body, m.task, m.agent, m.role};

    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        check_part(parts[i], n);
    g_assert_cmpuint(m.subject.n, >, 0);
    g_assert_true(m.kind != MESSAGE_PLAIN || message_is_type(text + m.type.at, m.type.n));
    g_assert_null(memchr(text + m.subject.at, '\n', m.subject.n));
    g_assert_true(g_utf8_validate(text, (gssize)n, NULL));
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    size_t whole = cut == FUZZ_EACH_BYTE ? n : MIN(cut, n);
    g_autofree char *exact = g_memdup2(data, MAX(whole, 1));

    check(exact, whole, false);
    check(exact, whole, true);
}

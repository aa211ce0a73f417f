/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/message-core.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "wire/utf8.h"

enum { SHOWN_MAX = 72 };

/* What stands in for them is MESSAGE_TYPES in texts. */
static const char *const types[] = {
    "build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test",
};

/* As git writes them by itself. */
static const struct {
    const char *prefix;
    MessageKind kind;
} own_forms[] = {
    {"Merge branch ", MESSAGE_MERGE},        {"Merge branches ", MESSAGE_MERGE},
    {"Merge tag ", MESSAGE_MERGE},           {"Merge commit ", MESSAGE_MERGE},
    {"Merge pull request #", MESSAGE_MERGE}, {"Merge remote-tracking branch ", MESSAGE_MERGE},
    {"Revert \"", MESSAGE_REVERT},           {"Reapply \"", MESSAGE_REVERT},
};

#define SCISSORS "# ------------------------ >8 ------------------------"

typedef struct Lines {
    const char *text;
    size_t n, next; /* where the next one begins */
    bool comments;
} Lines;

typedef struct Line {
    size_t at, n;
} Line;

static bool
starts_with(const char *text, size_t n, const char *prefix)
{
    size_t len = strlen(prefix);

    return n >= len && memcmp(text, prefix, len) == 0;
}

/* Without blanks at its end. */
static bool
next_line(Lines *lines, Line *ret)
{
    while (lines->next < lines->n) {
        size_t at = lines->next;
        const char *end = memchr(lines->text + at, '\n', lines->n - at);
        size_t n = end != NULL ? (size_t)(end - lines->text) - at : lines->n - at;

        lines->next = at + n + 1;
        if (lines->comments && starts_with(lines->text + at, n, SCISSORS))
            lines->next = lines->n;
        if (lines->comments && n > 0 && lines->text[at] == '#')
            continue;
        while (n > 0 && strchr(" \t\r", lines->text[at + n - 1]) != NULL)
            n--;
        *ret = (Line){at, n};
        return true;
    }
    return false;
}

/* ---- the first line ---- */

bool
message_is_type(const char *text, size_t n)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strlen(types[i]) == n && memcmp(types[i], text, n) == 0)
            return true;
    }
    return false;
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_scope(const char *text, size_t n)
{
    if (n == 0 || n > MESSAGE_SCOPE_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];

        if (!is_letter(c) && !(c >= '0' && c <= '9') && (c == '\0' || strchr("._/,-", c) == NULL))
            return false;
    }
    return true;
}

static MessageRule
read_subject(const char *text, Line line, size_t at, Message *m)
{
    size_t end = line.at + line.n;

    if (at == end)
        return MESSAGE_NO_SUBJECT;
    if (text[at] != ' ')
        return MESSAGE_NO_SPACE;
    at++;
    m->subject = (MessagePart){at, end - at};
    if (at == end)
        return MESSAGE_NO_SUBJECT;
    if (strchr(" \t", text[at]) != NULL || text[end - 1] == '.')
        return MESSAGE_BAD_SUBJECT;
    return utf8_count(text + line.at, line.n) > MESSAGE_HEADER_MAX ? MESSAGE_LONG_HEADER : MESSAGE_OK;
}

/* "type(scope)!: subject" */
static MessageRule
read_header(const char *text, Line line, Message *m)
{
    size_t at = line.at, end = line.at + line.n;

    while (at < end && is_letter(text[at]))
        at++;
    m->type = (MessagePart){line.at, at - line.at};
    if (at < end && text[at] == '(') {
        const char *close = memchr(text + at, ')', end - at);

        if (m->type.n == 0 || close == NULL)
            return MESSAGE_NO_TYPE;
        m->scope = (MessagePart){at + 1, (size_t)(close - text) - at - 1};
        at = (size_t)(close - text) + 1;
    }
    bool has_scope = at > m->type.at + m->type.n;

    m->breaking = at < end && text[at] == '!';
    at += m->breaking;
    if (m->type.n == 0 || at >= end || text[at] != ':')
        return MESSAGE_NO_TYPE;
    if (!message_is_type(text + m->type.at, m->type.n))
        return MESSAGE_BAD_TYPE;
    if (has_scope && !is_scope(text + m->scope.at, m->scope.n))
        return MESSAGE_BAD_SCOPE;
    return read_subject(text, line, at + 1, m);
}

static MessageKind
kind_of(const char *text, Line line)
{
    for (size_t i = 0; i < sizeof own_forms / sizeof *own_forms; i++) {
        if (starts_with(text + line.at, line.n, own_forms[i].prefix))
            return own_forms[i].kind;
    }
    return MESSAGE_PLAIN;
}

/* ---- the rest ---- */

/* "Key: value": where the value is.  False: it is no trailer. */
static bool
is_trailer(const char *text, Line line, const char *key, MessagePart *ret_value)
{
    size_t n = strlen(key);

    if (line.n <= n || strncasecmp(text + line.at, key, n) != 0 || text[line.at + n] != ':')
        return false;
    size_t at = line.at + n + 1, end = line.at + line.n;

    while (at < end && (text[at] == ' ' || text[at] == '\t'))
        at++;
    *ret_value = (MessagePart){at, end - at};
    return true;
}

static bool
take_trailer(const char *text, Line line, Message *m)
{
    const struct {
        const char *key;
        MessagePart *value;
    } known[] = {{"Task", &m->task}, {"Agent", &m->agent}, {"Role", &m->role}};
    MessagePart value;

    if (is_trailer(text, line, "BREAKING CHANGE", &value) ||
        is_trailer(text, line, "BREAKING-CHANGE", &value))
        m->breaking = true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!is_trailer(text, line, known[i].key, &value))
            continue;
        if (known[i].value->n > 0 || value.n == 0 || value.n > MESSAGE_TRAILER_MAX)
            return false;
        *known[i].value = value;
    }
    return true;
}

/* Trailers are of the last paragraph; those of others are text like the rest. */
static MessageRule
read_rest(Lines *lines, Message *m)
{
    MessagePart none = {0, 0};
    bool first = true, after_blank = false, bad_trailer = false;
    Line line;

    while (next_line(lines, &line)) {
        if (first && line.n > 0)
            return MESSAGE_NO_BLANK;
        first = false;
        if (line.n > MESSAGE_LINE_MAX)
            return MESSAGE_LONG_LINE;
        if (line.n == 0) {
            after_blank = true;
            continue;
        }
        if (m->body.n == 0)
            m->body.at = line.at;
        m->body.n = line.at + line.n - m->body.at;
        if (after_blank) {
            m->task = m->agent = m->role = none;
            bad_trailer = false;
        }
        after_blank = false;
        bad_trailer |= !take_trailer(lines->text, line, m);
    }
    return bad_trailer ? MESSAGE_BAD_TRAILER : MESSAGE_OK;
}

/* Text that a terminal may be shown: no control characters, neither the old ones nor those of two bytes. */
static bool
is_text(const char *text, size_t n)
{
    if (!utf8_is_valid(text, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)text[i];
        bool wide_control = c == 0xc2 && (uint8_t)text[i + 1] < 0xa0;
        bool carriage = c == '\r' && i + 1 < n && text[i + 1] == '\n';

        if (wide_control || c == 0x7f || (c < ' ' && c != '\n' && c != '\t' && !carriage))
            return false;
    }
    return true;
}

MessageRule
message_parse(const char *text, size_t n, bool comments, Message *ret)
{
    Message m = {0};
    Lines lines = {.text = text, .n = n, .comments = comments};
    Line line = {0, 0};

    if (n > MESSAGE_MAX)
        return MESSAGE_TOO_LONG;
    if (!is_text(text, n))
        return MESSAGE_NOT_TEXT;
    while (line.n == 0) {
        if (!next_line(&lines, &line))
            return MESSAGE_EMPTY;
    }
    m.kind = kind_of(text, line);
    m.subject = (MessagePart){line.at, line.n};
    MessageRule rule = m.kind == MESSAGE_PLAIN ? read_header(text, line, &m) : MESSAGE_OK;

    if (rule == MESSAGE_OK)
        rule = read_rest(&lines, &m);
    if (rule == MESSAGE_OK && ret != NULL)
        *ret = m;
    return rule;
}

/* ---- for people ---- */

static const char *const reasons[MESSAGE_RULE_MAX] = {
    [MESSAGE_OK] = "it is good",
    [MESSAGE_EMPTY] = "it is empty",
    [MESSAGE_TOO_LONG] = "it is longer than 64 KiB",
    [MESSAGE_NOT_TEXT] = "it is no UTF-8, or has control characters in it",
    [MESSAGE_NO_TYPE] = "its first line does not begin with 'type: ' or 'type(scope): '",
    [MESSAGE_BAD_TYPE] = ("its type is not one of " MESSAGE_TYPES),
    [MESSAGE_BAD_SCOPE] = "its scope is not 1 to 40 letters, digits and '._/,-'",
    [MESSAGE_NO_SPACE] = "there is no blank behind the colon",
    [MESSAGE_NO_SUBJECT] = "it has no subject behind the colon",
    [MESSAGE_BAD_SUBJECT] = "its subject begins with a blank or ends with a full stop",
    [MESSAGE_LONG_HEADER] = "its first line has more than 100 characters",
    [MESSAGE_NO_BLANK] = "its second line is not empty",
    [MESSAGE_LONG_LINE] = "it has a line of more than 1000 bytes",
    [MESSAGE_BAD_TRAILER] = "one of its trailers Task, Agent and Role is empty, too long or there twice",
};

/* The first line, as far as it can be shown. */
static void
show_line(const char *text, size_t n, char into[SHOWN_MAX + 1])
{
    size_t used = 0, first = 0;

    while (first < n && text[first] == '\n')
        first++;
    for (size_t i = first; i < n && used < SHOWN_MAX && text[i] != '\n'; i++) {
        char c = text[i];

        into[used++] = c >= ' ' && c < 0x7f ? c : '?';
    }
    into[used] = '\0';
}

void
message_explain(MessageRule rule, const char *text, size_t n, char *into, size_t size)
{
    char shown[SHOWN_MAX + 1];

    show_line(text, n, shown);
    (void)snprintf(into, size,
                   "This commit message cannot be taken: %s.\n"
                   "\n"
                   "    found:   %s\n"
                   "    wanted:  type(scope): subject\n"
                   "\n"
                   "Types: " MESSAGE_TYPES ".\n"
                   "The scope may be left out; '!' before the colon marks a breaking change. An example:\n"
                   "\n"
                   "    fix(parser): accept an empty list\n"
                   "\n"
                   "    Lists without members were taken for errors.\n"
                   "\n"
                   "    Task: 42\n"
                   "    Agent: coop-ada\n"
                   "    Role: coder\n",
                   reasons[rule < MESSAGE_RULE_MAX ? rule : MESSAGE_OK], shown);
}

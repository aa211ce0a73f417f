/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forge/message-core.h"
#include "hook/hook.h"

enum {
    TEXT_MAX = 8 << 20, /* of all messages together */
    SHORT_OID = 12,
};

/* What is not in the repository yet, newest first: "OID PARENTS\nMESSAGE" with NULs between them. */
static char *
read_text(const Push *push, size_t *ret_n)
{
    const char **argv = calloc(push->n + 12, sizeof *argv);
    char count[32];
    size_t n = 0;

    if (argv == NULL)
        return NULL;
    snprintf(count, sizeof count, "--max-count=%d", COMMITS_MAX);
    argv[n++] = "git";
    argv[n++] = "log";
    argv[n++] = "-z";
    argv[n++] = "--no-show-signature";
    argv[n++] = "--format=%H %P%n%B";
    argv[n++] = count;
    for (size_t i = 0; i < push->n; i++) {
        if (!is_zero(push->updates[i].new))
            argv[n++] = push->updates[i].new;
    }
    argv[n++] = "--not";
    argv[n++] = "--all";
    argv[n++] = "--";
    char *text = ask_text(argv, TEXT_MAX, ret_n);

    free(argv);
    return text;
}

/* ---- reading ---- */

/* "refuse", "warn"; NULL: they are not looked at. */
static const char *
policy(void)
{
    const char *value = getenv(HOOK_MESSAGES);

    return value != NULL &&
                   (strcmp(value, HOOK_MESSAGES_REFUSE) == 0 || strcmp(value, HOOK_MESSAGES_WARN) == 0)
               ? value
               : NULL;
}

/* False: this is none, or not the whole of one. */
static bool
read_commit(char *record, const char *end, Commit *ret)
{
    char *line_end = strchr(record, '\n');

    if (line_end == NULL || line_end - record <= OID_LEN || record[OID_LEN] != ' ' ||
        record + strlen(record) == end)
        return false;
    record[OID_LEN] = *line_end = '\0';
    *ret = (Commit){.oid = record, .parents = record + OID_LEN + 1, .message = line_end + 1};
    ret->len = strlen(ret->message);
    while (ret->len > 0 && ret->message[ret->len - 1] == '\n')
        ret->len--;
    return true;
}

bool
commits_read(const Push *push, Commits *ret)
{
    size_t n;

    if (policy() == NULL)
        return true;
    ret->text = read_text(push, &n);
    if (ret->text == NULL)
        return refuse("the commits cannot be read");
    /* What was cut off at the bound has no NUL of git's behind it. */
    const char *cut = n == TEXT_MAX ? ret->text + n : NULL;

    for (char *record = ret->text; record < ret->text + n && ret->n < COMMITS_MAX;) {
        char *next = record + strlen(record) + 1;

        if (!read_commit(record, cut, &ret->all[ret->n]))
            break;
        ret->n++;
        record = next;
    }
    return true;
}

/* ---- what they show ---- */

static void
reach(Commits *commits, const char *oid, Commit **todo, size_t *n)
{
    for (size_t i = 0; i < commits->n; i++) {
        Commit *c = &commits->all[i];

        if (!c->seen && strncmp(c->oid, oid, OID_LEN) == 0) {
            c->seen = true;
            todo[(*n)++] = c;
        }
    }
}

bool
commits_lead(Commits *commits, const char *new, const char *old)
{
    Commit *todo[COMMITS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < commits->n; i++)
        commits->all[i].seen = false;
    reach(commits, new, todo, &n);
    while (n > 0) {
        const char *parent = todo[--n]->parents;

        for (; strlen(parent) >= OID_LEN; parent += OID_LEN + (parent[OID_LEN] == ' ')) {
            if (strncmp(parent, old, OID_LEN) == 0)
                return true;
            reach(commits, parent, todo, &n);
        }
    }
    return false;
}

/* ---- messages ---- */

/* A repository may have types of its own: "feat fix docs". */
static bool
is_own_type(const char *message)
{
    const char *types = getenv(HOOK_TYPES);
    size_t n = strcspn(message, "(!:\n");

    while (types != NULL && *types != '\0') {
        size_t len = strcspn(types, " ");

        if (len == n && strncmp(types, message, n) == 0)
            return true;
        types += len + (types[len] == ' ');
    }
    return false;
}

static MessageRule
judge(const char *message, size_t n)
{
    Message parts = {0};
    MessageRule rule = message_parse(message, n, false, &parts);

    if (getenv(HOOK_TYPES) == NULL || parts.kind != MESSAGE_PLAIN)
        return rule;
    if (rule == MESSAGE_BAD_TYPE)
        return is_own_type(message) ? MESSAGE_OK : rule;
    return rule == MESSAGE_OK && !is_own_type(message) ? MESSAGE_BAD_TYPE : rule;
}

static void
say(const Commit *commit, MessageRule rule)
{
    char text[MESSAGE_PROBLEM_MAX];

    message_explain(rule, commit->message, commit->len, text, sizeof text);
    fprintf(stderr, "coop: commit %.*s: %s", SHORT_OID, commit->oid, text);
}

/* Of merges nobody has written the message.  How many are wrong. */
static size_t
judge_all(const Commits *commits)
{
    size_t wrong = 0;

    for (size_t i = 0; i < commits->n; i++) {
        const Commit *c = &commits->all[i];
        bool is_merge = strchr(c->parents, ' ') != NULL;
        MessageRule rule = is_merge ? MESSAGE_OK : judge(c->message, c->len);

        if (rule != MESSAGE_OK && wrong++ < SAID_MAX)
            say(c, rule);
    }
    return wrong;
}

bool
commits_check(const Commits *commits)
{
    size_t wrong = judge_all(commits);

    if (wrong == 0)
        return true;
    if (strcmp(policy(), HOOK_MESSAGES_REFUSE) == 0)
        return refuse("%zu of the commits need another message: git rebase -i, or git commit --amend for the "
                      "newest; then push again",
                      wrong);
    fprintf(stderr, "coop: taken all the same; here messages follow Conventional Commits\n");
    return true;
}

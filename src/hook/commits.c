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

/* What is not in the repository yet, newest first: "OID\nMESSAGE" with NULs between them. */
static char *
read_commits(const Push *push, size_t *ret_n)
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
    argv[n++] = "--no-merges";
    argv[n++] = "--no-show-signature";
    argv[n++] = "--format=%H%n%B";
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
say(const char *record, MessageRule rule, const char *message, size_t n)
{
    char text[MESSAGE_PROBLEM_MAX];

    message_explain(rule, message, n, text, sizeof text);
    fprintf(stderr, "coop: commit %.*s: %s", SHORT_OID, record, text);
}

/* How many are wrong. */
static size_t
judge_all(const char *text, size_t n)
{
    size_t wrong = 0;

    for (const char *record = text; record < text + n; record += strlen(record) + 1) {
        const char *message = strchr(record, '\n');

        if (message == NULL || record + strlen(record) == text + TEXT_MAX)
            break;
        message++;
        size_t len = strlen(message);

        while (len > 0 && message[len - 1] == '\n')
            len--;
        MessageRule rule = judge(message, len);

        if (rule != MESSAGE_OK && wrong++ < SAID_MAX)
            say(record, rule, message, len);
    }
    return wrong;
}

bool
commits_check(const Push *push)
{
    const char *policy = getenv(HOOK_MESSAGES);
    bool strict = policy != NULL && strcmp(policy, HOOK_MESSAGES_REFUSE) == 0;
    size_t n;

    if (!strict && (policy == NULL || strcmp(policy, HOOK_MESSAGES_WARN) != 0))
        return true;
    char *text = read_commits(push, &n);

    if (text == NULL)
        return refuse("the commits cannot be read");
    size_t wrong = judge_all(text, n);

    free(text);
    if (wrong == 0)
        return true;
    if (strict)
        return refuse("%zu of the commits need another message: git rebase -i, or git commit --amend for the "
                      "newest; then push again",
                      wrong);
    fprintf(stderr, "coop: taken all the same; here messages follow Conventional Commits\n");
    return true;
}

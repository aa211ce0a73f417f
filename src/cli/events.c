/* SPDX-License-Identifier: Apache-2.0 */
#include "store/events.h"
#include "cli/commands.h"
#include "cli/events.h"
#include "cli/follow.h"
#include "cli/remote.h"

enum { NEWEST_DEFAULT = 100 };

static const char whole_log[] = "/api/v1/events";

typedef struct Asked {
    GString *path; /* with the filters */
    bool filtered;
    bool part;           /* the path itself is not of the whole log */
    gint64 after, limit; /* -1: not given */
} Asked;

static void
asked_clear(Asked *asked)
{
    g_string_free(asked->path, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Asked, asked_clear)

static void
add_filter(Cli *cli, Asked *asked, const char *name)
{
    g_autoptr(GPtrArray) values = cli_option_all(cli, name);

    if (values->len == 0)
        return;
    g_ptr_array_add(values, NULL);
    g_autofree char *joined = g_strjoinv(",", (char **)values->pdata);
    g_autofree char *text = g_uri_escape_string(joined, ",", FALSE);
    g_string_append_printf(asked->path, "%c%s=%s", asked->filtered ? '&' : '?', name, text);
    asked->filtered = true;
}

static bool
read_number(Cli *cli, const char *name, gint64 min, gint64 *ret_number)
{
    const char *text = cli_option(cli, name);

    if (text == NULL || g_ascii_string_to_signed(text, 10, min, G_MAXINT64, ret_number, NULL))
        return true;
    cli_fail(cli, EXIT_CODE_USAGE, "option --%s: '%s' is not a whole number from %d", name, text, (int)min);
    return false;
}

static bool
read_asked(Cli *cli, const char *path, Asked *asked)
{
    static const char *const filters[] = {"task", "squad", "box", "kind"};

    *asked = (Asked){.path = g_string_new(path), .after = -1, .limit = -1};
    asked->part = strcmp(path, whole_log) != 0;
    for (size_t i = 0; i < G_N_ELEMENTS(filters); i++)
        add_filter(cli, asked, filters[i]);
    return read_number(cli, "after", 0, &asked->after) && read_number(cli, "limit", 1, &asked->limit);
}

/* ---- pages ---- */

static ExitCode
fetch_page(Cli *cli, Remote *remote, const Asked *asked, gint64 after, gint64 limit, Json **ret_page)
{
    g_autofree char *path = g_strdup_printf("%s%cafter=%" G_GINT64_FORMAT "&limit=%" G_GINT64_FORMAT,
                                            asked->path->str, asked->filtered ? '&' : '?', after,
                                            CLAMP(limit, 1, (gint64)EVENT_PAGE_MAX));
    g_autoptr(Json) page = NULL;
    ExitCode code = remote_call(remote, "GET", path, NULL, &page);

    if (code != EXIT_CODE_OK)
        return code;
    if (!json_is_array(json_object_get(page, "events")) ||
        !json_is_integer(json_object_get(page, "next_after")))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no page of events",
                        remote_address(remote));
    *ret_page = g_steal_pointer(&page);
    return EXIT_CODE_OK;
}

static gint64
number_of(const Json *page, const char *member)
{
    return json_integer_value(json_object_get(page, member));
}

/* The oldest first, at most `limit` of them (-1: all). */
static ExitCode
show_from(Cli *cli, Remote *remote, const Asked *asked)
{
    gint64 after = asked->after, left = asked->limit >= 0 ? asked->limit : G_MAXINT64;
    bool more = true;

    while (more && left > 0) {
        g_autoptr(Json) page = NULL;
        ExitCode code = fetch_page(cli, remote, asked, after, left, &page);

        if (code != EXIT_CODE_OK)
            return code;
        const Json *events = json_object_get(page, "events");
        for (size_t i = 0; i < json_array_size(events) && left > 0; i++, left--)
            follow_show_event(cli_out(cli), json_array_get(events, i));
        more = json_is_true(json_object_get(page, "more")) && number_of(page, "next_after") > after;
        after = number_of(page, "next_after");
    }
    return EXIT_CODE_OK;
}

static void
keep_newest(GQueue *kept, const Json *events, gint64 limit)
{
    for (size_t i = 0; i < json_array_size(events); i++) {
        g_queue_push_tail(kept, json_incref(json_array_get(events, i)));
        if ((gint64)kept->length > limit)
            json_decref(g_queue_pop_head(kept));
    }
}

static ExitCode
read_newest(Cli *cli, Remote *remote, const Asked *asked, gint64 after, gint64 limit, GQueue *kept)
{
    bool more = true;

    while (more) {
        g_autoptr(Json) page = NULL;
        ExitCode code = fetch_page(cli, remote, asked, after, EVENT_PAGE_MAX, &page);

        if (code != EXIT_CODE_OK)
            return code;
        keep_newest(kept, json_object_get(page, "events"), limit);
        more = json_is_true(json_object_get(page, "more")) && number_of(page, "next_after") > after;
        after = number_of(page, "next_after");
    }
    return EXIT_CODE_OK;
}

/* Pages are counted from the oldest, so all have to be looked through: with a filter, and with a key that is
 * not shown everything, which shows in what is missing at the end. */
static ExitCode
show_newest(Cli *cli, Remote *remote, const Asked *asked)
{
    gint64 limit = asked->limit >= 0 ? asked->limit : NEWEST_DEFAULT, after = 0;
    g_autoptr(Json) first = NULL;
    GQueue kept = G_QUEUE_INIT;
    ExitCode code = fetch_page(cli, remote, asked, 0, 1, &first);

    if (code != EXIT_CODE_OK)
        return code;
    if (!asked->filtered && !asked->part)
        after = MAX(number_of(first, "seq") - limit, 0);
    code = read_newest(cli, remote, asked, after, limit, &kept);
    if (code == EXIT_CODE_OK && after > 0 && (gint64)kept.length < limit) {
        g_queue_clear_full(&kept, (GDestroyNotify)json_decref);
        code = read_newest(cli, remote, asked, 0, limit, &kept);
    }
    for (GList *l = kept.head; l != NULL && code == EXIT_CODE_OK; l = l->next)
        follow_show_event(cli_out(cli), l->data);
    g_queue_clear_full(&kept, (GDestroyNotify)json_decref);
    return code;
}

ExitCode
events_show(Cli *cli, const char *path)
{
    g_auto(Asked) asked;
    g_autoptr(Remote) remote = NULL;

    if (!read_asked(cli, path, &asked))
        return EXIT_CODE_USAGE;
    ExitCode code = remote_open(cli, &remote);
    if (code != EXIT_CODE_OK)
        return code;
    if (cli_option(cli, "follow") == NULL)
        return asked.after >= 0 ? show_from(cli, remote, &asked) : show_newest(cli, remote, &asked);
    if (asked.after >= 0)
        g_string_append_printf(asked.path, "%cafter=%" G_GINT64_FORMAT, asked.filtered ? '&' : '?',
                               asked.after);
    return follow_run(cli, remote, asked.path->str, asked.limit);
}

static ExitCode
run(Cli *cli)
{
    return events_show(cli, whole_log);
}

/* ---- coop events verify ---- */

static ExitCode
run_verify(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) result = NULL;
    RemoteCall call = REMOTE_CALL_INIT;
    ExitCode code = remote_open(cli, &remote);

    call.path = "/api/v1/events/verify";
    call.answer_ms = 0; /* the whole log is read */
    if (code == EXIT_CODE_OK)
        code = remote_run(remote, &call, &result);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), result);
    gint64 n = number_of(result, "events");
    if (json_is_true(json_object_get(result, "sound"))) {
        out_text(cli_out(cli), OUT_GOOD, "the log is sound: %" G_GINT64_FORMAT " events\n", n);
        return EXIT_CODE_OK;
    }
    return cli_fail(cli, EXIT_CODE_FAILED,
                    "the log was changed or is damaged: event %" G_GINT64_FORMAT " is not what was written",
                    number_of(result, "bad_seq"));
}

static const Command verify = {
    .name = "verify",
    .summary = "Check that nothing in the log was changed or removed",
    .details = "Each event carries a hash over the one before it. Exit code 1: the chain is broken.",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_verify,
};
static const Command *const commands[] = {&verify, NULL};

static const CliOption options[] = {
    {.name = "follow", .letter = 'f', .help = "wait for further ones and show them as they come"},
    {.name = "task", .value = "ID", .help = "only those of this task"},
    {.name = "squad", .value = "ID", .help = "only those of this squad"},
    {.name = "box", .value = "ID", .help = "only those of this box"},
    {.name = "kind",
     .value = "KIND",
     .help = "only of this kind, such as key.created or key.*; may be repeated"},
    {.name = "after", .value = "SEQ", .help = "those after this number, oldest first"},
    {.name = "limit", .value = "N", .help = "at most so many (without --after: the newest, 100 of them)"},
    {NULL},
};

const Command command_events = {
    .name = "events",
    .summary = "Show what happened",
    .details =
        "With -o json each event is one line of JSON. When the connection of -f is lost it is made again,\n"
        "and goes on where it stopped; a note on standard error tells of it.",
    .options = options,
    .commands = commands,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};

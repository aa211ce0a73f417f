/* SPDX-License-Identifier: Apache-2.0 */
/* Scanners on what a reviewer is about to read, before its program starts: nothing of the change and nothing
 * of the agent has run in the box by then, so what they say is Coop's own word.  It becomes check runs of the
 * commit, a part of what the reviewer is told, and of the result.
 *
 * A program that the template lacks has not found the change clean: somebody has to do something, and is
 * told what.  One that does not come to its end, or does not answer, may be so because of what it was given:
 * then the change has not passed. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/box-call.h"
#include "forge/check-row.h"
#include "forge/diff.h"
#include "forge/records.h"
#include "team/crew-private.h"
#include "team/scan.h"

enum {
    SCAN_MS = 300 * 1000,
    SCAN_LISTED_MAX = 2000,
    NOT_FOUND_CODE = 127,
    NOT_RUNNABLE_CODE = 126,
};

#define SCAN_TEMPLATE "reviewer" /* which has them all */

typedef struct Scan {
    Shift *shift;
    char *base, *head;
    GPtrArray *paths;    /* with NULL behind them */
    guint odd;           /* files with names that no program can be told, and that would be in no answer */
    bool more;           /* files than were listed */
    GPtrArray *commands; /* ScanCommand */
    ScanLines *written;  /* lines of the change */
    ScanResult *found;   /* of the command that goes on, before it is asked what marks silence; NULL: none */
    guint n;
    gint64 began_us;
    Json *said; /* as the result has it */
} Scan;

static void next(Scan *scan);

static void
scan_free(void *data)
{
    Scan *scan = data;

    shift_unref(scan->shift);
    g_free(scan->base);
    g_free(scan->head);
    g_clear_pointer(&scan->paths, g_ptr_array_unref);
    g_clear_pointer(&scan->commands, g_ptr_array_unref);
    scan_lines_free(scan->written);
    scan_result_free(scan->found);
    json_decref(scan->said);
    g_free(scan);
}

static bool
is_over(const Scan *scan)
{
    return scan->shift->crew == NULL || scan->shift->phase != SHIFT_SCANNING;
}

/* ---- rows ---- */

static bool
put_row(DbTx *tx, const Scan *scan, const Json *said, GError **error)
{
    const char *skipped = row_text(said, "skipped");
    CheckRow row = {
        .name = row_text(said, "name"),
        .head_oid = scan->head,
        .status = "completed",
        .conclusion = skipped != NULL                   ? "action_required"
                      : row_int(said, "exit_code") == 0 ? "success"
                                                        : "failure",
        .title = skipped != NULL ? skipped : row_text(said, "summary"),
        .output = row_text(said, "output"),
        .command = row_text(said, "run"),
        .has_exit_code = skipped == NULL,
        .exit_code = (int)row_int(said, "exit_code"),
        .started_us = row_int(said, "started_us"),
        .completed_us = row_int(said, "completed_us"),
    };

    return check_row_put(tx, row_text(json_object_get(scan->shift->row, "task"), "repository_id"), &row,
                         error);
}

/* In a thread of the database: the shift is read there, and changed by nobody while it scans. */
static bool
write_rows(DbTx *tx, void *data, GError **error)
{
    Scan *scan = data;
    g_autoptr(Json) result = json_pack("{s:O}", "scans", scan->said);
    g_autofree char *text = json_encode(result);
    size_t i;
    Json *said;

    json_array_foreach(scan->said, i, said)
    {
        if (!put_row(tx, scan, said, error))
            return false;
    }
    return db_exec(tx, "UPDATE task_executions SET result = ? WHERE id = ?",
                   DB_ARGS(db_text(text), db_text(scan->shift->id)), error);
}

static void
on_written(void *data, const GError *error)
{
    Scan *scan = data;
    Shift *s = scan->shift;

    if (is_over(scan))
        return;
    if (error != NULL)
        log_warn("crew", "what scanners said could not be written", log_str("execution", s->id),
                 log_gerror(error));
    FAILPOINT("crew-scanned");
    json_decref(s->scans);
    s->scans = json_incref(scan->said);
    shift_work(s);
}

/* ---- one after the other ---- */

static char *
format_findings(const ScanResult *found)
{
    g_autoptr(GString) out = g_string_new(NULL);

    for (guint i = 0; i < MIN(found->findings->len, SCAN_FINDINGS_MAX); i++) {
        const ScanFinding *f = found->findings->pdata[i];

        g_string_append_printf(out, "%s:%" G_GINT64_FORMAT ": %s: %s (%s)\n", f->path, f->line,
                               scan_severity_name(f->severity), f->text, f->rule);
    }
    return g_strdup(out->str);
}

/* What a scan came to. */
typedef struct Said {
    const char *name, *run, *output, *summary;
    const char *skipped; /* why; NULL: it was not */
    bool passed, partial;
    Json *findings; /* taken; NULL: none */
} Said;

static void
say(Scan *scan, const Said *said)
{
    g_autofree char *name = g_strconcat("scan: ", said->name, NULL);
    gint64 now = clock_wall_us();

    json_array_append_new(
        scan->said,
        json_pack("{s:s, s:s, s:o, s:I, s:n, s:s, s:s, s:s?, s:b, s:o, s:I, s:I, s:s}", "name", name, "run",
                  said->run, "exit_code",
                  said->skipped != NULL ? json_null() : json_integer(said->passed ? 0 : 1), "duration_ms",
                  (json_int_t)((now - scan->began_us) / 1000), "tests", "output", said->output, "summary",
                  said->summary, "skipped", said->skipped, "partial", (int)said->partial, "findings",
                  said->findings != NULL ? said->findings : json_array(), "started_us",
                  (json_int_t)scan->began_us, "completed_us", (json_int_t)now, "seen_by", "coop"));
}

static char *
dup_run(const ScanCommand *command)
{
    return g_strdup_printf("%s on %u of the changed files%s", command->name, command->paths->len,
                           command->truncated ? ", not on all of them" : "");
}

static void
say_found(Scan *scan, const ScanCommand *command, const ScanResult *found)
{
    g_autofree char *run = dup_run(command), *output = format_findings(found);
    g_autofree char *summary = g_strdup_printf(
        "%u errors, %u warnings, %u notes%s", found->counts[SCAN_ERROR], found->counts[SCAN_WARNING],
        found->counts[SCAN_NOTE], command->truncated ? "; there are more files than it can look at" : "");

    say(scan, &(Said){.name = command->name,
                      .run = run,
                      .output = output,
                      .summary = summary,
                      .passed = scan_passed(found) && !command->truncated,
                      .partial = command->truncated,
                      .findings = scan_findings_json(command->name, found)});
}

/* Nothing was found out. */
static void
say_nothing(Scan *scan, const ScanCommand *command, const char *why, bool is_missing)
{
    g_autofree char *run = dup_run(command);

    say(scan, &(Said){.name = command->name,
                      .run = run,
                      .output = why,
                      .summary = why,
                      .skipped = is_missing ? why : NULL});
}

/* What to do about a program that is not there. */
static char *
dup_missing(const Shift *s, const ScanCommand *command)
{
    const Role *role = shift_role(s);
    BoxInfo box;

    box_info(s->box, &box);
    if (s->plain && role != NULL)
        return g_strdup_printf("%s has not looked: the template '%s' is not built, and '%s', which was taken "
                               "in its place, has no %s. Run `coop template build %s`",
                               command->name, role->template, box.template, command->program, role->template);
    return g_strdup_printf("%s has not looked: the template '%s' has no %s. Add it there, or let reviewers "
                           "have one that has it: `coop template build " SCAN_TEMPLATE
                           "`, and templates.reviewer or the member's template say so",
                           command->name, box.template, command->program);
}

static void
say_odd(Scan *scan)
{
    g_autofree char *why = g_strdup_printf("%u of the changed files have names with control characters, or "
                                           "that are not UTF-8: no scanner has looked at them",
                                           scan->odd);

    scan->began_us = clock_wall_us();
    say(scan,
        &(Said){.name = "names", .run = "the names of the changed files", .output = why, .summary = why});
}

static void
found_all(Scan *scan, const ScanCommand *command, const ScanResult *found)
{
    say_found(scan, command, found);
    scan->n++;
    next(scan);
}

static void
found_nothing(Scan *scan, const ScanCommand *command, const char *why, bool is_missing)
{
    say_nothing(scan, command, why, is_missing);
    scan->n++;
    next(scan);
}

static void
call(Scan *scan, char **argv, BoxCallFunc done)
{
    const BoxCall spec = {.argv = (const char *const *)argv,
                          .cwd = scan->shift->workdir,
                          .output_max = SCAN_OUTPUT_MAX,
                          .timeout_ms = SCAN_MS};

    box_call(scan->shift->box, &spec, "coop", done, scan);
}

/* What is not understood forgives nothing. */
static void
on_marked(int code, const char *out, const char *err, const GError *error, void *data)
{
    Scan *scan = data;

    if (is_over(scan)) {
        scan_free(scan);
        return;
    }
    const ScanCommand *command = scan->commands->pdata[scan->n];
    g_autoptr(ScanResult) found = g_steal_pointer(&scan->found);
    size_t n = strlen(out);
    g_autoptr(ScanResult) marked = error == NULL && n < SCAN_OUTPUT_MAX ? scan_read(command, out, n, NULL)
                                                                        : NULL;

    if (marked != NULL)
        scan_forgive(found, marked, scan->written);
    found_all(scan, command, found);
}

/* Where it is not a shell that says so, other reasons are a matter of the box. */
static bool
is_missing(int code, const GError *error)
{
    return code == NOT_FOUND_CODE || (code == NOT_RUNNABLE_CODE && error == NULL);
}

/* Its last words may say why. */
static char *
dup_why(const ScanCommand *command, int code, const char *out, const char *err, const GError *error)
{
    g_autofree char *what = g_strdup_printf("%s did not answer as it should", command->name);
    g_autoptr(GError) said = box_call_error(what, code, err);

    if (error != NULL)
        return g_strdup_printf("%s did not come to its end: %s", command->name, error->message);
    if (strlen(out) >= SCAN_OUTPUT_MAX)
        return g_strdup_printf("%s found more than can be read", command->name);
    return g_strdelimit(g_strdup(said->message), "\n", ' ');
}

static void
on_said(int code, const char *out, const char *err, const GError *error, void *data)
{
    Scan *scan = data;

    if (is_over(scan)) {
        scan_free(scan);
        return;
    }
    const ScanCommand *command = scan->commands->pdata[scan->n];
    bool missing = is_missing(code, error);
    g_autofree char *why = missing ? dup_missing(scan->shift, command)
                                   : dup_why(command, code, out, err, error);
    size_t n = strlen(out);

    if (error != NULL && !missing && err_kind(error) == ERR_UNAVAILABLE) {
        shift_lost(scan->shift, why);
        scan_free(scan);
        return;
    }
    g_autoptr(ScanResult)
        found = error == NULL && !missing && n < SCAN_OUTPUT_MAX ? scan_read(command, out, n, NULL) : NULL;

    if (found == NULL) {
        found_nothing(scan, command, why, missing);
    } else if (scan_may_forgive(found)) {
        scan->found = g_steal_pointer(&found);
        call(scan, command->marked, on_marked);
    } else {
        found_all(scan, command, found);
    }
}

static void
next(Scan *scan)
{
    if (scan->n == scan->commands->len) {
        db_write(scan->shift->crew->team->spec.db, write_rows, on_written, scan, scan_free);
        return;
    }
    const ScanCommand *command = scan->commands->pdata[scan->n];

    scan->began_us = clock_wall_us();
    call(scan, command->argv, on_said);
}

/* ---- which files ---- */

static bool
is_plain(const char *path)
{
    for (const char *p = path; *p != '\0'; p++) {
        if (g_ascii_iscntrl(*p))
            return false;
    }
    return g_utf8_validate(path, -1, NULL);
}

/* What is not on the first page, or has no patch that can be read, counts as written anew. */
static bool
list_lines(GitRepo *git, Scan *scan, GError **error)
{
    g_autoptr(DiffPage) page = diff_files(git, &(DiffSpec){.old = scan->base, .new = scan->head}, error);

    if (page == NULL)
        return false;
    scan_lines_free(scan->written);
    scan->written = scan_lines_new();
    for (guint i = 0; i < page->files->len; i++) {
        const DiffFile *file = page->files->pdata[i];

        if (file->patch != NULL)
            scan_lines_add(scan->written, file->path, file->patch->str, file->patch->len);
    }
    return true;
}

/* In a thread. */
static bool
list_paths(GitRepo *git, void *data, GError **error)
{
    Scan *scan = data;
    const RecordsSpec spec = {.args = GIT_ARGS("diff", "-z", "--name-only", "--no-renames",
                                               "--diff-filter=AMT", "--end-of-options", scan->base,
                                               scan->head),
                              .separator = '\0',
                              .max = SCAN_LISTED_MAX};
    g_autoptr(GPtrArray) listed = records_read(git, &spec, &scan->more, error);

    if (listed == NULL)
        return false;
    g_clear_pointer(&scan->paths, g_ptr_array_unref);
    scan->paths = g_ptr_array_new_with_free_func(g_free);
    scan->odd = 0;
    for (guint i = 0; i < listed->len; i++) {
        if (is_plain(listed->pdata[i]))
            g_ptr_array_add(scan->paths, g_strdup(listed->pdata[i]));
        else
            scan->odd++;
    }
    g_ptr_array_add(scan->paths, NULL);
    return list_lines(git, scan, error);
}

static void
on_listed(void *data, const GError *error)
{
    Scan *scan = data;
    Shift *s = scan->shift;

    if (is_over(scan)) {
        scan_free(scan);
        return;
    }
    if (error != NULL) {
        g_autofree char *why = g_strdup_printf("what it was to review could not be listed: %s",
                                               error->message);

        shift_lost(s, why);
        scan_free(scan);
        return;
    }
    scan->commands = scan_plan((const char *const *)scan->paths->pdata);
    for (guint i = 0; scan->more && i < scan->commands->len; i++)
        ((ScanCommand *)scan->commands->pdata[i])->truncated = true;
    if (scan->odd > 0)
        say_odd(scan);
    next(scan);
}

/* Also what a server that was killed since has written down. */
Json *
shift_scans(const Shift *s)
{
    return s->scans != NULL ? s->scans : json_object_get(json_object_get(s->row, "result"), "scans");
}

bool
shift_wants_scan(const Shift *s)
{
    return shift_scans(s) == NULL && strcmp(shift_text(s, "kind"), "review") == 0 && shift_repo(s) != NULL &&
           row_text(json_object_get(s->row, "task"), "base_oid") != NULL &&
           git_oid_is_valid(shift_text(s, "git_base"));
}

void
shift_scan(Shift *s)
{
    Scan *scan = g_new0(Scan, 1);

    s->phase = SHIFT_SCANNING;
    *scan = (Scan){.shift = shift_ref(s),
                   .base = g_strdup(row_text(json_object_get(s->row, "task"), "base_oid")),
                   .head = g_strdup(shift_text(s, "git_base")),
                   .said = json_array()};
    forge_read(s->crew->team->spec.forge, shift_repo(s), "list what an agent will review", list_paths,
               on_listed, scan, NULL);
}

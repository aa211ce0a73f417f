/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"
#include "report/xml.h"

/* JUnit's XML, printed or as the bytes of a file.  There is no one schema: the attributes of
 * suites count differently from tool to tool, so test cases are counted.  It begins with a suite
 * at the start of a line, or right behind the XML declaration. */

enum { DEPTH_MAX = 64 };

typedef struct Junit {
    XmlTags *tags;
    bool elsewhere; /* not where a document may begin */
    guint8 before;
    size_t held; /* bytes of "<testsuite" that came */
    guint depth; /* of open suites */
    bool opened, in_case, failed, skipped;
    char *name;
    Scan *scan; /* while bytes are read */
    guint64 first;
    TestReport *run;
} Junit;

static void
reset(Junit *junit)
{
    g_clear_pointer(&junit->tags, xml_tags_free);
    g_clear_pointer(&junit->name, g_free);
    g_clear_pointer(&junit->run, report_free);
    junit->depth = 0;
    junit->opened = junit->in_case = junit->elsewhere = false;
}

static void
clear(void *state)
{
    reset(state);
}

static void
begin_case(Junit *junit, const XmlTag *tag)
{
    g_autofree char *class = xml_dup_attribute(tag->attributes, "classname");
    g_autofree char *name = xml_dup_attribute(tag->attributes, "name");
    g_autofree char *status = xml_dup_attribute(tag->attributes, "status");
    const char *shown = name != NULL ? name : "(no name)";

    junit->in_case = true;
    junit->failed = false;
    junit->skipped = g_strcmp0(status, "disabled") == 0;
    g_free(junit->name);
    if (class != NULL && *class != '\0' && strcmp(class, shown) != 0)
        junit->name = g_strdup_printf("%s > %s", class, shown);
    else
        junit->name = g_strdup(shown);
}

static void
end_case(Junit *junit)
{
    TestReport *run = junit->run;

    junit->in_case = false;
    run->total++;
    if (junit->failed) {
        run->failed++;
        report_add_failing(run, junit->name);
    } else if (junit->skipped) {
        run->skipped++;
    } else {
        run->passed++;
    }
}

static void
take_case(Junit *junit, const XmlTag *tag)
{
    if (tag->open && !junit->in_case)
        begin_case(junit, tag);
    if (tag->close && junit->in_case)
        end_case(junit);
}

/* The outermost has the time of all. */
static void
read_time(Junit *junit, const XmlTag *tag)
{
    g_autofree char *time = xml_dup_attribute(tag->attributes, "time");
    const char *p = time;

    if (time != NULL)
        match_duration(&p, 1000, &junit->run->duration_ms);
}

static void
take_suite(Junit *junit, const XmlTag *tag)
{
    if (tag->open) {
        if (junit->run->duration_ms < 0)
            read_time(junit, tag);
        junit->opened = true;
        junit->depth++;
        junit->run->partial |= junit->depth > DEPTH_MAX;
    }
    if (tag->close && junit->depth > 0)
        junit->depth--;
}

static void
on_tag(void *data, const XmlTag *tag)
{
    Junit *junit = data;

    if (strcmp(tag->name, "testsuite") == 0 || strcmp(tag->name, "testsuites") == 0)
        take_suite(junit, tag);
    else if (strcmp(tag->name, "testcase") == 0)
        take_case(junit, tag);
    else if (!junit->in_case || !tag->open)
        return;
    else if (strcmp(tag->name, "failure") == 0 || strcmp(tag->name, "error") == 0)
        junit->failed = true;
    else if (strcmp(tag->name, "skipped") == 0)
        junit->skipped = true;
}

static void
begin(Junit *junit, const char *head)
{
    junit->tags = xml_tags_new(on_tag, junit);
    junit->run = report_new("junit");
    junit->first = scan_number(junit->scan);
    for (size_t i = 0; i < junit->held; i++)
        xml_tags_put(junit->tags, (guint8)head[i]);
    junit->held = 0;
}

/* Where a document may begin: at the start of a line, behind a byte order mark or "?>". */
static void
see_place(Junit *junit, guint8 byte)
{
    if (byte == '\n' || (byte == '>' && junit->before == '?'))
        junit->elsewhere = false;
    else if (!g_ascii_isspace(byte) && strchr("\xef\xbb\xbf", byte) == NULL)
        junit->elsewhere = true;
    junit->before = byte;
}

/* Looks for "<testsuite" or "<testsuites" and what ends the name. */
static void
look(Junit *junit, guint8 byte)
{
    static const char want[] = "<testsuites";
    const size_t least = strlen("<testsuite");

    if (junit->held < strlen(want) && byte == want[junit->held] && (junit->held > 0 || !junit->elsewhere)) {
        junit->held++;
    } else if (junit->held >= least && (byte == '>' || byte == '/' || g_ascii_isspace(byte))) {
        begin(junit, want);
        xml_tags_put(junit->tags, byte);
        return;
    } else {
        junit->held = byte == '<' && !junit->elsewhere;
    }
    see_place(junit, byte);
}

/* How far nothing can begin: most output is passed over so.  `n` bytes end at most one line. */
static size_t
skip(const Junit *junit, const guint8 *bytes, size_t n)
{
    if (junit->run != NULL || junit->held > 0 || !junit->elsewhere)
        return 0;
    const guint8 *bracket = memchr(bytes, '>', n);

    /* What is before the bracket and what ends the line are looked at. */
    return bracket == NULL ? n - 1 : bracket > bytes ? (size_t)(bracket - bytes) - 1 : 0;
}

static void
read_bytes(void *state, Scan *scan, const guint8 *bytes, size_t n)
{
    Junit *junit = state;

    junit->scan = scan;
    for (size_t i = 0; i < n; i++) {
        i += skip(junit, bytes + i, n - i);
        if (junit->run == NULL)
            look(junit, bytes[i]);
        else
            xml_tags_put(junit->tags, bytes[i]);
        if (junit->opened && junit->depth == 0) {
            scan_add(scan, SCAN_COPY, junit->first, scan_number(scan), g_steal_pointer(&junit->run));
            reset(junit);
        }
    }
}

static void
end(void *state, Scan *scan)
{
    Junit *junit = state;

    if (junit->run == NULL)
        return;
    junit->run->partial = true;
    scan_add(scan, SCAN_COPY, junit->first, scan_number(scan), g_steal_pointer(&junit->run));
}

const Runner runner_junit = {.size = sizeof(Junit), .bytes = read_bytes, .end = end, .clear = clear};

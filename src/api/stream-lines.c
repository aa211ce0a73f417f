/* SPDX-License-Identifier: Apache-2.0 */
#include "api/stream-lines.h"

#include <string.h>

#include "api/output-reader.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "forge/row.h"
#include "http/sse.h"

enum {
    LINE_MAX_BYTES = 4 * 1024, /* a longer one is told in pieces */
    /* A byte becomes six characters of JSON at most, and an event must fit into one pull. */
    EVENT_BYTES = 8 * 1024,
    LINES_MAX = 100,   /* in one event */
    UTF8_REST_MAX = 3, /* bytes of a character behind its first */
};

/* Bytes of one stream that were read and not told. */
typedef struct Side {
    GByteArray *bytes;
    guint64 told; /* offset of the first of them */
} Side;

typedef struct Printing {
    guint32 run;
    Side sides[2];        /* standard output, standard error */
    OutputReader *reader; /* NULL: asleep; its run was not found */
    bool ended;           /* so its event says */
    bool over;            /* all of it was read */
} Printing;

struct StreamLines {
    ApiCall *call;
    char *box_id; /* NULL: not known yet */
    Printing *all[STREAM_LINES_RUNS_MAX];
    guint n, next; /* whose turn it is */
    void (*wake)(void *data);
    void *data;
};

static void
printing_free(Printing *p)
{
    output_reader_free(p->reader);
    for (size_t i = 0; i < G_N_ELEMENTS(p->sides); i++)
        g_byte_array_unref(p->sides[i].bytes);
    g_free(p);
}

static Printing *
find(const StreamLines *l, gint64 run)
{
    for (guint i = 0; i < l->n; i++) {
        if (l->all[i]->run == run)
            return l->all[i];
    }
    return NULL;
}

static void
drop(StreamLines *l, Printing *p)
{
    for (guint i = 0; i < l->n; i++) {
        if (l->all[i] != p)
            continue;
        memmove(&l->all[i], &l->all[i + 1], (l->n - i - 1) * sizeof l->all[0]);
        l->n--;
        break;
    }
    printing_free(p);
}

static Run *
find_run(const StreamLines *l, guint32 run, bool *ret_box_is_live)
{
    BoxHost *host = l->call->api->boxes;
    Box *box = host != NULL && l->box_id != NULL ? box_host_find(host, l->box_id, NULL) : NULL;

    *ret_box_is_live = box != NULL;
    return box != NULL ? box_find_run(box, run) : NULL;
}

static void
open_reader(StreamLines *l, Printing *p)
{
    bool is_live;
    g_autofree char *folder = box_host_dup_log_folder(l->call->api->boxes, l->box_id);

    p->reader = output_reader_new(&(OutputSpec){.loop = l->call->api->loop,
                                                .run = find_run(l, p->run, &is_live),
                                                .folder = folder,
                                                .id = p->run,
                                                .out_offset = p->sides[0].told + p->sides[0].bytes->len,
                                                .err_offset = p->sides[1].told + p->sides[1].bytes->len,
                                                .wake = l->wake,
                                                .data = l->data});
}

/* Beyond the bound commands are told by their events alone. */
static void
add(StreamLines *l, guint32 run, guint64 out, guint64 err)
{
    if (l->n == STREAM_LINES_RUNS_MAX || l->box_id == NULL || l->call->api->boxes == NULL ||
        find(l, run) != NULL)
        return;
    Printing *p = g_new0(Printing, 1);

    *p = (Printing){.run = run, .sides = {{g_byte_array_new(), out}, {g_byte_array_new(), err}}};
    open_reader(l, p);
    l->all[l->n++] = p;
}

static void
set_box(StreamLines *l, const char *box_id)
{
    if (l->box_id == NULL)
        l->box_id = g_strdup(box_id);
}

/* ---- where it is ---- */

void
stream_lines_begin(StreamLines *l, const char *box_id, gint64 run)
{
    bool is_live;

    set_box(l, box_id);
    Run *live = run > 0 ? find_run(l, (guint32)run, &is_live) : NULL;

    if (live != NULL && !run_has_ended(live))
        add(l, (guint32)run, run_output_bytes(live, STREAM_STDOUT), run_output_bytes(live, STREAM_STDERR));
}

static bool
read_number(const char **at, char end, guint64 *ret_number)
{
    char *stop;

    if (!g_ascii_isdigit(**at))
        return false;
    *ret_number = g_ascii_strtoull(*at, &stop, 10);
    if (*stop != end || *ret_number > G_MAXINT64)
        return false;
    *at = stop + 1;
    return true;
}

bool
stream_lines_resume(StreamLines *l, const char *box_id, const char *places, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(places, ",", STREAM_LINES_RUNS_MAX + 1);

    set_box(l, box_id);
    if (parts[0] == NULL)
        return err_set(error, ERR_INVALID, "Last-Event-ID ends too early");
    for (char **part = parts; *part != NULL; part++) {
        const char *at = *part;
        guint64 run, out, err;

        if (!read_number(&at, ':', &run) || !read_number(&at, '.', &out) || !read_number(&at, '\0', &err) ||
            run == 0 || run > G_MAXUINT32)
            return err_set(error, ERR_INVALID, "Last-Event-ID must be one that came as an id");
        add(l, (guint32)run, out, err);
    }
    return true;
}

void
stream_lines_format_id(const StreamLines *l, gint64 seq, char ret_id[STREAM_LINES_ID_MAX])
{
    int n = g_snprintf(ret_id, STREAM_LINES_ID_MAX, "%" G_GINT64_FORMAT, seq);

    for (guint i = 0; l != NULL && i < l->n; i++) {
        const Printing *p = l->all[i];

        n += g_snprintf(ret_id + n, (gulong)(STREAM_LINES_ID_MAX - n),
                        "%c%u:%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT, i == 0 ? ';' : ',', p->run,
                        p->sides[0].told, p->sides[1].told);
    }
}

/* ---- events ---- */

static gint64
run_of(const Event *event)
{
    g_autoptr(Json) whole = json_decode(event->json, event->json_len, NULL);

    return row_int(json_object_get(whole, "data"), "run");
}

bool
stream_lines_take(StreamLines *l, const Event *event)
{
    bool starts = strcmp(event->kind, "command.started") == 0,
         ends = strcmp(event->kind, "command.ended") == 0;

    if (!starts && !ends)
        return true;
    gint64 run = run_of(event);
    Printing *p = find(l, run);

    if (starts && run > 0 && run <= G_MAXUINT32) {
        set_box(l, event->box_id);
        add(l, (guint32)run, 0, 0);
    }
    if (!ends || p == NULL)
        return true;
    /* Anew: what was the end of the file a moment ago need not be it now. */
    if (!p->ended) {
        p->ended = true;
        g_clear_pointer(&p->reader, output_reader_free);
        open_reader(l, p);
    }
    return false;
}

/* ---- lines ---- */

/* The end of the next line, its line feed included; 0: it is not whole yet. */
static size_t
line_end(const Side *s, size_t from, bool over)
{
    size_t left = s->bytes->len - from;
    const guint8 *feed = left > 0 ? memchr(s->bytes->data + from, '\n', MIN(left, (size_t)LINE_MAX_BYTES))
                                  : NULL;

    if (feed != NULL)
        return (size_t)(feed - s->bytes->data) + 1;
    if (left <= LINE_MAX_BYTES)
        return over && left > 0 ? s->bytes->len : 0;
    size_t end = from + LINE_MAX_BYTES;

    for (guint i = 0; i < UTF8_REST_MAX && (s->bytes->data[end] & 0xc0) == 0x80; i++)
        end--; /* not inside a character */
    return end;
}

static Json *
line_json(const guint8 *bytes, size_t n)
{
    if (n > 0 && bytes[n - 1] == '\n')
        n--;
    if (n > 0 && bytes[n - 1] == '\r')
        n--;
    g_autofree char *valid = n > 0 ? g_utf8_make_valid((const char *)bytes, (gssize)n) : g_strdup("");

    return json_string(valid);
}

static Json *
take_lines(Side *s, bool over)
{
    Json *list = json_array();
    size_t at = 0, end;

    while (json_array_size(list) < LINES_MAX && (end = line_end(s, at, over)) > 0 && end <= EVENT_BYTES) {
        json_array_append_new(list, line_json(s->bytes->data + at, end - at));
        at = end;
    }
    g_byte_array_remove_range(s->bytes, 0, (guint)at);
    s->told += at;
    return list;
}

/* Takes `data`. */
static HttpPull
put(StreamLines *l, const Printing *p, Buf *out, gint64 seq, Json *data)
{
    static const char kind[] = "command.output";
    char at[CLOCK_ISO_LEN + 1], id[STREAM_LINES_ID_MAX];
    g_autoptr(Json) whole = NULL;

    clock_format_iso(clock_wall_us(), at);
    json_object_set_new(data, "run", json_integer(p->run));
    whole = json_pack("{s:s, s:s, s:s?, s:o}", "at", at, "kind", kind, "box_id", l->box_id, "data", data);
    g_autofree char *text = json_encode(whole);

    stream_lines_format_id(l, seq, id);
    return sse_put(out, id, kind, text, strlen(text)) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
}

static const char *
side_name(const Printing *p, const Side *s)
{
    return s == &p->sides[1] ? "stderr" : "stdout";
}

static HttpPull
put_lines(StreamLines *l, Printing *p, Side *s, Buf *out, gint64 seq, guint64 *ret_lines)
{
    guint64 offset = s->told;
    g_autoptr(Json) list = take_lines(s, p->over);
    size_t n = json_array_size(list);

    if (n == 0)
        return HTTP_PULL_WAIT;
    *ret_lines += n;
    return put(
        l, p, out, seq,
        json_pack("{s:s, s:I, s:O}", "stream", side_name(p, s), "offset", (json_int_t)offset, "lines", list));
}

/* What was begun before the hole is told as it is. */
static HttpPull
put_gap(StreamLines *l, Printing *p, const RunPiece *piece, Buf *out, gint64 seq, guint64 *ret_lines)
{
    Side *s = &p->sides[piece->stream == STREAM_STDERR];
    Json *list = json_array();

    if (s->bytes->len > 0)
        json_array_append_new(list, line_json(s->bytes->data, s->bytes->len));
    *ret_lines += json_array_size(list);
    g_byte_array_set_size(s->bytes, 0);
    s->told = piece->offset + piece->n;
    return put(l, p, out, seq,
               json_pack("{s:s, s:I, s:o, s:I}", "stream", side_name(p, s), "offset",
                         (json_int_t)piece->offset, "lines", list, "missing", (json_int_t)piece->n));
}

static HttpPull
read_more(StreamLines *l, Printing *p, Buf *out, gint64 seq, guint64 *ret_lines)
{
    RunPiece piece;
    bool is_live;

    switch (output_reader_next(p->reader, &piece)) {
    case RUN_STEP_DATA:
        g_byte_array_append(p->sides[piece.stream == STREAM_STDERR].bytes, piece.bytes, (guint)piece.n);
        return HTTP_PULL_DATA;
    case RUN_STEP_GAP:
        return put_gap(l, p, &piece, out, seq, ret_lines);
    case RUN_STEP_WAIT:
        return HTTP_PULL_WAIT;
    case RUN_STEP_END:
    case RUN_STEP_FAILED:
        break;
    }
    /* The end of the file of a run that this server has not found again yet is no end. */
    Run *run = find_run(l, p->run, &is_live);

    g_clear_pointer(&p->reader, output_reader_free);
    p->over = p->ended || (run != NULL ? run_has_ended(run) : !is_live);
    return p->over ? HTTP_PULL_DATA : HTTP_PULL_WAIT;
}

/* Its next event; WAIT: nothing now.  Who is over and told is dropped. */
static HttpPull
pull_from(StreamLines *l, Printing *p, Buf *out, gint64 seq, guint64 *ret_lines)
{
    for (;;) {
        for (size_t i = 0; i < G_N_ELEMENTS(p->sides); i++) {
            HttpPull told = put_lines(l, p, &p->sides[i], out, seq, ret_lines);

            if (told != HTTP_PULL_WAIT)
                return told;
        }
        if (p->over) {
            drop(l, p);
            return HTTP_PULL_WAIT;
        }
        size_t before = buf_len(out);
        HttpPull read = p->reader != NULL ? read_more(l, p, out, seq, ret_lines) : HTTP_PULL_WAIT;

        if (read != HTTP_PULL_DATA || buf_len(out) > before)
            return read;
    }
}

HttpPull
stream_lines_pull(StreamLines *l, Buf *out, gint64 seq, guint64 *ret_lines)
{
    for (guint tried = 0, n = l->n; tried < n && l->n > 0; tried++) {
        guint was = l->n;
        HttpPull result = pull_from(l, l->all[l->next % l->n], out, seq, ret_lines);

        if (l->n == was)
            l->next++;
        if (result != HTTP_PULL_WAIT)
            return result;
    }
    return HTTP_PULL_WAIT;
}

void
stream_lines_beat(StreamLines *l)
{
    for (guint i = 0; i < l->n; i++) {
        if (l->all[i]->reader == NULL && !l->all[i]->over)
            open_reader(l, l->all[i]);
    }
}

StreamLines *
stream_lines_new(ApiCall *call, void (*wake)(void *data), void *data)
{
    StreamLines *l = g_new0(StreamLines, 1);

    *l = (StreamLines){.call = call, .wake = wake, .data = data};
    return l;
}

void
stream_lines_free(StreamLines *l)
{
    if (l == NULL)
        return;
    for (guint i = 0; i < l->n; i++)
        printing_free(l->all[i]);
    g_free(l->box_id);
    g_free(l);
}

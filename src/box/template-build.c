/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "base/path.h"
#include "base/spawn.h"
#include "box/template-private.h"

/* One build: the layers of a template from the root up.  A layer that is there already is
 * taken; for the others the builder runs, one after the other.  At the end the record is
 * written, off the loop because that syncs. */

enum { BUILDER_LINE_MAX = 128 * 1024, SUFFIX_BYTES = 4 };

struct TemplateBuild {
    TemplateBuildSpec spec;
    char *folder, *sudo, *sudo_hash, *name;
    Catalogue *catalogue;
    GPtrArray *chain;  /* Recipe of the catalogue, root first */
    guint at;          /* in the chain */
    GPtrArray *layers; /* TemplateLayer, top first */
    char *key;         /* of the layer being made */
    Child *child;
    int out_fd;
    LoopWatch watch;
    Buf lines;
    TemplateProgress progress;
    char *step, *line;
    GError *error; /* the builder's last word */
    guint idle;
    struct Writing *writing;
};

/* Outlives the build, when that is freed while the record is being written. */
typedef struct Writing {
    TemplateBuild *build; /* NULL: nobody waits any more */
    char *path, *text;
    Json *record;
    bool last;
    GError *error;
} Writing;

static void go_on(TemplateBuild *b);
static void write_down(TemplateBuild *b);

static void
finish(TemplateBuild *b, Json *record, const GError *error)
{
    b->spec.done(b, record, error, b->spec.data);
}

static void
fail(TemplateBuild *b, GError *error)
{
    g_autoptr(GError) owned = error;

    finish(b, NULL, owned);
}

/* ---- what the builder says ---- */

static ErrKind
kind_of(const char *name)
{
    for (int i = 0; i < ERR_KIND_MAX; i++) {
        if (g_strcmp0(name, err_kind_name((ErrKind)i)) == 0)
            return (ErrKind)i;
    }
    return ERR_INTERNAL;
}

static void
set_progress(TemplateBuild *b, const char *step, guint percent, const char *line)
{
    guint whole = (b->at * 100 + MIN(percent, 100)) / b->chain->len;

    if (g_strcmp0(step, b->step) != 0) {
        g_free(b->step);
        b->step = g_strdup(step);
    }
    g_free(b->line);
    b->line = g_strdup(line);
    b->progress = (TemplateProgress){b->name, b->step, MAX(whole, b->progress.percent), b->line};
    b->spec.progress(b, b->spec.data);
}

static void
take_line(TemplateBuild *b, const char *text, size_t len)
{
    g_autoptr(Json) json = json_decode(text, len, NULL);
    const char *error = json_string_value(json_object_get(json, "error"));
    const char *step = json_string_value(json_object_get(json, "step"));

    if (error != NULL) {
        g_clear_error(&b->error);
        err_set(&b->error, kind_of(json_string_value(json_object_get(json, "kind"))), "template '%s': %s",
                b->name, error);
    } else if (step != NULL) {
        set_progress(b, step, (guint)json_integer_value(json_object_get(json, "percent")),
                     json_string_value(json_object_get(json, "line")));
    }
}

static void
take_lines(TemplateBuild *b)
{
    for (;;) {
        size_t n;
        const char *text = (const char *)buf_peek(&b->lines, &n);
        const char *end = n > 0 ? memchr(text, '\n', n) : NULL;

        if (end == NULL && buf_room(&b->lines) == 0)
            buf_skip(&b->lines, n); /* longer than anything the builder says */
        if (end == NULL)
            return;
        take_line(b, text, (size_t)(end - text));
        buf_skip(&b->lines, (size_t)(end - text) + 1);
    }
}

/* False at the end of the stream. */
static bool
read_lines(TemplateBuild *b)
{
    for (;;) {
        size_t room = buf_room(&b->lines);
        ssize_t n = read(b->out_fd, buf_reserve(&b->lines, room), room);

        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
        buf_grow(&b->lines, (size_t)n);
        take_lines(b);
    }
}

static void
on_readable(LoopWatch *watch, uint32_t events)
{
    TemplateBuild *b = (TemplateBuild *)((char *)watch - offsetof(TemplateBuild, watch));

    if (!read_lines(b))
        loop_remove(b->spec.loop, &b->watch);
}

static void
close_lines(TemplateBuild *b)
{
    if (b->watch.fd >= 0)
        loop_remove(b->spec.loop, &b->watch);
    b->watch.fd = -1;
    if (b->out_fd >= 0)
        close(b->out_fd);
    b->out_fd = -1;
}

static void
on_builder_exit(Child *child, ChildExit how, void *data)
{
    TemplateBuild *b = data;

    (void)read_lines(b); /* what came before the end */
    close_lines(b);
    child_free(child);
    b->child = NULL;
    g_autoptr(TemplateLayer) layer = template_layer_find(b->folder, b->key);
    if (how.signalled || how.value != 0 || layer == NULL) {
        if (b->error == NULL)
            err_set(&b->error, ERR_INTERNAL, "template '%s': the builder ended with %s %d", b->name,
                    how.signalled ? "signal" : "code", how.value);
        fail(b, g_steal_pointer(&b->error));
        return;
    }
    g_ptr_array_insert(b->layers, 0, g_steal_pointer(&layer));
    b->at++;
    write_down(b);
}

/* ---- running it ---- */

static char *
make_plan(TemplateBuild *b, const char *const *lowers)
{
    bool fresh = b->spec.again && b->at == b->chain->len - 1;
    g_autoptr(Json) plan = template_plan(b->chain, b->at, b->key, lowers, fresh);
    char suffix[2 * SUFFIX_BYTES + 1];

    id_random_hex(suffix, SUFFIX_BYTES);
    g_autofree char *work = g_strdup_printf("%s.tmp-%s", b->key, suffix);
    json_object_set_new(plan, "store", json_string(b->folder));
    json_object_set_new(plan, "work", json_string(work));
    if (((const Recipe *)b->chain->pdata[b->at])->sudo == RECIPE_ON)
        json_object_set_new(plan, "sudo", json_string(b->sudo));
    return json_encode(plan);
}

static bool
spawn(TemplateBuild *b, const char *const *lowers, GError **error)
{
    g_autofree char *plan = make_plan(b, lowers);
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe for the builder");
    autofd write_end = fds[1];
    b->out_fd = fds[0];
    b->watch = (LoopWatch){.ready = on_readable, .fd = b->out_fd};
    (void)fcntl(b->out_fd, F_SETFL, O_NONBLOCK);
    if (!loop_add(b->spec.loop, &b->watch, EPOLLIN, error)) {
        b->watch.fd = -1;
        return false;
    }
    b->child = template_builder_spawn(b->spec.builder, plan, write_end, on_builder_exit, b, error);
    return b->child != NULL;
}

static const char **
lowers_of(TemplateBuild *b)
{
    const char **lowers = g_new0(const char *, b->layers->len + 1);

    for (guint i = 0; i < b->layers->len; i++) {
        const TemplateLayer *layer = b->layers->pdata[i];

        lowers[i] = layer->hash;
    }
    return lowers;
}

/* ---- the record ---- */

static void
write_record(void *data)
{
    Writing *w = data;

    (void)path_write_atomic(w->path, w->text, strlen(w->text), 0644, &w->error);
}

static void
on_written(void *data)
{
    Writing *w = data;
    TemplateBuild *b = w->build;

    if (b != NULL) {
        b->writing = NULL;
        if (w->error != NULL) {
            finish(b, NULL, w->error);
        } else if (w->last) {
            finish(b, g_steal_pointer(&w->record), NULL);
        } else {
            b->spec.made(b, g_steal_pointer(&w->record), b->spec.data);
            go_on(b);
        }
    }
    json_decref(w->record);
    g_clear_error(&w->error);
    g_free(w->path);
    g_free(w->text);
    g_free(w);
}

/* The template whose uppermost layer is the newest of ours. */
static void
write_down(TemplateBuild *b)
{
    Writing *w = g_new0(Writing, 1);
    g_autoptr(GPtrArray) chain = g_ptr_array_new();

    for (guint i = 0; i < b->layers->len; i++)
        g_ptr_array_add(chain, b->chain->pdata[i]);
    const Recipe *recipe = chain->pdata[chain->len - 1];
    g_autofree char *file = g_strconcat(recipe->name, ".json", NULL);
    w->build = b;
    w->last = chain->len == b->chain->len;
    w->record = template_record_new(chain, b->key, b->layers);
    w->path = g_build_filename(b->folder, file, NULL);
    w->text = json_encode(w->record);
    b->writing = w;
    loop_offload(b->spec.loop, write_record, on_written, w);
}

/* From layer to layer, as far as it goes without the builder. */
static void
go_on(TemplateBuild *b)
{
    GError *error = NULL;

    for (; b->at < b->chain->len; b->at++) {
        g_autofree const char **lowers = lowers_of(b);
        bool last = b->at == b->chain->len - 1;

        g_free(b->key);
        b->key = template_key(b->chain->pdata[b->at], lowers, b->sudo_hash);
        TemplateLayer *layer = last && b->spec.again ? NULL : template_layer_find(b->folder, b->key);
        if (layer == NULL) {
            if (!spawn(b, lowers, &error)) {
                close_lines(b);
                fail(b, error);
            }
            return;
        }
        g_ptr_array_insert(b->layers, 0, layer);
    }
    write_down(b);
}

static gboolean
on_idle(gpointer data)
{
    TemplateBuild *b = data;

    b->idle = 0;
    go_on(b);
    return G_SOURCE_REMOVE;
}

void
template_build_start(TemplateBuild *b)
{
    b->idle = g_idle_add(on_idle, b);
}

TemplateBuild *
template_build_new(const TemplateBuildSpec *spec, GPtrArray *chain)
{
    TemplateBuild *b = g_new0(TemplateBuild, 1);

    b->spec = *spec;
    b->folder = g_strdup(spec->folder);
    b->sudo = g_strdup(spec->sudo);
    b->sudo_hash = g_strdup(spec->sudo_hash);
    b->name = g_strdup(spec->name);
    b->catalogue = catalogue_ref(spec->catalogue);
    b->chain = g_ptr_array_ref(chain);
    b->layers = g_ptr_array_new_with_free_func((GDestroyNotify)template_layer_free);
    b->out_fd = b->watch.fd = -1;
    b->step = g_strdup("waiting");
    b->progress = (TemplateProgress){.name = b->name, .step = b->step};
    buf_init(&b->lines, BUILDER_LINE_MAX);
    return b;
}

void
template_build_free(TemplateBuild *b)
{
    if (b == NULL)
        return;
    /* It removes its folder and ends by itself. */
    if (b->child != NULL)
        (void)child_signal(b->child, SIGTERM, NULL);
    child_free(b->child);
    close_lines(b);
    if (b->idle != 0)
        g_source_remove(b->idle);
    if (b->writing != NULL)
        b->writing->build = NULL;
    buf_clear(&b->lines);
    g_ptr_array_unref(b->layers);
    g_ptr_array_unref(b->chain);
    catalogue_unref(b->catalogue);
    g_clear_error(&b->error);
    char *texts[] = {b->folder, b->sudo, b->sudo_hash, b->name, b->key, b->step, b->line};
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
    g_free(b);
}

const TemplateProgress *
template_build_progress(const TemplateBuild *b)
{
    return &b->progress;
}

bool
template_build_is_again(const TemplateBuild *b)
{
    return b->spec.again;
}

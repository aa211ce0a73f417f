/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake-templates.h"

#include <string.h>

#include "base/err.h"
#include "box/template.h"

typedef struct FakeTemplate {
    Template shown;
    guint refs;
    char *hash;
} FakeTemplate;

static guint rebuilt;
static const char *const layers[] = {"00aa", NULL};
static const char *const env[] = {"PATH=/bin", "HOME=/home/user", NULL};

Template *
template_ref(Template *t)
{
    ((FakeTemplate *)t)->refs++;
    return t;
}

void
template_unref(Template *t)
{
    FakeTemplate *f = (FakeTemplate *)t;

    if (--f->refs > 0)
        return;
    g_free(f->hash);
    g_free(f);
}

static Template *
make(const char *name, guint number)
{
    FakeTemplate *f = g_new0(FakeTemplate, 1);

    f->refs = 1;
    f->hash = g_strdup_printf("%s-%u", name, number);
    f->shown = (Template){.name = strcmp(name, "base") == 0 ? "base" : "other",
                          .hash = f->hash,
                          .layers = layers,
                          .n_layers = 1,
                          .user = "user",
                          .workdir = "/home/user",
                          .env = env};
    if (strcmp(name, "other") == 0)
        f->shown.limits.pids = 77;
    return &f->shown;
}

Template *
template_store_get(TemplateStore *store, const char *name, GError **error)
{
    if (strcmp(name, "base") != 0 && strcmp(name, "other") != 0) {
        err_set(error, ERR_NOT_FOUND, "there is no template '%s'", name);
        return NULL;
    }
    return make(name, rebuilt);
}

/* Those of before a rebuild are there for who names them by hash. */
Template *
template_store_find(TemplateStore *store, const char *hash)
{
    g_auto(GStrv) parts = g_strsplit(hash, "-", 2);
    guint64 number;

    if (g_strv_length(parts) != 2 || !g_ascii_string_to_unsigned(parts[1], 10, 0, rebuilt, &number, NULL))
        return NULL;
    return make(parts[0], (guint)number);
}

void
template_store_collect(TemplateStore *store)
{
}

void
fake_templates_rebuild(void)
{
    rebuilt++;
}

void
fake_templates_reset(void)
{
    rebuilt = 0;
}

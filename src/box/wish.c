/* SPDX-License-Identifier: Apache-2.0 */
#include "box/wish.h"

#include <string.h>

#include "base/err.h"
#include "json/json.h"

/* ---- words ---- */

static bool
is_name(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(text);

    return n > 0 && n <= BOX_NAME_MAX && g_ascii_isalnum(text[0]) && strspn(text, plain) == n;
}

static bool
is_line(const char *text, size_t max)
{
    size_t n = strlen(text);

    if (n == 0 || n > max || !g_utf8_validate(text, (gssize)n, NULL))
        return false;
    for (size_t i = 0; i < n; i++) {
        bool c1 = (guchar)text[i] == 0xc2 && (guchar)text[i + 1] < 0xa0;

        if (g_ascii_iscntrl(text[i]) || c1)
            return false;
    }
    return true;
}

static bool
check_name(const char *what, const char *text, GError **error)
{
    return text == NULL || is_name(text) ||
           err_set(error, ERR_INVALID,
                   "'%s' has 1 to %d letters, digits, '.', '_' or '-' and begins with a letter or digit",
                   what, BOX_NAME_MAX);
}

static bool
check_line(const char *what, const char *text, size_t max, GError **error)
{
    return text == NULL || is_line(text, max) ||
           err_set(error, ERR_INVALID, "'%s' has 1 to %zu bytes and no control characters", what, max);
}

/* ---- environment ---- */

/* Length of the name, 0: none. */
static size_t
name_length(const char *entry)
{
    const char *end = strchr(entry, '=');

    return end != NULL ? (size_t)(end - entry) : 0;
}

static bool
is_env_name(const char *entry, size_t n)
{
    if (n == 0 || g_ascii_isdigit(entry[0]))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!g_ascii_isalnum(entry[i]) && entry[i] != '_')
            return false;
    }
    return true;
}

static bool
check_env(const char *const *env, GError **error)
{
    size_t bytes = 0;

    for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
        if (i == BOX_ENV_MAX)
            return err_set(error, ERR_INVALID, "'env' has more than %d entries", BOX_ENV_MAX);
        if (!is_env_name(env[i], name_length(env[i])))
            return err_set(error, ERR_INVALID,
                           "'%.40s' is no name for an environment variable: letters, digits and '_'", env[i]);
        if (!g_utf8_validate(env[i], -1, NULL))
            return err_set(error, ERR_INVALID, "the value of '%.*s' is not UTF-8", (int)name_length(env[i]),
                           env[i]);
        bytes += strlen(env[i]) + 1;
        if (bytes > WISH_ENV_BYTES_MAX)
            return err_set(error, ERR_INVALID, "'env' has more than %d bytes", WISH_ENV_BYTES_MAX);
    }
    return true;
}

char **
wish_merge_env(const char *const *under, const char *const *over)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    g_autoptr(GHashTable) places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const char *const *const lists[] = {under, over};

    for (size_t l = 0; l < G_N_ELEMENTS(lists); l++) {
        for (size_t i = 0; lists[l] != NULL && lists[l][i] != NULL; i++) {
            const char *entry = lists[l][i];
            char *name = g_strndup(entry, name_length(entry));
            gpointer place;

            if (g_hash_table_lookup_extended(places, name, NULL, &place)) {
                g_free(all->pdata[GPOINTER_TO_UINT(place)]);
                all->pdata[GPOINTER_TO_UINT(place)] = g_strdup(entry);
                g_free(name);
                continue;
            }
            g_hash_table_insert(places, name, GUINT_TO_POINTER(all->len));
            g_ptr_array_add(all, g_strdup(entry));
        }
    }
    g_ptr_array_add(all, NULL);
    return (char **)g_ptr_array_steal(all, NULL);
}

/* ---- the whole ---- */

static bool
check_metadata(const char *text, GError **error)
{
    if (text == NULL)
        return true;
    if (strlen(text) > BOX_METADATA_MAX)
        return err_set(error, ERR_INVALID, "'metadata' has more than %d bytes", BOX_METADATA_MAX);
    g_autoptr(Json) value = json_decode(text, strlen(text), NULL);

    return json_is_object(value) || err_set(error, ERR_INVALID, "'metadata' is no JSON object");
}

static bool
check_life(const char *what, gint64 ms, GError **error)
{
    return ms == 0 || (ms >= WISH_LIFE_MIN_MS && ms <= BOX_LIFE_MAX_MS) ||
           err_set(error, ERR_INVALID, "'%s' is between %d and %d seconds", what, WISH_LIFE_MIN_MS / 1000,
                   BOX_LIFE_MAX_MS / 1000);
}

bool
wish_check(const BoxSpec *spec, GError **error)
{
    return check_name("name", spec->name, error) && check_name("template", spec->template, error) &&
           check_line("agent_id", spec->agent_id, WISH_ID_MAX, error) &&
           check_line("task_id", spec->task_id, WISH_ID_MAX, error) &&
           check_line("squad_id", spec->squad_id, WISH_ID_MAX, error) &&
           check_line("repo_url", spec->repo_url, WISH_URL_MAX, error) &&
           check_line("lease", spec->lease, WISH_LEASE_MAX, error) && check_env(spec->env, error) &&
           check_metadata(spec->metadata, error) && check_life("lifetime", spec->lifetime_ms, error) &&
           check_life("idle", spec->idle_ms, error);
}

static bool
choose(const char *what, guint64 asked, guint64 of_template, guint64 of_server, guint64 least, guint64 most,
       guint64 *ret_value, GError **error)
{
    if (asked != 0 && (asked < least || asked > most))
        return err_set(error, ERR_INVALID,
                       "'%s' is between %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT " on this server", what,
                       least, most);
    *ret_value = asked != 0         ? asked
                 : of_template != 0 ? CLAMP(of_template, least, most)
                                    : CLAMP(of_server, least, most);
    return true;
}

bool
wish_limits(const KeeperLimits *asked, const Template *template, const BoxHostSpec *host,
            KeeperLimits *ret_limits, GError **error)
{
    const KeeperLimits *t = &template->limits, *s = &host->limits, *m = &host->limits_max;
    guint64 memory = 0, disk = 0, inodes = 0, pids = 0, cpu = 0;

    if (!choose("memory", asked->memory_bytes, t->memory_bytes, s->memory_bytes, KEEPER_MEMORY_MIN,
                m->memory_bytes, &memory, error) ||
        !choose("disk", asked->disk_bytes, t->disk_bytes, s->disk_bytes, KEEPER_DISK_MIN, m->disk_bytes,
                &disk, error) ||
        !choose("inodes", asked->inodes, t->inodes, s->inodes, KEEPER_INODES_MIN, m->inodes, &inodes,
                error) ||
        !choose("pids", asked->pids, t->pids, s->pids, KEEPER_PIDS_MIN, m->pids, &pids, error) ||
        !choose("cpu_milli", asked->cpu_milli, t->cpu_milli, s->cpu_milli, KEEPER_CPU_MIN, m->cpu_milli, &cpu,
                error))
        return false;
    *ret_limits = (KeeperLimits){.memory_bytes = memory,
                                 .disk_bytes = disk,
                                 .inodes = (uint32_t)inodes,
                                 .pids = (uint32_t)pids,
                                 .cpu_milli = (uint32_t)cpu};
    return true;
}

void
wish_facts(const BoxSpec *spec, const Template *template, const KeeperLimits *limits, char **env,
           BoxFacts *ret_facts)
{
    g_auto(GStrv) under = wish_merge_env((const char *const *)env, template->env);

    *ret_facts = (BoxFacts){
        .owner = g_strdup(spec->owner != NULL ? spec->owner : ""),
        .name = g_strdup(spec->name),
        .template = g_strdup(template->name),
        .template_hash = g_strdup(template->hash),
        .agent_id = g_strdup(spec->agent_id),
        .task_id = g_strdup(spec->task_id),
        .squad_id = g_strdup(spec->squad_id),
        .repo_url = g_strdup(spec->repo_url),
        .lease = g_strdup(spec->lease),
        .metadata = g_strdup(spec->metadata != NULL ? spec->metadata : "{}"),
        .env = wish_merge_env((const char *const *)under, spec->env),
        .user = g_strdup(template->user != NULL ? template->user : ""),
        .workdir = g_strdup(template->workdir != NULL ? template->workdir : ""),
        .limits = *limits,
        .keep = spec->keep,
    };
}

/* ---- a copy ---- */

struct BoxWish {
    BoxSpec spec;
    char **env;
    GStringChunk *texts;
};

static void
keep_text(BoxWish *wish, const char **text)
{
    if (*text != NULL)
        *text = g_string_chunk_insert(wish->texts, *text);
}

BoxWish *
box_wish_new(const BoxSpec *spec)
{
    BoxWish *wish = g_new0(BoxWish, 1);
    BoxSpec *s = &wish->spec;

    *s = *spec;
    wish->texts = g_string_chunk_new(256);
    wish->env = spec->env != NULL ? wish_merge_env(spec->env, NULL) : NULL;
    s->env = (const char *const *)wish->env;
    keep_text(wish, &s->owner);
    keep_text(wish, &s->actor);
    keep_text(wish, &s->template);
    keep_text(wish, &s->lease);
    keep_text(wish, &s->name);
    keep_text(wish, &s->agent_id);
    keep_text(wish, &s->task_id);
    keep_text(wish, &s->squad_id);
    keep_text(wish, &s->repo_url);
    keep_text(wish, &s->metadata);
    return wish;
}

const BoxSpec *
box_wish_spec(const BoxWish *wish)
{
    return &wish->spec;
}

void
box_wish_free(BoxWish *wish)
{
    if (wish == NULL)
        return;
    g_strfreev(wish->env);
    g_string_chunk_free(wish->texts);
    g_free(wish);
}

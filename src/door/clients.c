/* SPDX-License-Identifier: Apache-2.0 */
#include "door/clients.h"

#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "door/clients-ask.h"
#include "door/name.h"
#include "wire/door.h"

/* A work of the pool; it outlives us when the server ends first. */
typedef struct Job {
    DoorClients *clients; /* NULL: nobody waits any more */
    gint stop;
    Json *found;
} Job;

struct DoorClients {
    Loop *loop;
    char *cache_file;
    void (*changed)(void *ctx);
    void *ctx;
    Json *found;
    Job *job; /* NULL: none under way */
};

#define DOOR_URL "http://127.0.0.1:" G_STRINGIFY(DOOR_PORT_TEXT)
#define DOOR_PORT_TEXT 3128
G_STATIC_ASSERT(DOOR_PORT_TEXT == DOOR_PORT);

/* Programs differ in which spelling they read. */
static const char *const plain_env[] = {
    "http_proxy=" DOOR_URL,
    "https_proxy=" DOOR_URL,
    "HTTP_PROXY=" DOOR_URL,
    "HTTPS_PROXY=" DOOR_URL,
    "no_proxy=localhost,127.0.0.1,::1",
    "NO_PROXY=localhost,127.0.0.1,::1",
    "npm_config_proxy=" DOOR_URL,
    "npm_config_https_proxy=" DOOR_URL,
    "npm_config_noproxy=localhost,127.0.0.1",
    "npm_config_update_notifier=false",
    "PIP_DISABLE_PIP_VERSION_CHECK=1",
    "CARGO_HTTP_PROXY=" DOOR_URL,
    "OPENAI_BASE_URL=" DOOR_URL "/openai/v1",
    "ANTHROPIC_BASE_URL=" DOOR_URL "/anthropic",
    /* Clients want one; the door puts the real one in its place. */
    "OPENAI_API_KEY=coop",
    "ANTHROPIC_API_KEY=coop",
};

/* Every template that is built has what the host trusts there; node and Python bring their own. */
static const char bundle[] = "/etc/ssl/certs/ca-certificates.crt";
static const char *const bundle_env[] = {"NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PIP_CERT"};

static Json *
read_cache(const char *path)
{
    g_autofree char *text = NULL;
    gsize n;
    Json *found = g_file_get_contents(path, &text, &n, NULL) ? json_decode(text, n, NULL) : NULL;

    if (json_is_object(found))
        return found;
    json_decref(found);
    return json_object();
}

DoorClients *
door_clients_new(Loop *loop, const char *cache_file, void (*changed)(void *ctx), void *ctx)
{
    DoorClients *c = g_new0(DoorClients, 1);

    *c = (DoorClients){.loop = loop, .cache_file = g_strdup(cache_file), .changed = changed, .ctx = ctx};
    c->found = read_cache(cache_file);
    return c;
}

void
door_clients_free(DoorClients *c)
{
    if (c == NULL)
        return;
    if (c->job != NULL) {
        c->job->clients = NULL;
        g_atomic_int_set(&c->job->stop, 1);
    }
    json_decref(c->found);
    g_free(c->cache_file);
    g_free(c);
}

/* ---- asking ---- */

static void
ask_work(void *data)
{
    Job *job = data;

    job->found = clients_ask(&job->stop);
}

static void
take_found(DoorClients *c, Json *found)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = json_encode(found);

    log_info("door", "asked the package clients", log_int("found", json_object_size(found)));
    /* Nothing at all is more likely a machine without network than one without clients. */
    if (json_object_size(found) == 0 || json_equal(found, c->found))
        return;
    json_decref(c->found);
    c->found = json_incref(found);
    if (!path_write_atomic(c->cache_file, text, strlen(text), 0600, &error))
        log_warn("door", "what the package clients use is not kept", log_gerror(error));
    c->changed(c->ctx);
}

static void
ask_done(void *data)
{
    Job *job = data;

    if (job->clients != NULL) {
        job->clients->job = NULL;
        take_found(job->clients, job->found);
    }
    json_decref(job->found);
    g_free(job);
}

void
door_clients_ask(DoorClients *c)
{
    if (c->job != NULL)
        return;
    c->job = g_new0(Job, 1);
    c->job->clients = c;
    loop_offload(c->loop, ask_work, ask_done, c->job);
}

/* ---- what follows from it ---- */

Json *
door_clients_found(const DoorClients *c)
{
    return c->found;
}

static void
add_rule(Json *rules, const char *pattern, guint16 port, bool inside, const char *client)
{
    g_autofree char *source = g_strconcat(client, " of this host", NULL);
    Json *ports = port == 80 || port == 443 ? json_pack("[i, i]", 80, 443) : json_pack("[i]", port);

    json_array_append_new(rules, json_pack("{s:s, s:o, s:b, s:s}", "allow", pattern, "ports", ports, "inside",
                                           inside, "source", source));
}

/* Its index does not say where the files are, only that they are beside it: "static." by
 * convention.  A wildcard never leads inside, or a mirror at index.company would open the company. */
static void
add_files_of_cargo(Json *rules, const DoorName *index)
{
    const char *rest = index->host + strlen("index");

    if (!g_str_has_prefix(index->host, "index.") || strchr(rest + 1, '.') == NULL)
        return;
    g_autofree char *files = g_strconcat("static", rest, NULL);
    g_autofree char *around = g_strconcat("*", rest, NULL);

    add_rule(rules, files, index->port, true, "cargo");
    add_rule(rules, around, index->port, false, "cargo");
}

static void
add_url(Json *rules, const char *url, const char *client)
{
    bool tls = g_str_has_prefix(url, "https://");
    const char *rest = url + (tls ? strlen("https://") : strlen("http://"));
    g_autofree char *authority = g_strndup(rest, strcspn(rest, "/?#"));
    DoorName name;

    if (!door_name_read(authority, tls ? 443 : 80, &name, NULL))
        return;
    add_rule(rules, name.host, name.port, true, client);
    if (strcmp(client, "cargo") == 0)
        add_files_of_cargo(rules, &name);
}

Json *
door_clients_rules(const DoorClients *c)
{
    Json *rules = json_array(), *entry, *url;
    const char *client;
    size_t i;

    json_object_foreach(c->found, client, entry)
    {
        json_array_foreach(json_object_get(entry, "urls"), i, url)
        {
            if (json_is_string(url))
                add_url(rules, json_string_value(url), client);
        }
    }
    return rules;
}

char **
door_clients_env(const DoorClients *c)
{
    g_autoptr(GPtrArray) env = g_ptr_array_new();
    Json *entry, *line;
    const char *client;
    size_t i;

    for (i = 0; i < G_N_ELEMENTS(plain_env); i++)
        g_ptr_array_add(env, g_strdup(plain_env[i]));
    for (i = 0; i < G_N_ELEMENTS(bundle_env); i++)
        g_ptr_array_add(env, g_strdup_printf("%s=%s", bundle_env[i], bundle));
    json_object_foreach(c->found, client, entry)
    {
        json_array_foreach(json_object_get(entry, "env"), i, line)
        {
            if (json_is_string(line) && strchr(json_string_value(line), '=') != NULL)
                g_ptr_array_add(env, g_strdup(json_string_value(line)));
        }
    }
    g_ptr_array_add(env, NULL);
    return (char **)g_ptr_array_steal(env, NULL);
}

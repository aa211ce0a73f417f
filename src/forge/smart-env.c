/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/smart-private.h"
#include "wire/hook.h"

enum {
    UNPACK_LIMIT = 100, /* fewer objects become files of their own, more stay a pack */
};

/* For a push http-backend would start two programs more and do nothing else: it is not compressed, and the
 * two heads of its answers are always the same. */
static const struct {
    const char *query, *type;         /* of the request */
    const char *const *args;          /* of git */
    const char *method, *path;        /* of CGI */
    const char *answer_type, *begins; /* NULL: CGI says */
} services[] = {
    [SMART_ADVERTISE_FETCH] = {"service=git-upload-pack", NULL, GIT_ARGS("http-backend"), "GET",
                               "/info/refs"},
    [SMART_FETCH] = {NULL, "application/x-git-upload-pack-request", GIT_ARGS("http-backend"), "POST",
                     "/git-upload-pack"},
    [SMART_ADVERTISE_PUSH] = {.query = "service=git-receive-pack",
                              .args = GIT_ARGS("receive-pack", "--http-backend-info-refs", "."),
                              .answer_type = "application/x-git-receive-pack-advertisement",
                              .begins = "001f# service=git-receive-pack\n0000"},
    [SMART_PUSH] = {.type = "application/x-git-receive-pack-request",
                    .args = GIT_ARGS("receive-pack", "--stateless-rpc", "."),
                    .answer_type = "application/x-git-receive-pack-result",
                    .begins = ""},
};

const char *const *
smart_args(SmartService service)
{
    return services[service].args;
}

const char *
smart_begins(SmartService service, SmartHead *ret_head)
{
    static const char *const never[] = {"Expires",       "Fri, 01 Jan 1980 00:00:00 GMT",
                                        "Pragma",        "no-cache",
                                        "Cache-Control", "no-cache, max-age=0, must-revalidate"};

    if (services[service].answer_type == NULL)
        return NULL;
    *ret_head = (SmartHead){.status = 200,
                            .type = g_strdup(services[service].answer_type),
                            .headers = g_ptr_array_new_with_free_func(g_free)};
    for (size_t i = 0; i < G_N_ELEMENTS(never); i++)
        g_ptr_array_add(ret_head->headers, g_strdup(never[i]));
    return services[service].begins;
}

bool
smart_service_parse(const char *query, SmartService *ret_service)
{
    for (SmartService s = SMART_ADVERTISE_FETCH; s <= SMART_ADVERTISE_PUSH; s++) {
        if (g_strcmp0(query, services[s].query) == 0) {
            *ret_service = s;
            return true;
        }
    }
    return false;
}

/* ---- what a request may say ---- */

static bool
is_gzip(const char *encoding)
{
    return g_ascii_strcasecmp(encoding, "gzip") == 0 || g_ascii_strcasecmp(encoding, "x-gzip") == 0;
}

/* What would be unpacked before anybody has counted it. */
static bool
read_encoding(HttpRequest *request, SmartAsk *ask, GError **error)
{
    const char *encoding = http_request_header(request, "Content-Encoding");

    if (encoding == NULL || encoding[0] == '\0')
        return true;
    if (http_request_header_count(request, "Content-Encoding") > 1 || !is_gzip(encoding))
        return err_set(error, ERR_INVALID, "this Content-Encoding is not understood");
    if (ask->service != SMART_FETCH)
        return err_set(error, ERR_INVALID, "a push may not be compressed as a whole (Content-Encoding)");
    ask->encoding = "gzip";
    return true;
}

bool
smart_read_headers(HttpRequest *request, SmartAsk *ask, int *ret_status, GError **error)
{
    static const char *const versions[] = {"version=0", "version=1", "version=2"};
    const char *protocol = http_request_header(request, "Git-Protocol");
    const char *type = http_request_header(request, "Content-Type");
    const char *wanted = services[ask->service].type;

    *ret_status = 415;
    if (wanted != NULL && (type == NULL || strcmp(type, wanted) != 0))
        return err_set(error, ERR_INVALID, "this takes a body of the type %s", wanted);
    if (!read_encoding(request, ask, error))
        return false;
    /* What is not known is left out, as the protocol has it. */
    for (size_t i = 0; i < G_N_ELEMENTS(versions); i++) {
        if (g_strcmp0(protocol, versions[i]) == 0 && http_request_header_count(request, "Git-Protocol") == 1)
            ask->protocol = versions[i];
    }
    return true;
}

/* ---- settings ---- */

static void
add(GPtrArray *list, const char *key, const char *value)
{
    g_ptr_array_add(list, g_strconcat(key, "=", value, NULL));
}

/* Patterns are beginnings of names, so they are no more than a first sieve: the hook compares. */
static void
add_push_settings(GPtrArray *list, const SmartAsk *ask)
{
    g_autofree char *max = g_strdup_printf("%" G_GUINT64_FORMAT, SMART_PUSH_MAX);
    g_autofree char *unpack = g_strdup_printf("%d", UNPACK_LIMIT);

    add(list, "receive.hideRefs", "refs");
    if (ask->box_id != NULL) {
        g_autofree char *own = g_strconcat("!refs/heads/", ask->branch, NULL);

        add(list, "receive.hideRefs", own);
    } else {
        add(list, "receive.hideRefs", "!refs/heads");
        add(list, "receive.hideRefs", "!refs/tags");
    }
    add(list, "receive.maxInputSize", max);
    add(list, "receive.unpackLimit", unpack);
    add(list, "receive.denyDeletes", ask->box_id != NULL ? "true" : "false");
    add(list, "receive.denyNonFastForwards", ask->box_id != NULL && !ask->may_force ? "true" : "false");
    add(list, "receive.denyDeleteCurrent", "true");
    add(list, "receive.shallowUpdate", "false");
    /* One after the other: the memory of a push does not grow with the machine. */
    add(list, "pack.threads", "1");
    add(list, "core.bigFileThreshold", "32m");
}

char **
smart_settings(const SmartAsk *ask)
{
    GPtrArray *list = g_ptr_array_new();

    add(list, "http.getanyfile", "false");
    add(list, "http.uploadpack", smart_service_writes(ask->service) ? "false" : "true");
    add(list, "http.receivepack", "false");
    add(list, "uploadpack.hideRefs", "refs");
    add(list, "uploadpack.hideRefs", "!refs/heads");
    add(list, "uploadpack.hideRefs", "!refs/tags");
    add(list, "uploadpack.hideRefs", "!refs/pull");
    if (smart_service_writes(ask->service))
        add_push_settings(list, ask);
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

/* ---- variables ---- */

static void
put(GPtrArray *list, const char *name, const char *value)
{
    if (value != NULL)
        add(list, name, value);
}

static char *
protected_refs(const SmartAsk *ask)
{
    const char *const own[] = {ask->default_branch, NULL};
    char **set = ask->settings->protected_branches;
    const char *const *names = set != NULL ? (const char *const *)set : own;
    g_autoptr(GString) text = g_string_new(NULL);

    for (; *names != NULL; names++)
        g_string_append_printf(text, "refs/heads/%s\n", *names);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static const char *
messages(const SmartAsk *ask)
{
    if (!ask->settings->conventional_commits)
        return "";
    /* People push histories that were not written here. */
    return ask->box_id != NULL ? HOOK_MESSAGES_REFUSE : HOOK_MESSAGES_WARN;
}

static void
put_hook(GPtrArray *list, const SmartAsk *ask)
{
    g_autofree char *refs = protected_refs(ask);

    if (ask->box_id != NULL) {
        g_autofree char *ref = g_strconcat("refs/heads/", ask->branch, NULL);

        put(list, HOOK_REF, ref);
    } else {
        put(list, HOOK_DELETE, "1");
    }
    g_autofree char *standard = g_strconcat("refs/heads/", ask->default_branch, NULL);

    put(list, HOOK_PROTECTED, refs);
    put(list, HOOK_DEFAULT, standard);
    put(list, HOOK_ADVANCE, ask->may_advance ? "1" : NULL);
    put(list, HOOK_FORCE, ask->box_id == NULL || ask->may_force ? "1" : NULL);
    put(list, HOOK_MESSAGES, messages(ask));
    if (ask->settings->commit_types != NULL) {
        g_autofree char *types = g_strjoinv(" ", ask->settings->commit_types);

        put(list, HOOK_TYPES, types);
    }
}

static void
put_cgi(GPtrArray *list, const SmartAsk *ask)
{
    put(list, "GATEWAY_INTERFACE", "CGI/1.1");
    put(list, "SERVER_PROTOCOL", "HTTP/1.1");
    put(list, "GIT_PROJECT_ROOT", ask->root);
    put(list, "GIT_HTTP_EXPORT_ALL", "1");
    put(list, "PATH_INFO", services[ask->service].path);
    put(list, "REQUEST_METHOD", services[ask->service].method);
    put(list, "QUERY_STRING", services[ask->service].query);
    put(list, "CONTENT_TYPE", services[ask->service].type);
    put(list, "HTTP_CONTENT_ENCODING", ask->encoding);
    put(list, "HTTP_GIT_PROTOCOL", ask->protocol);
    put(list, "REMOTE_USER", ask->actor);
}

char **
smart_env(const SmartAsk *ask)
{
    GPtrArray *list = g_ptr_array_new();

    if (smart_service_writes(ask->service))
        put(list, "GIT_PROTOCOL", ask->protocol);
    else
        put_cgi(list, ask);
    if (ask->service == SMART_PUSH)
        put_hook(list, ask);
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

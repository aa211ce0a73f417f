/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent finds in its box: the work tree, the program coop-agent, a document about itself and what its
 * adapter wants.  All of it goes on side by side; what is there from an earlier try stays. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/box-call.h"
#include "forge/workspace.h"
#include "team/crew-private.h"
#include "wire/door.h"

enum { TOOL_MODE = 0755, SETUP_MS = 10 * 60 * 1000 };

static const char tool_path[] = "/usr/local/bin/coop-agent";
static const char document_path[] = ".coop/agent.json";

static void put_files(Shift *s);

/* ---- steps ---- */

static void
all_done(Shift *s)
{
    if (s->error != NULL) {
        ErrKind kind = err_kind(s->error);
        bool broken = kind == ERR_INVALID || kind == ERR_DENIED || kind == ERR_NOT_FOUND;
        g_autofree char *problem = g_strdup_printf("its box could not be prepared: %s", s->error->message);

        shift_end(s, broken ? "failed" : "lost", problem);
        return;
    }
    FAILPOINT("crew-prepared");
    if (shift_wants_scan(s))
        shift_scan(s);
    else
        shift_work(s);
}

/* Takes the reference that the step had. */
static void
step_done(Shift *s, const GError *error)
{
    if (error != NULL && s->error == NULL)
        s->error = g_error_copy(error);
    s->preparing--;
    if (s->preparing == 0 && s->crew != NULL && s->phase == SHIFT_PREPARING)
        all_done(s);
    shift_unref(s);
}

static void
step_begin(Shift *s)
{
    s->preparing++;
    shift_ref(s);
}

static void
on_file(const GError *error, void *data)
{
    step_done(data, error);
}

/* ---- the program ---- */

static GBytes *
read_tool(Crew *crew, GError **error)
{
    if (crew->tool != NULL)
        return crew->tool;
    if (crew->team->spec.tools_dir == NULL) {
        err_set(error, ERR_UNAVAILABLE, "this server has no program for agents");
        return NULL;
    }
    g_autofree char *path = g_build_filename(crew->team->spec.tools_dir, "coop-agent", NULL);
    g_autoptr(GMappedFile) file = g_mapped_file_new(path, FALSE, NULL);

    if (file == NULL || g_mapped_file_get_length(file) > CREW_TOOL_MAX) {
        err_set(error, ERR_UNAVAILABLE, "'%s' is not there, or no program for agents", path);
        return NULL;
    }
    crew->tool = g_mapped_file_get_bytes(file);
    return crew->tool;
}

static void
on_tool_room(BoxWrite *write, void *ctx)
{
    Shift *s = ctx;
    gsize n;
    const guint8 *bytes = g_bytes_get_data(s->crew->tool, &n);

    s->written += box_write_data(write, bytes + s->written, n - s->written);
    if (s->written == n)
        box_write_end(write);
}

static void
on_tool_end(BoxWrite *write, const GError *error, void *ctx)
{
    Shift *s = ctx;

    s->write = NULL;
    step_done(s, error);
}

/* Other agents have it for its commands, and do without where there is none. */
static void
put_tool(Shift *s)
{
    static const BoxWriteEvents events = {on_tool_room, on_tool_end};
    const BoxFileSpec place = {.box = s->box, .user = "root", .actor = "coop"};
    g_autoptr(GError) error = NULL;
    GBytes *tool = read_tool(s->crew, &error);

    step_begin(s);
    s->written = 0;
    if (tool != NULL)
        s->write = box_file_write(&place, tool_path, TOOL_MODE, (gint64)g_bytes_get_size(tool), &events, s,
                                  &error);
    if (s->write != NULL)
        on_tool_room(s->write, s);
    else
        step_done(s, s->adapter == NULL ? error : NULL);
}

/* ---- the document ---- */

static char *
make_document(const Shift *s)
{
    const char *task = shift_text(s, "task_id");
    g_autofree char *room = task != NULL ? room_id_of(task) : NULL;
    g_autofree char *bridge = room != NULL ? g_strdup_printf("ws://127.0.0.1:%d/rooms/%s", DOOR_PORT, room)
                                           : NULL;
    g_autofree char *name = shift_git_name(s);
    g_autofree char *email = shift_git_email(s);
    g_autoptr(Json) document = json_pack(
        "{s:s, s:[s, s, s], s:{s:{s:s?, s:s?, s:i}, s:{s:s, s:s, s:n}}}", "name", shift_text(s, "agent"),
        "plugins", "autocoder", "github", "e2b-client", "settings", "communication", "bridge", bridge, "room",
        room, "heartbeat", ROOM_HEARTBEAT_MS, "git", "username", name, "email", email, "sshKey");

    return json_encode(document);
}

static void
put_document(Shift *s)
{
    const BoxFileSpec place = {.box = s->box, .actor = "coop"};
    g_autofree char *text = make_document(s);

    step_begin(s);
    box_file_put(&place, document_path, text, strlen(text), on_file, s);
}

/* ---- the work tree ---- */

/* Those that need to know where it is. */
static void
has_place(Shift *s, const char *path)
{
    g_free(s->workdir);
    s->workdir = g_strdup(path);
    if (s->crew != NULL && s->adapter != NULL)
        put_files(s);
}

static void
on_tree(Json *value, const GError *error, void *data)
{
    Shift *s = data;

    FAILPOINT("crew-cloned");
    if (error == NULL)
        has_place(s, row_text(value, "path"));
    step_done(s, error);
}

static void
on_place(int code, const char *out, const char *err, const GError *error, void *data)
{
    Shift *s = data;
    g_autoptr(GError) said = error == NULL && code != 0 ? box_call_error("make the folder", code, err) : NULL;
    g_autofree char *path = g_strchomp(g_strdup(out));

    if (error == NULL && said == NULL)
        has_place(s, path);
    step_done(s, error != NULL ? error : said);
}

static void
make_folder(Shift *s)
{
    static const char script[] = "mkdir -p work && cd work && pwd -P";
    const BoxCall call = {.argv = (const char *const[]){"/bin/sh", "-c", script, NULL}};

    step_begin(s);
    box_call(s->box, &call, "coop", on_place, s);
}

static const char *
identity_id(const Shift *s)
{
    const char *member = shift_text(s, "member_id");
    const Identity *who = member != NULL ? identity_of_agent(s->crew->team->spec.forge, member) : NULL;

    return who != NULL && who->revoked_us == 0 ? who->id : NULL;
}

static void
lay_tree(Shift *s, Repo *repo)
{
    Forge *forge = s->crew->team->spec.forge;
    BoxInfo info;
    const CloneSpec spec = {.repo = repo,
                            .branch = shift_text(s, "git_branch"),
                            .base = shift_text(s, "git_base"),
                            .identity = identity_id(s),
                            .actor = s->actor};

    box_info(s->box, &info);
    const Workspace *there = workspace_find(forge, info.id, repo);
    bool same = there != NULL && !there->cloning &&
                (spec.branch == NULL || strcmp(there->branch, spec.branch) == 0);

    if (same)
        has_place(s, there->path);
    if (same)
        return;
    step_begin(s);
    if (there != NULL && !there->cloning)
        workspace_branch(forge, s->box, &spec, on_tree, s);
    else
        workspace_clone(forge, s->box, &spec, on_tree, s);
}

static void
put_tree(Shift *s)
{
    Repo *repo = shift_repo(s);
    g_autoptr(GError) error = NULL;

    if (repo != NULL) {
        lay_tree(s, repo);
    } else if (shift_text(s, "repository_id") == NULL) {
        make_folder(s);
    } else {
        err_set(&error, ERR_INVALID, "its repository is gone");
        step_begin(s);
        step_done(s, error);
    }
}

/* ---- what the adapter wants ---- */

static void
put_files(Shift *s)
{
    const BoxFileSpec place = {.box = s->box, .actor = "coop"};
    g_autoptr(ShiftWords) words = shift_words_new(s);
    const char *path;
    g_autofree char *content = NULL;

    for (guint i = 0; adapter_file(s->adapter, i, &words->words, &path, &content); i++) {
        g_autofree char *full = g_build_filename(words->words.home, ".coop", path, NULL);

        step_begin(s);
        box_file_put(&place, full, content, strlen(content), on_file, s);
        g_clear_pointer(&content, g_free);
    }
}

static void
on_setup(int code, const char *out, const char *err, const GError *error, void *data)
{
    Shift *s = data;
    g_autoptr(GError) said = error == NULL && code != 0 ? box_call_error("install the agent", code, err)
                                                        : NULL;

    step_done(s, error != NULL ? error : said);
}

static void
set_up(Shift *s)
{
    static const char script[] = "/bin/sh -c \"$0\" >/dev/null 2>&1 || exec /bin/sh -c \"$1\"";
    const char *ready = adapter_ready(s->adapter);
    const char *setup = adapter_setup(s->adapter);

    if (setup == NULL)
        return;
    const BoxCall call = {
        .argv = (const char *const[]){"/bin/sh", "-c", script, ready != NULL ? ready : "false", setup, NULL},
        .timeout_ms = SETUP_MS};

    step_begin(s);
    box_call(s->box, &call, "coop", on_setup, s);
}

void
shift_prepare(Shift *s)
{
    s->phase = SHIFT_PREPARING;
    g_clear_error(&s->error);
    step_begin(s);
    put_tree(s);
    put_tool(s);
    put_document(s);
    if (s->adapter != NULL)
        set_up(s);
    step_done(s, NULL);
}

void
shift_prepare_stop(Shift *s)
{
    if (s->write == NULL)
        return;
    box_write_cancel(g_steal_pointer(&s->write));
    shift_unref(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/script.h"

#include <string.h>

#include "brain/script-private.h"
#include "brain/script-read.h"
#include "brain/usage-private.h"

enum { GROUPS_MAX = 9, PIECES_MAX = 8192 };

/* ---- placeholders ---- */

static const char *const placeholders[] = {"last", "last_user", "last_tool", "system", "model",
                                           "turn", "agent",     "task",      "box",    "match"};

static bool
is_placeholder(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(placeholders); i++) {
        if (strcmp(placeholders[i], name) == 0)
            return true;
    }
    return g_str_has_prefix(name, "match.") && name[6] >= '1' && name[6] <= '0' + GROUPS_MAX &&
           name[7] == '\0';
}

/* The next "{{name}}"; NULL: none. */
static const char *
find_placeholder(const char *text, char **ret_name, const char **ret_end)
{
    const char *open = strstr(text, "{{");
    const char *close = open != NULL ? strstr(open, "}}") : NULL;

    if (close == NULL)
        return NULL;
    *ret_name = g_strndup(open + 2, (size_t)(close - open - 2));
    *ret_end = close + 2;
    return open;
}

char *
script_unknown_placeholder(const char *text)
{
    g_autofree char *name = NULL;
    const char *end;

    while (find_placeholder(text, &name, &end) != NULL) {
        if (!is_placeholder(name))
            return g_steal_pointer(&name);
        g_clear_pointer(&name, g_free);
        text = end;
    }
    return NULL;
}

typedef struct Fill {
    const ScriptCall *call;
    const Talk *talk;
    GMatchInfo *match; /* NULL: none */
    size_t said;
} Fill;

static char *
value_of(const Fill *f, const char *name)
{
    const Talk *t = f->talk;
    const struct {
        const char *name, *value;
    } rows[] = {
        {"last", t->last},       {"last_user", t->last_user}, {"last_tool", t->last_tool},
        {"system", t->system},   {"model", f->call->model},   {"agent", f->call->agent},
        {"task", f->call->task}, {"box", f->call->box},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return g_strdup(rows[i].value != NULL ? rows[i].value : "");
    }
    if (strcmp(name, "turn") == 0)
        return g_strdup_printf("%u", t->turn);
    int group = strcmp(name, "match") == 0 ? 0 : name[6] - '0';
    char *found = f->match != NULL ? g_match_info_fetch(f->match, group) : NULL;
    return found != NULL ? found : g_strdup("");
}

static char *
fill_text(Fill *f, const char *text)
{
    GString *out = g_string_new(NULL);
    g_autofree char *name = NULL;
    const char *open, *end;

    while ((open = find_placeholder(text, &name, &end)) != NULL) {
        g_autofree char *value = value_of(f, name);

        g_string_append_len(out, text, open - text);
        /* What was asked may be long, and may be asked for many times. */
        if (f->said + strlen(value) <= SCRIPT_SAY_MAX)
            g_string_append(out, value);
        f->said += strlen(value);
        g_clear_pointer(&name, g_free);
        text = end;
    }
    return g_string_free(g_string_append(out, text), FALSE);
}

static Json *
fill_json(Fill *f, Json *value)
{
    const char *name;
    size_t i;
    Json *item;

    if (json_is_string(value)) {
        g_autofree char *text = fill_text(f, json_string_value(value));
        g_autofree char *valid = g_utf8_make_valid(text, -1);

        return json_string(valid);
    }
    if (json_is_object(value)) {
        Json *object = json_object();

        json_object_foreach(value, name, item) json_object_set_new(object, name, fill_json(f, item));
        return object;
    }
    if (json_is_array(value)) {
        Json *array = json_array();

        json_array_foreach(value, i, item) json_array_append_new(array, fill_json(f, item));
        return array;
    }
    return json_incref(value);
}

/* ---- which turn of which conversation ---- */

static bool
fits(const Conversation *c, const ScriptCall *call, const Talk *talk, GMatchInfo **ret_match)
{
    if (c->role != NULL && (call->agent == NULL || !g_pattern_spec_match_string(c->role, call->agent)))
        return false;
    if (c->model != NULL && !g_pattern_spec_match_string(c->model, call->model))
        return false;
    if (c->last != NULL && talk->last_is_tool != (strcmp(c->last, "tool") == 0))
        return false;
    if (talk->turn < c->first_turn || talk->turn - c->first_turn >= c->turns->len)
        return false;
    if (c->system != NULL && !g_regex_match(c->system, talk->system, 0, NULL))
        return false;
    if (c->asked != NULL && !g_regex_match(c->asked, talk->asked, 0, NULL))
        return false;
    return c->match == NULL || g_regex_match(c->match, talk->last, 0, ret_match);
}

static const ScriptTurn *
find_turn(const BrainScript *script, const ScriptCall *call, const Talk *talk, GMatchInfo **ret_match)
{
    for (guint i = 0; i < script->conversations->len; i++) {
        const Conversation *c = script->conversations->pdata[i];

        if (fits(c, call, talk, ret_match))
            return c->turns->pdata[talk->turn - c->first_turn];
        g_clear_pointer(ret_match, g_match_info_unref);
    }
    return NULL;
}

/* ---- what it says ---- */

static void
said_tool_free(void *data)
{
    SaidTool *tool = data;

    g_free(tool->id);
    g_free(tool->name);
    g_free(tool->arguments);
    g_free(tool);
}

static void
said_init(Said *said, const ScriptCall *call)
{
    *said = (Said){.model = call->model, .chunk = SCRIPT_CHUNK};
    said->tools = g_ptr_array_new_with_free_func(said_tool_free);
    for (guint i = 0; i < 8; i++)
        g_snprintf(said->id + 2 * i, 3, "%02x", call->digest[i]);
}

static void
said_clear(Said *said)
{
    g_free(said->text);
    g_ptr_array_unref(said->tools);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Said, said_clear)

static void
say_tools(Said *said, Fill *f, const ScriptTurn *turn)
{
    for (guint i = 0; i < turn->tools->len; i++) {
        const ScriptTool *tool = turn->tools->pdata[i];
        g_autoptr(Json) arguments = fill_json(f, tool->arguments);
        SaidTool *t = g_new0(SaidTool, 1);

        *t = (SaidTool){.id = g_strdup_printf("call_%s%u", said->id, i),
                        .name = fill_text(f, tool->name),
                        .arguments = json_encode(arguments)};
        g_ptr_array_add(said->tools, t);
    }
}

static void
reckon_usage(Said *said, const ScriptTurn *turn, const ScriptCall *call)
{
    size_t bytes = said->text != NULL ? strlen(said->text) : 0;

    for (guint i = 0; i < said->tools->len; i++)
        bytes += strlen(((SaidTool *)said->tools->pdata[i])->arguments);
    if (turn->has_usage)
        said->usage = (Usage){
            .input_tokens = turn->input, .output_tokens = turn->output, .cached_tokens = turn->cached};
    else
        said->usage = (Usage){.input_tokens = call->ask->bytes / USAGE_BYTES_PER_TOKEN + 1,
                              .output_tokens = bytes / USAGE_BYTES_PER_TOKEN + 1};
}

static void
say(Said *said, Fill *f, const ScriptTurn *turn)
{
    if (turn->text != NULL) {
        g_autofree char *text = fill_text(f, turn->text);

        said->text = g_utf8_make_valid(text, -1);
    }
    say_tools(said, f, turn);
    said->first_ms = (guint)turn->first_ms;
    said->delay_ms = (guint)turn->delay_ms;
    said->chunk = (guint)MAX(turn->chunk, 1);
    if (said->text != NULL)
        said->chunk = MAX(said->chunk, (guint)(strlen(said->text) / PIECES_MAX));
    said->is_cut = turn->is_cut;
    reckon_usage(said, turn, f->call);
}

static Tape *
error_tape(const ScriptCall *call, int status, const char *message)
{
    Tape *tape = tape_new(status, false);
    g_autofree char *body = fault_body(status == 429 ? FAULT_RATE : FAULT_INVALID, call->ask->route->dialect,
                                       message);

    tape_add(tape, 0, body, strlen(body));
    return tape;
}

static Tape *
answer_turn(const BrainScript *script, const ScriptCall *call)
{
    RouteKind kind = call->ask->route->kind;
    g_auto(Talk) talk;
    g_auto(Said) said;
    g_autoptr(GMatchInfo) match = NULL;

    talk_init(&talk, kind, call->ask->body);
    said_init(&said, call);
    const ScriptTurn *turn = find_turn(script, call, &talk, &match);
    Fill fill = {.call = call, .talk = &talk, .match = match};

    if (turn == NULL) {
        g_autofree char *why = g_strdup_printf(
            "the script has no answer for turn %u of the model '%s' with the last message \"%.200s\"",
            talk.turn, call->model, talk.last);
        return error_tape(call, 400, why);
    }
    if (turn->error_status != 0) {
        g_autofree char *why = fill_text(&fill,
                                         turn->error_message != NULL ? turn->error_message : "scripted");

        return error_tape(call, (int)turn->error_status, why);
    }
    say(&said, &fill, turn);
    bool is_stream = call->ask->stream;
    return kind == ROUTE_CHAT        ? render_chat(&said, is_stream)
           : kind == ROUTE_RESPONSES ? render_responses(&said, is_stream)
                                     : render_messages(&said, is_stream);
}

/* ---- the other routes ---- */

static Json *
model_object(const ScriptCall *call, const char *name)
{
    if (call->ask->route->dialect == DIALECT_ANTHROPIC)
        return json_pack("{s:s, s:s, s:s, s:s}", "type", "model", "id", name, "display_name", name,
                         "created_at", "2025-01-01T00:00:00Z");
    return json_pack("{s:s, s:s, s:i, s:s}", "id", name, "object", "model", "created", 1735689600, "owned_by",
                     "script");
}

static Json *
model_list(const BrainScript *script, const ScriptCall *call)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    Json *data = json_array();

    for (guint i = 0; i < script->conversations->len; i++) {
        const Conversation *c = script->conversations->pdata[i];

        if (c->model_name != NULL && strpbrk(c->model_name, "*?") == NULL &&
            g_hash_table_add(seen, c->model_name))
            json_array_append_new(data, model_object(call, c->model_name));
    }
    if (json_array_size(data) == 0)
        json_array_append_new(data, model_object(call, "script"));
    return json_pack("{s:s, s:o, s:b}", "object", "list", "data", data, "has_more", 0);
}

Tape *
brain_script_answer(const BrainScript *script, const ScriptCall *call)
{
    g_auto(Said) said;

    said_init(&said, call);
    switch (call->ask->route->kind) {
    case ROUTE_CHAT:
    case ROUTE_RESPONSES:
    case ROUTE_MESSAGES:
        return answer_turn(script, call);
    case ROUTE_EMBEDDINGS:
        said.usage.input_tokens = call->ask->bytes / USAGE_BYTES_PER_TOKEN + 1;
        return render_embeddings(&said, call->ask->body);
    case ROUTE_COUNT_TOKENS:
        return said_whole(&said, json_pack("{s:I}", "input_tokens",
                                           (json_int_t)(call->ask->bytes / USAGE_BYTES_PER_TOKEN + 1)));
    case ROUTE_MODELS:
        return said_whole(&said, model_list(script, call));
    case ROUTE_MODEL:
        return said_whole(&said, model_object(call, call->model));
    }
    g_assert_not_reached();
}

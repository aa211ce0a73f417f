/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/script-read.h"

#include <string.h>

#include "base/err.h"
#include "json/yaml.h"

enum { DEPTH_MAX = 12, VALUES_MAX = 200 * 1000, CHUNK_MAX = 64 * 1024 };

/* ---- freeing ---- */

static void
tool_free(void *data)
{
    ScriptTool *tool = data;

    g_free(tool->name);
    json_decref(tool->arguments);
    g_free(tool);
}

static void
turn_free(void *data)
{
    ScriptTurn *turn = data;

    g_free(turn->text);
    g_free(turn->error_message);
    g_ptr_array_unref(turn->tools);
    g_free(turn);
}

static void
conversation_free(void *data)
{
    Conversation *c = data;

    g_clear_pointer(&c->role, g_pattern_spec_free);
    g_clear_pointer(&c->model, g_pattern_spec_free);
    g_clear_pointer(&c->system, g_regex_unref);
    g_clear_pointer(&c->asked, g_regex_unref);
    g_clear_pointer(&c->match, g_regex_unref);
    g_free(c->last);
    g_free(c->model_name);
    g_ptr_array_unref(c->turns);
    g_free(c);
}

BrainScript *
brain_script_ref(BrainScript *script)
{
    script->refs++;
    return script;
}

void
brain_script_unref(BrainScript *script)
{
    if (script == NULL || --script->refs > 0)
        return;
    g_ptr_array_unref(script->conversations);
    g_free(script);
}

/* ---- values ---- */

static bool fail(GError **error, const YamlNode *at, const char *fmt, ...) G_GNUC_PRINTF(3, 4);

static bool
fail(GError **error, const YamlNode *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *why = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return err_set(error, ERR_INVALID, "script, line %u: %s", at->place.line, why);
}

static bool
read_text(const YamlNode *node, char **ret, GError **error)
{
    if (node->kind != YAML_TEXT)
        return fail(error, node, "a text is wanted here");
    g_autofree char *unknown = script_unknown_placeholder(node->text);
    if (unknown != NULL)
        return fail(error, node, "there is no placeholder '{{%s}}'", unknown);
    g_free(*ret);
    *ret = g_strdup(node->text);
    return true;
}

static bool
read_number(const YamlNode *node, guint64 max, guint64 *ret, GError **error)
{
    if (node->kind != YAML_TEXT || !g_ascii_string_to_unsigned(node->text, 10, 0, max, ret, NULL))
        return fail(error, node, "a number from 0 to %" G_GUINT64_FORMAT " is wanted here", max);
    return true;
}

static bool
read_flag(const YamlNode *node, bool *ret, GError **error)
{
    if (node->kind != YAML_TEXT || (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0))
        return fail(error, node, "true or false is wanted here");
    *ret = strcmp(node->text, "true") == 0;
    return true;
}

static bool
read_regex(const YamlNode *node, GRegex **ret, GError **error)
{
    g_autoptr(GError) why = NULL;

    if (node->kind != YAML_TEXT)
        return fail(error, node, "a regular expression is wanted here");
    g_clear_pointer(ret, g_regex_unref);
    *ret = g_regex_new(node->text, 0, 0, &why);
    return *ret != NULL || fail(error, node, "%s", why->message);
}

static bool
read_pattern(const YamlNode *node, GPatternSpec **ret, GError **error)
{
    if (node->kind != YAML_TEXT)
        return fail(error, node, "a name or a pattern is wanted here");
    g_clear_pointer(ret, g_pattern_spec_free);
    *ret = g_pattern_spec_new(node->text);
    return true;
}

/* ---- maps, member by member ---- */

typedef bool (*MemberFunc)(void *to, const char *name, const YamlNode *value, GError **error);

static bool
read_map(const YamlNode *node, MemberFunc func, void *to, GError **error)
{
    if (node->kind != YAML_MAP)
        return fail(error, node, "a map is wanted here");
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *key = node->keys->pdata[i];

        if (!func(to, key->text, node->items->pdata[i], error))
            return false;
    }
    return true;
}

static bool
read_arguments(ScriptTool *tool, const YamlNode *node, GError **error)
{
    g_autoptr(GError) why = NULL;

    json_decref(g_steal_pointer(&tool->arguments));
    if (node->kind == YAML_MAP) {
        tool->arguments = json_object();
        for (guint i = 0; i < node->items->len; i++) {
            const YamlNode *key = node->keys->pdata[i], *value = node->items->pdata[i];
            g_autofree char *text = NULL;

            if (!read_text(value, &text, error))
                return false;
            json_object_set_new(tool->arguments, key->text, json_string(text));
        }
        return true;
    }
    g_autofree char *text = NULL;
    if (!read_text(node, &text, error))
        return false;
    tool->arguments = json_decode(text, strlen(text), &why);
    if (tool->arguments == NULL)
        return fail(error, node, "%s", why->message);
    return json_is_object(tool->arguments) || fail(error, node, "a tool's arguments are a JSON object");
}

static bool
tool_member(void *to, const char *name, const YamlNode *value, GError **error)
{
    ScriptTool *tool = to;

    if (strcmp(name, "name") == 0)
        return read_text(value, &tool->name, error);
    if (strcmp(name, "arguments") == 0)
        return read_arguments(tool, value, error);
    return fail(error, value, "a tool has name and arguments, not '%s'", name);
}

static bool
read_tools(ScriptTurn *turn, const YamlNode *node, GError **error)
{
    if (node->kind != YAML_LIST)
        return fail(error, node, "'tools' is a list");
    for (guint i = 0; i < node->items->len; i++) {
        ScriptTool *tool = g_new0(ScriptTool, 1);

        g_ptr_array_add(turn->tools, tool);
        if (!read_map(node->items->pdata[i], tool_member, tool, error))
            return false;
        if (tool->name == NULL)
            return fail(error, node->items->pdata[i], "a tool needs a name");
        if (tool->arguments == NULL)
            tool->arguments = json_object();
    }
    return true;
}

static bool
usage_member(void *to, const char *name, const YamlNode *value, GError **error)
{
    ScriptTurn *turn = to;
    guint64 *ret = strcmp(name, "input") == 0    ? &turn->input
                   : strcmp(name, "output") == 0 ? &turn->output
                   : strcmp(name, "cached") == 0 ? &turn->cached
                                                 : NULL;

    turn->has_usage = true;
    return ret != NULL ? read_number(value, G_MAXUINT32, ret, error)
                       : fail(error, value, "usage has input, output and cached, not '%s'", name);
}

static bool
error_member(void *to, const char *name, const YamlNode *value, GError **error)
{
    ScriptTurn *turn = to;

    if (strcmp(name, "message") == 0)
        return read_text(value, &turn->error_message, error);
    if (strcmp(name, "status") != 0)
        return fail(error, value, "an error has status and message, not '%s'", name);
    return read_number(value, 599, &turn->error_status, error) &&
           (turn->error_status >= 400 || fail(error, value, "an error's status is from 400 to 599"));
}

static bool
turn_member(void *to, const char *name, const YamlNode *value, GError **error)
{
    ScriptTurn *turn = to;

    if (strcmp(name, "text") == 0)
        return read_text(value, &turn->text, error);
    if (strcmp(name, "tools") == 0)
        return read_tools(turn, value, error);
    if (strcmp(name, "usage") == 0)
        return read_map(value, usage_member, turn, error);
    if (strcmp(name, "error") == 0)
        return read_map(value, error_member, turn, error);
    if (strcmp(name, "first_ms") == 0)
        return read_number(value, TAPE_WAIT_MAX_MS, &turn->first_ms, error);
    if (strcmp(name, "delay_ms") == 0)
        return read_number(value, TAPE_WAIT_MAX_MS, &turn->delay_ms, error);
    if (strcmp(name, "chunk") == 0)
        return read_number(value, CHUNK_MAX, &turn->chunk, error);
    if (strcmp(name, "cut") == 0)
        return read_flag(value, &turn->is_cut, error);
    return fail(error, value, "a turn has no '%s'", name);
}

static bool
read_turns(Conversation *c, const YamlNode *node, GError **error)
{
    if (node->kind != YAML_LIST || node->items->len > SCRIPT_TURNS_MAX)
        return fail(error, node, "'turns' is a list of up to %d", SCRIPT_TURNS_MAX);
    for (guint i = 0; i < node->items->len; i++) {
        ScriptTurn *turn = g_new0(ScriptTurn, 1);

        turn->tools = g_ptr_array_new_with_free_func(tool_free);
        turn->chunk = SCRIPT_CHUNK;
        g_ptr_array_add(c->turns, turn);
        if (!read_map(node->items->pdata[i], turn_member, turn, error))
            return false;
        if (turn->text == NULL && turn->tools->len == 0 && turn->error_status == 0)
            return fail(error, node->items->pdata[i], "a turn needs a text, tools or an error");
    }
    return true;
}

static bool
conversation_member(void *to, const char *name, const YamlNode *value, GError **error)
{
    Conversation *c = to;

    if (strcmp(name, "role") == 0)
        return read_pattern(value, &c->role, error);
    if (strcmp(name, "model") == 0)
        return read_text(value, &c->model_name, error) && read_pattern(value, &c->model, error);
    if (strcmp(name, "system") == 0)
        return read_regex(value, &c->system, error);
    if (strcmp(name, "match") == 0)
        return read_regex(value, &c->match, error);
    if (strcmp(name, "asked") == 0)
        return read_regex(value, &c->asked, error);
    if (strcmp(name, "turn") == 0)
        return read_number(value, SCRIPT_TURNS_MAX, &c->first_turn, error);
    if (strcmp(name, "turns") == 0)
        return read_turns(c, value, error);
    if (strcmp(name, "last") != 0)
        return fail(error, value, "a conversation has no '%s'", name);
    return read_text(value, &c->last, error) &&
           (strcmp(c->last, "user") == 0 || strcmp(c->last, "tool") == 0 ||
            fail(error, value, "'last' is user or tool"));
}

static bool
read_conversations(BrainScript *script, const YamlNode *top, GError **error)
{
    const YamlNode *list = yaml_member(top, "conversations");

    if (list == NULL || list->kind != YAML_LIST || list->items->len > SCRIPT_CONVERSATIONS_MAX)
        return fail(error, top, "'conversations' is a list of up to %d", SCRIPT_CONVERSATIONS_MAX);
    for (guint i = 0; i < list->items->len; i++) {
        Conversation *c = g_new0(Conversation, 1);

        c->first_turn = 1;
        c->turns = g_ptr_array_new_with_free_func(turn_free);
        g_ptr_array_add(script->conversations, c);
        if (!read_map(list->items->pdata[i], conversation_member, c, error))
            return false;
        if (c->turns->len == 0)
            return fail(error, list->items->pdata[i], "a conversation needs turns");
    }
    return true;
}

BrainScript *
brain_script_new(const char *yaml, size_t n, GError **error)
{
    const YamlLimits limits = {.depth = DEPTH_MAX, .values = VALUES_MAX, .text_max = SCRIPT_TEXT_MAX};
    g_auto(YamlProblem) problem = {0};
    g_autoptr(YamlNode) top = yaml_read(yaml, n, &limits, "a script is a map with 'conversations'", &problem);
    g_autoptr(BrainScript) script = g_new0(BrainScript, 1);

    script->refs = 1;
    script->conversations = g_ptr_array_new_with_free_func(conversation_free);
    if (problem.message != NULL || top == NULL) {
        err_set(error, ERR_INVALID, "script, line %u: %s", problem.place.line,
                problem.message != NULL ? problem.message : "the file is empty");
        return NULL;
    }
    if (top->kind != YAML_MAP) {
        fail(error, top, "a script is a map");
        return NULL;
    }
    return read_conversations(script, top, error) ? g_steal_pointer(&script) : NULL;
}

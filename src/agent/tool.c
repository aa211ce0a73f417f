/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/tool.h"

#include <string.h>

#include "base/err.h"

enum { EXCERPT_MAX = 200 }; /* bytes of a malformed call that are shown */

static const Tool *const all[] = {&tool_shell, &tool_read,   &tool_write, &tool_edit, &tool_search,
                                  &tool_test,  &tool_commit, &tool_room,  &tool_ask,  &tool_done};

static const Tool *
find(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    }
    return NULL;
}

static bool
has_flag(const char *name, int flag)
{
    const Tool *tool = find(name);

    return tool != NULL && ((int)tool->flags & flag) != 0;
}

bool
tool_is_slow(const char *name)
{
    return has_flag(name, TOOL_SLOW);
}

bool
tool_is_repeatable(const char *name)
{
    return has_flag(name, TOOL_REPEATABLE);
}

Json *
tools_describe(const Brief *brief)
{
    Json *list = json_array();

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        const Tool *t = all[i];
        Json *schema = json_decode(t->parameters, strlen(t->parameters), NULL);

        g_assert(schema != NULL);
        if (brief_has_tool(brief, t->name))
            json_array_append_new(list, json_pack("{s:s, s:s, s:O}", "name", t->name, "description",
                                                  t->description, "parameters", schema));
        json_decref(schema);
    }
    return list;
}

/* ---- one call ---- */

static void
say_unknown(const Brief *brief, const char *name, GString *text)
{
    g_string_printf(text, "error: there is no tool '%s'. Yours are:", name);
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        if (brief_has_tool(brief, all[i]->name))
            g_string_append_printf(text, " %s", all[i]->name);
    }
}

static Json *
decode_arguments(const char *text, GError **error)
{
    bool empty = text == NULL || *text == '\0';
    Json *tree = json_decode(empty ? "{}" : text, empty ? 2 : strlen(text), error);

    if (tree == NULL || json_is_object(tree))
        return tree;
    json_decref(tree);
    err_set(error, ERR_INVALID, "they are not an object");
    return NULL;
}

static void
say_bad_arguments(const Tool *tool, const char *arguments, const GError *why, GString *text)
{
    size_t n = strlen(arguments);
    g_autofree char *begin = g_utf8_make_valid(arguments, (gssize)MIN(n, (size_t)EXCERPT_MAX));

    g_string_printf(
        text,
        "error: the arguments of %s are not usable: %s. You sent %zu bytes that begin with: %s\nThey "
        "must be one JSON object of this schema: %s",
        tool->name, why->message, n, begin, tool->parameters);
}

/* Room is left for what the tool itself wrote at the end. */
static void
bound(GString *text)
{
    if (text->len <= TOOL_RESULT_MAX)
        return;
    g_autofree char *valid = g_utf8_make_valid(text->str, TOOL_RESULT_MAX);

    g_string_printf(text, "%s\n[… cut: %zu bytes in all …]", valid, text->len);
}

static bool
run_tool(const Tool *tool, Work *work, Json *arguments, ToolResult *result, bool *ret_malformed,
         GError **error)
{
    g_autoptr(GError) failed = NULL;

    if (!tool->run(work, arguments, result, &failed)) {
        if (err_kind(failed) == ERR_CANCELLED) {
            g_propagate_error(error, g_steal_pointer(&failed));
            return false;
        }
        *ret_malformed = err_kind(failed) == ERR_INVALID;
        g_string_append_printf(result->text, "%serror: %s", result->text->len > 0 ? "\n" : "",
                               failed->message);
    }
    if (result->text->len == 0)
        g_string_assign(result->text, "(nothing)");
    bound(result->text);
    return true;
}

bool
tool_call(Work *work, const char *name, const char *arguments, ToolResult *result, bool *ret_malformed,
          GError **error)
{
    const Tool *tool = brief_has_tool(work->brief, name) ? find(name) : NULL;
    g_autoptr(GError) why = NULL;

    *ret_malformed = true;
    result->exit_code = -1;
    if (tool == NULL) {
        say_unknown(work->brief, name, result->text);
        return true;
    }
    g_autoptr(Json) tree = decode_arguments(arguments, &why);
    if (tree == NULL) {
        say_bad_arguments(tool, arguments, why, result->text);
        return true;
    }
    *ret_malformed = false;
    return run_tool(tool, work, tree, result, ret_malformed, error);
}

/* ---- how it ends ---- */

void
ending_clear(Ending *ending)
{
    g_free(ending->outcome);
    g_free(ending->reason);
    g_free(ending->summary);
    g_free(ending->verdict);
    json_decref(ending->findings);
    *ending = (Ending){0};
}

Json *
ending_report(const Ending *ending)
{
    return json_pack("{s:s, s:s, s:s*, s:s*, s:O*}", "outcome", ending->outcome, "summary",
                     ending->summary != NULL ? ending->summary : "", "reason", ending->reason, "verdict",
                     ending->verdict, "findings", ending->findings);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/form.h"

#include <signal.h>
#include <string.h>

#include "base/err.h"
#include "box/box.h"

enum { NAME_SHOWN_MAX = 64 };

bool
text_is_printable(const char *text)
{
    g_autofree gunichar *characters = g_utf8_to_ucs4_fast(text, -1, NULL);

    for (const gunichar *c = characters; *c != 0; c++) {
        if (!g_unichar_isprint(*c))
            return false;
    }
    return true;
}

static bool
has_nul(const Json *string)
{
    return strlen(json_string_value(string)) != json_string_length(string);
}

bool
form_read_env(Json *object, char ***ret_env, GError **error)
{
    g_autoptr(GPtrArray) env = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    Json *value;

    if (object == NULL || json_object_size(object) == 0)
        return true;
    if (json_object_size(object) > BOX_ENV_MAX)
        return err_set(error, ERR_INVALID, "'env' has more than %d members", BOX_ENV_MAX);
    json_object_foreach(object, name, value)
    {
        if (name[0] == '\0' || strchr(name, '=') != NULL)
            return err_set(error, ERR_INVALID, "'env' has a name that is empty or has a '=' in it");
        if (!json_is_string(value) || has_nul(value))
            return err_set(error, ERR_INVALID, "the value of '%.*s' in 'env' must be a string",
                           NAME_SHOWN_MAX, name);
        g_ptr_array_add(env, g_strdup_printf("%s=%s", name, json_string_value(value)));
    }
    g_ptr_array_add(env, NULL);
    *ret_env = (char **)g_ptr_array_free(g_steal_pointer(&env), FALSE);
    return true;
}

bool
form_read_words(Json *array, const char *name, char ***ret_words, GError **error)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    size_t i;
    Json *value;

    json_array_foreach(array, i, value)
    {
        if (!json_is_string(value) || has_nul(value))
            return err_set(error, ERR_INVALID, "'%s' must be a list of strings", name);
        g_ptr_array_add(words, g_strdup(json_string_value(value)));
    }
    g_ptr_array_add(words, NULL);
    *ret_words = (char **)g_ptr_array_free(g_steal_pointer(&words), FALSE);
    return true;
}

static int
find_signal(const char *name)
{
    if (g_str_has_prefix(name, "SIG"))
        name += strlen("SIG");
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *known = sigabbrev_np(i);

        if (known != NULL && strcmp(known, name) == 0)
            return i;
    }
    return 0;
}

bool
form_read_signal(Json *value, int *ret_signal, GError **error)
{
    gint64 number = 0;

    if (json_is_integer(value))
        number = json_integer_value(value);
    else if (json_is_string(value) &&
             !g_ascii_string_to_signed(json_string_value(value), 10, 1, SIGRTMIN - 1, &number, NULL))
        number = find_signal(json_string_value(value));
    if (number < 1 || number >= SIGRTMIN)
        return err_set(error, ERR_INVALID, "'signal' must be a name such as SIGTERM, or its number");
    *ret_signal = (int)number;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "door/takeover.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

const DoorKeyVariable door_key_variables[] = {
    {"OPENAI_API_KEY", PROVIDER_OPENAI},
    {"ANTHROPIC_API_KEY", PROVIDER_ANTHROPIC},
    {"OPENROUTER_API_KEY", PROVIDER_OPENROUTER},
    {"GROQ_API_KEY", PROVIDER_GROQ},
    {NULL, PROVIDER_KIND_MAX},
};

char *
door_take_variable(const char *name)
{
    char *place = getenv(name);
    g_autofree char *copy = place != NULL && *place != '\0' ? g_strdup(place) : NULL;

    if (place == NULL)
        return NULL;
    sodium_memzero(place, strlen(place));
    (void)unsetenv(name); /* fails only for a name that is none */
    return g_steal_pointer(&copy);
}

void
door_wipe_text(char *text)
{
    if (text == NULL)
        return;
    sodium_memzero(text, strlen(text));
    g_free(text);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "brain/provider.h"

/* What the gate asks of a provider besides provider.h. */

typedef enum ProviderTape { TAPE_OFF, TAPE_RECORD, TAPE_REPLAY, TAPE_MODE_MAX } ProviderTape;

ProviderTape provider_tape(const Provider *provider);
bool provider_lists_models(const Provider *provider);       /* it names those it has */
const void *provider_key_address(const Provider *provider); /* for tests; NULL: none */
bool provider_is_default(const Provider *provider, Dialect dialect);

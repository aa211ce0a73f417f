/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "http/assets.h"

/* Written by tools/embed from page/ and openapi.json. */
extern const HttpAsset api_assets[];

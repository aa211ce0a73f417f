/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/v3.h"

/* What git is asked about pull requests. */

/* GET of one as .diff or .patch. */
void v3_pull_patches(ApiCall *call, gint64 number, V3Media media);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"
#include "json/json.h"

/* A squad as a file: what `POST /api/v1/squads` takes, as YAML or JSON.  NULL: it has said why. */
Json *squad_file_read(Cli *cli, const char *path);

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "forge/checks-private.h"

enum { US_PER_MS = 1000, KEY_ID_LEN = 16 };

Json *
check_receipt_command(const PlanCommand *command, const CommandResult *result)
{
    bool ran = result->output.text != NULL;

    return json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:i, s:I, s:s?, s:I}", "name", command->name, "run",
                     command->run, "workdir", command->workdir, "setup", command->is_setup, "conclusion",
                     result->conclusion, "reason", result->reason, "exit_code", result->exit_code,
                     "duration_ms", (json_int_t)(result->duration_us / US_PER_MS), "output_sha256",
                     ran ? result->output.sha256 : NULL, "output_bytes", (json_int_t)result->output.bytes);
}

Json *
check_receipt_make(const ReceiptSpec *spec)
{
    char began[CLOCK_ISO_LEN + 1], ended[CLOCK_ISO_LEN + 1];
    g_autofree char *key_id = g_strndup(spec->key, KEY_ID_LEN);

    clock_format_iso(spec->began_us, began);
    clock_format_iso(spec->ended_us, ended);
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:b, s:s, s:s?, s:s?, s:s, s:s?, s:s?, s:s?, "
                     "s:O, s:s, s:s, s:I, s:s}",
                     "version", RECEIPT_VERSION, "suite", spec->suite, "repository", spec->repository,
                     "repository_id", spec->repository_id, "number", (json_int_t)spec->number, "base",
                     spec->base_oid, "head", spec->head_oid, "tree", spec->tree_oid, "tree_compared",
                     spec->compared, "result", spec->result, "problem", spec->problem, "commands_source",
                     spec->source, "commands_from", spec->from_head ? "head" : "base", "template",
                     spec->template, "template_hash", spec->template_hash, "box", spec->box_id, "commands",
                     spec->commands, "began", began, "ended", ended, "tries", (json_int_t)spec->tries,
                     "key_id", key_id);
}

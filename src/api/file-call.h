/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "box/files.h"

enum { FILE_FOLDER_MODE = 0755 }; /* of a folder that is made, where nobody says */

/* A call about one file of a box: what the routes of files share.  It holds the request and
 * the box until it is freed. */
typedef struct FileCall {
    ApiCall *call;
    BoxFileSpec spec;
    char *path; /* bytes, not always text */
} FileCall;

/* NULL: answered already. */
FileCall *file_call_new(ApiCall *call, const char *path);
/* The path is the query's, which has no other parameters than these. */
FileCall *file_call_from_query(ApiCall *call, const char *const *names);
void file_call_free(FileCall *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FileCall, file_call_free)

/* Octal, as in "0644"; false with ERR_INVALID. */
bool file_mode_parse(const char *text, guint *ret_mode, GError **error);

/* {"name", "path", "type", "size", "mode", "uid", "gid", "mtime", "target"?}.  What is not UTF-8
 * is shown with replacements, and then "encoded" is the path as a query takes it. */
Json *file_entry_json(const BoxEntry *entry, const char *path);

/* What a box holds is downloaded, never shown as a page of ours. */
void file_download_headers(HttpRequest *request, const char *path, const char *suffix);

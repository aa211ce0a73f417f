/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* The data folder:
 *
 *     key             the first admin key, for its owner
 *     coop.db         the database
 *     config.yaml     settings
 *     lock            held by the server that uses the folder
 *     run/            sockets
 *     tmp/            uploads and snapshots under way; emptied at start
 *     logs/           output of commands in boxes
 *     repos/          repositories of the forge, each in the folder of its id
 *     templates/      what boxes start from, unless templates.dir names another place
 */

/* Makes what is missing, closed to everybody but its owner. */
bool home_prepare(const char *home, uid_t uid, gid_t gid, GError **error);

/* The same for one folder. */
bool home_make_folder(const char *path, uid_t uid, gid_t gid, GError **error);

/* An fd that holds the lock for as long as it is open; -1 with ERR_CONFLICT when another
 * process has it. */
int home_lock(const char *home, uid_t uid, gid_t gid, GError **error);

/* Whether some server holds the lock right now. */
bool home_is_locked(const char *home);

char *home_control_socket(const char *home);

/* The first admin key.  ERR_NOT_FOUND: none was made yet; ERR_DENIED: it is somebody
 * else's. */
char *home_read_key(const char *home, GError **error);
char *home_key_file(const char *home);

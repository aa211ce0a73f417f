/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/team-private.h"
#include "json/yaml.h"

enum { ROLE_FILE_MAX = 64 * 1024, ROLES_MAX = 200 };

/* Another name of a role. */
typedef struct RoleAlias {
    char *role;
    char *specialization; /* NULL: none */
} RoleAlias;
void role_alias_free(RoleAlias *alias);
void role_free(Role *role);
/* As names of roles are compared. */
char *role_fold(const char *name);

typedef struct RoleFile {
    Role *role;
    GHashTable *aliases; /* name -> specialisation, "" for none */
} RoleFile;
RoleFile *role_file_new(void);
void role_file_free(RoleFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RoleFile, role_file_free)
/* Pure; `where` is for messages. */
RoleFile *role_parse(const char *text, size_t len, const char *where, GError **error);
bool role_node_read(const YamlNode *map, const char *where, RoleFile *file, GError **error);

/* Fills team->roles and team->aliases: those of the program, then over them ROLES_DIR/NAME.yaml; a file with
 * a mistake is told of and left out. */
void roles_load(Team *team);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"

/* Who commits: a name, an e-mail, a signing key that never leaves the server, and what it may do in
 * which repository.  All are in memory; there are few. */
typedef struct Identities Identities;

enum {
    IDENTITY_NAME_MAX = 60,
    IDENTITY_EMAIL_MAX = 120,
    IDENTITIES_MAX = 10000,
    IDENTITY_RIGHTS_MAX = 100,
};

Identities *identities_new(Forge *forge, const ForgeSpec *spec);
void identities_load(Identities *all, DbDone done, void *data);
void identities_free(Identities *all);

typedef enum IdentityAccess { IDENTITY_NONE, IDENTITY_READ, IDENTITY_WRITE } IdentityAccess;

const char *identity_access_name(IdentityAccess access);
bool identity_access_parse(const char *text, IdentityAccess *ret_access); /* "read", "write" */

typedef struct Identity {
    char *id;
    char *name; /* with the prefix of agents */
    char *email;
    char *public_key;              /* "ssh-ed25519 …", as in an authorized_keys file */
    char *agent_id, *squad_id;     /* NULL: none */
    gint64 created_us, revoked_us; /* revoked 0: it holds */
} Identity;

/* By id or by name; revoked ones too.  Borrowed until the loop turns; NULL: none. */
const Identity *identity_find(Forge *forge, const char *id_or_name);
const Identity *identity_of_agent(Forge *forge, const char *agent_id);
IdentityAccess identity_access(Forge *forge, const Identity *identity, const Repo *repo);
Json *identity_json(Forge *forge, const Identity *identity);
Json *identities_json(Forge *forge);

typedef struct IdentityRight {
    const char *repository; /* id; "*": all */
    IdentityAccess access;
} IdentityRight;

typedef struct IdentitySpec {
    const char *name;  /* the prefix is put before it where it lacks */
    const char *email; /* NULL: made of the name */
    const char *agent_id, *squad_id;
    const IdentityRight *rights; /* NULL: may write everywhere */
    size_t n_rights;
    const char *actor;
} IdentitySpec;
/* ERR_CONFLICT: the name is taken. */
void identity_create(Forge *forge, const IdentitySpec *spec, ForgeJsonFunc done, void *data);
/* From now on it signs nothing and its boxes push nothing; what it has signed stays valid. */
void identity_revoke(Forge *forge, const char *id, const char *actor, ForgeJsonFunc done, void *data);

/* The armoured SSH signature (namespace "git") over the bytes.  ERR_DENIED: revoked. */
char *identity_sign(Forge *forge, const Identity *identity, const void *bytes, size_t n, GError **error);
/* For gpg.ssh.allowedSignersFile: a line for each, with the time from which a revoked one is not
 * believed. */
char *identities_allowed_signers(Forge *forge);

-- SPDX-License-Identifier: Apache-2.0

ALTER TABLE sandboxes ADD COLUMN squad_id TEXT;

-- Not 0: what goes to 443 or 80 need not be TLS.
ALTER TABLE door_rules ADD COLUMN plain BIGINT NOT NULL DEFAULT 0;

-- How much boxes may send and fetch, as far as a scope says otherwise than the configuration; scope as in
-- door_rules, limits a JSON object.
CREATE TABLE door_limits (
    scope TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    limits TEXT NOT NULL,
    PRIMARY KEY (scope, scope_id)
);

-- A bare repository in the folder of its id.  number is for faces that want one; folded is
-- 'owner/name' in lower case.  next_number counts issues and pull requests together.  source is
-- the folder or URL it was imported from, upstream the URL it mirrors, both without credentials;
-- default_branch is '' until an import has found it out.
CREATE TABLE repositories (
    id TEXT NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    default_branch TEXT NOT NULL,
    source TEXT,
    upstream TEXT,
    insecure BIGINT NOT NULL,
    state TEXT NOT NULL,
    problem TEXT,
    settings TEXT NOT NULL,
    next_number BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    actor TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    pushed_us BIGINT NOT NULL,
    fetched_us BIGINT NOT NULL,
    packed_us BIGINT NOT NULL
);

-- Where branches and tags were when their move was last told of.
CREATE TABLE repository_refs (
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    oid TEXT NOT NULL,
    moved_us BIGINT NOT NULL,
    PRIMARY KEY (repository_id, name)
);

-- Read-only copies of a repository's objects that boxes use.  tips is a JSON object of branch and
-- commit as they were when it was made.
CREATE TABLE generations (
    id TEXT NOT NULL PRIMARY KEY,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    tips TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    created_us BIGINT NOT NULL
);
CREATE INDEX generations_by_repository ON generations (repository_id, created_us);

-- What a box has of a repository: one row while it lives.  branch is the one it may push to, in
-- full and alone.
CREATE TABLE workspaces (
    box_id TEXT NOT NULL,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    generation_id TEXT,
    identity_id TEXT,
    branch TEXT NOT NULL,
    path TEXT NOT NULL,
    may_force BIGINT NOT NULL,
    created_us BIGINT NOT NULL,
    PRIMARY KEY (box_id, repository_id)
);
CREATE INDEX workspaces_by_generation ON workspaces (generation_id);

-- Who commits.  The secret half of the signing key is sealed to this server and leaves it in no
-- answer.
CREATE TABLE identities (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL,
    public_key TEXT NOT NULL,
    secret_key BLOB NOT NULL,
    agent_id TEXT,
    squad_id TEXT,
    created_us BIGINT NOT NULL,
    revoked_us BIGINT NOT NULL
);

-- right is 'read' or 'write'; repository_id '*': all.
CREATE TABLE identity_rights (
    identity_id TEXT NOT NULL REFERENCES identities (id) ON DELETE CASCADE,
    repository_id TEXT NOT NULL,
    access TEXT NOT NULL,
    PRIMARY KEY (identity_id, repository_id)
);

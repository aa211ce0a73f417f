-- SPDX-License-Identifier: Apache-2.0
-- The common dialect of SQLite and PostgreSQL: see src/store/db.h.

CREATE TABLE schema (
    version BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    applied_us BIGINT NOT NULL
);

-- seq has no gaps; hash covers the hash of the row before.
CREATE TABLE events (
    seq BIGINT PRIMARY KEY,
    at_us BIGINT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    task_id TEXT,
    squad_id TEXT,
    box_id TEXT,
    execution_id TEXT,
    data TEXT NOT NULL,
    hash BLOB NOT NULL
);
CREATE INDEX events_by_task ON events (task_id, seq) WHERE task_id IS NOT NULL;
CREATE INDEX events_by_squad ON events (squad_id, seq) WHERE squad_id IS NOT NULL;
CREATE INDEX events_by_box ON events (box_id, seq) WHERE box_id IS NOT NULL;
CREATE INDEX events_by_execution ON events (execution_id, seq) WHERE execution_id IS NOT NULL;

-- prefix is what lists show of a key; the key itself is nowhere.
CREATE TABLE keys (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    last_used_us BIGINT,
    expires_us BIGINT,
    revoked_us BIGINT
);

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    key_id TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    created_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL
);
CREATE INDEX sessions_by_key ON sessions (key_id);

CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

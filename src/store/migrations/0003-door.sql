-- SPDX-License-Identifier: Apache-2.0

-- What boxes may reach.  scope is server, template, squad or box; scope_id is '' for server, else
-- a name or id.  ports is a JSON array, empty: the usual ones.
CREATE TABLE door_rules (
    id TEXT NOT NULL PRIMARY KEY,
    scope TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    action TEXT NOT NULL,
    pattern TEXT NOT NULL,
    ports TEXT NOT NULL,
    inside BIGINT NOT NULL,
    upgrade BIGINT NOT NULL,
    actor TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    UNIQUE (scope, scope_id, pattern)
);

CREATE TABLE door_modes (
    scope TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    PRIMARY KEY (scope, scope_id)
);

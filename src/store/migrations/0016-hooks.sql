-- SPDX-License-Identifier: Apache-2.0

-- Hooks are of a repository, of a squad, or of a task that a chat asked for: then they are where its progress
-- is answered to, url is empty, and secret is that address.  The tables are made anew, since SQLite can
-- neither drop a NOT NULL nor add a CHECK; deliveries first find their new hooks, so that the old ones
-- take none with them.
CREATE TABLE hooks_made (
    id BIGINT NOT NULL PRIMARY KEY,
    repository_id TEXT REFERENCES repositories (id) ON DELETE CASCADE,
    squad_id TEXT REFERENCES squads (id) ON DELETE CASCADE,
    task_id TEXT UNIQUE REFERENCES tasks (id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    secret BLOB,
    events TEXT NOT NULL,
    active BIGINT NOT NULL,
    since_seq BIGINT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    CHECK (CASE WHEN repository_id IS NULL THEN 0 ELSE 1 END + CASE WHEN squad_id IS NULL THEN 0 ELSE 1 END
        + CASE WHEN task_id IS NULL THEN 0 ELSE 1 END = 1)
);
INSERT INTO hooks_made (id, repository_id, url, secret, events, active, since_seq, created_us, updated_us)
    SELECT id, repository_id, url, secret, events, active, since_seq, created_us, updated_us FROM hooks;

CREATE TABLE deliveries_made (
    id BIGINT NOT NULL PRIMARY KEY,
    hook_id BIGINT NOT NULL REFERENCES hooks_made (id) ON DELETE CASCADE,
    seq BIGINT,
    guid TEXT NOT NULL,
    event TEXT NOT NULL,
    action TEXT,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    status BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    next_us BIGINT NOT NULL,
    problem TEXT,
    created_us BIGINT NOT NULL,
    ended_us BIGINT NOT NULL,
    UNIQUE (hook_id, seq, event)
);
INSERT INTO deliveries_made (id, hook_id, seq, guid, event, action, body, state, status, tries, next_us,
    problem, created_us, ended_us)
    SELECT id, hook_id, seq, guid, event, action, body, state, status, tries, next_us, problem, created_us,
    ended_us FROM deliveries;

DROP TABLE deliveries;
DROP TABLE hooks;
ALTER TABLE hooks_made RENAME TO hooks;
ALTER TABLE deliveries_made RENAME TO deliveries;
CREATE INDEX hooks_by_repository ON hooks (repository_id);
CREATE INDEX hooks_by_squad ON hooks (squad_id);
CREATE INDEX deliveries_by_state ON deliveries (state, next_us);
CREATE INDEX deliveries_by_hook ON deliveries (hook_id, id);
-- Whether one waits for another of its hook.
CREATE INDEX deliveries_in_order ON deliveries (state, hook_id, id);

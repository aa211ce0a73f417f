-- SPDX-License-Identifier: Apache-2.0

-- A place that speaks GitHub's API.  secret is sealed to this server.  budget is a JSON object:
-- what the last answers said of the rate.
CREATE TABLE github_accounts (
    base_url TEXT NOT NULL PRIMARY KEY,
    login TEXT NOT NULL,
    secret BLOB NOT NULL,
    webhook_secret BLOB,
    scopes TEXT NOT NULL,
    expires_us BIGINT NOT NULL,
    budget TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    checked_us BIGINT NOT NULL
);

-- What is to be done there, once.  state: waiting, sent, done, failed; key makes a second asking
-- for the same thing the first one.
CREATE TABLE upstream_work (
    id BIGINT NOT NULL PRIMARY KEY,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    tries BIGINT NOT NULL,
    next_us BIGINT NOT NULL,
    answer TEXT,
    problem TEXT,
    created_us BIGINT NOT NULL
);
CREATE INDEX upstream_work_by_state ON upstream_work (state, next_us);

-- Which delivered events were taken, so that one that comes twice counts once.
CREATE TABLE github_deliveries (
    guid TEXT NOT NULL PRIMARY KEY,
    event TEXT NOT NULL,
    received_us BIGINT NOT NULL
);

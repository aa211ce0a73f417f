-- SPDX-License-Identifier: Apache-2.0

-- What was found out about a commit.  seen_by is 'coop' for what the server ran itself in a clean
-- box, 'claimed' for what someone said.  status: queued, in_progress, completed.
CREATE TABLE checks (
    id BIGINT NOT NULL PRIMARY KEY,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    suite TEXT,
    name TEXT NOT NULL,
    head_oid TEXT NOT NULL,
    seen_by TEXT NOT NULL,
    author TEXT NOT NULL,
    status TEXT NOT NULL,
    conclusion TEXT,
    external_id TEXT,
    details_url TEXT,
    title TEXT,
    summary TEXT,
    output TEXT,
    box_id TEXT,
    command TEXT,
    exit_code BIGINT,
    started_us BIGINT NOT NULL,
    completed_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL
);
CREATE INDEX checks_by_commit ON checks (repository_id, head_oid, id);

-- The older form of the same: one line for each context.
CREATE TABLE statuses (
    id BIGINT NOT NULL PRIMARY KEY,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    oid TEXT NOT NULL,
    context TEXT NOT NULL,
    state TEXT NOT NULL,
    description TEXT,
    target_url TEXT,
    author TEXT NOT NULL,
    created_us BIGINT NOT NULL
);
CREATE INDEX statuses_by_commit ON statuses (repository_id, oid, id);

-- One run of all of a repository's commands on base + patch.  tree_oid is what was checked.
-- state: queued, running, passed, failed, error.  receipt is the signed text.
CREATE TABLE check_suites (
    id TEXT NOT NULL PRIMARY KEY,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    number BIGINT,
    base_oid TEXT NOT NULL,
    head_oid TEXT NOT NULL,
    tree_oid TEXT NOT NULL,
    state TEXT NOT NULL,
    problem TEXT,
    box_id TEXT,
    tries BIGINT NOT NULL,
    receipt TEXT,
    created_us BIGINT NOT NULL,
    ended_us BIGINT NOT NULL
);
CREATE INDEX check_suites_by_state ON check_suites (state);
CREATE INDEX check_suites_by_tree ON check_suites (repository_id, tree_oid);

-- The queue of a target branch, oldest first.  state: waiting, merging, checking, landing, landed,
-- failed, conflicted, cancelled.  landing_oid is written before the branch is moved to it, so that
-- whoever finds the row knows what was about to happen.
CREATE TABLE merges (
    id BIGINT NOT NULL PRIMARY KEY,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    target TEXT NOT NULL,
    method TEXT NOT NULL,
    head_oid TEXT NOT NULL,
    title TEXT,
    message TEXT,
    actor TEXT NOT NULL,
    state TEXT NOT NULL,
    problem TEXT,
    target_oid TEXT,
    landing_oid TEXT,
    suite_id TEXT,
    conflict TEXT,
    created_us BIGINT NOT NULL,
    ended_us BIGINT NOT NULL
);
CREATE INDEX merges_by_target ON merges (repository_id, target, state, id);

-- SPDX-License-Identifier: Apache-2.0

-- The last number that was given away, for each table: none comes back after a removal.
CREATE TABLE forge_ids (
    name TEXT NOT NULL PRIMARY KEY,
    last BIGINT NOT NULL
);

-- Issues and pull requests share their numbers.  kind is 'issue' or 'pull'; state 'open' or
-- 'closed'.  head, base and what follows are of pull requests only.  author is an actor.  based_us is
-- when base became what it is; ahead, behind and conflicts are true for compared_head and
-- compared_base.
CREATE TABLE threads (
    id BIGINT NOT NULL PRIMARY KEY,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    state_reason TEXT,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    author TEXT NOT NULL,
    reviewers TEXT NOT NULL,
    task_id TEXT,
    head TEXT,
    base TEXT,
    head_oid TEXT,
    base_oid TEXT,
    based_us BIGINT NOT NULL,
    compared_head TEXT,
    compared_base TEXT,
    ahead BIGINT NOT NULL,
    behind BIGINT NOT NULL,
    conflicts BIGINT NOT NULL,
    draft BIGINT NOT NULL,
    merged BIGINT NOT NULL,
    merge_oid TEXT,
    merge_method TEXT,
    merged_by TEXT,
    receipt TEXT,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    closed_us BIGINT NOT NULL,
    merged_us BIGINT NOT NULL,
    UNIQUE (repository_id, number)
);
CREATE INDEX threads_by_state ON threads (repository_id, kind, state, updated_us);
CREATE INDEX threads_by_head ON threads (repository_id, head);

-- marker names a comment that is written anew in its place, such as one on progress; NULL: none.
CREATE TABLE comments (
    id BIGINT NOT NULL PRIMARY KEY,
    thread_id BIGINT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    marker TEXT,
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    UNIQUE (thread_id, marker)
);

-- state: PENDING, COMMENTED, APPROVED, CHANGES_REQUESTED, DISMISSED.
CREATE TABLE reviews (
    id BIGINT NOT NULL PRIMARY KEY,
    thread_id BIGINT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    author TEXT NOT NULL,
    state TEXT NOT NULL,
    body TEXT NOT NULL,
    commit_oid TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    submitted_us BIGINT NOT NULL
);
CREATE INDEX reviews_by_thread ON reviews (thread_id, id);

-- On a line; in_reply_to names the first of its thread.
CREATE TABLE review_comments (
    id BIGINT NOT NULL PRIMARY KEY,
    thread_id BIGINT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    review_id BIGINT,
    in_reply_to BIGINT,
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    path TEXT NOT NULL,
    side TEXT NOT NULL,
    line BIGINT NOT NULL,
    start_line BIGINT,
    commit_oid TEXT NOT NULL,
    original_oid TEXT NOT NULL,
    resolved BIGINT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL
);
CREATE INDEX review_comments_by_thread ON review_comments (thread_id, id);

-- folded is the name in lower case.
CREATE TABLE labels (
    id BIGINT NOT NULL PRIMARY KEY,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    color TEXT NOT NULL,
    description TEXT NOT NULL,
    UNIQUE (repository_id, folded)
);

CREATE TABLE thread_labels (
    thread_id BIGINT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    label_id BIGINT NOT NULL REFERENCES labels (id) ON DELETE CASCADE,
    PRIMARY KEY (thread_id, label_id)
);
CREATE INDEX thread_labels_by_label ON thread_labels (label_id);

-- Where events of a repository are posted to: those behind since_seq.  secret is sealed to this
-- server.
CREATE TABLE hooks (
    id BIGINT NOT NULL PRIMARY KEY,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    secret BLOB,
    events TEXT NOT NULL,
    active BIGINT NOT NULL,
    since_seq BIGINT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL
);

-- seq is of the event it tells of; NULL: it was asked for.  state: waiting, done, failed.
CREATE TABLE deliveries (
    id BIGINT NOT NULL PRIMARY KEY,
    hook_id BIGINT NOT NULL REFERENCES hooks (id) ON DELETE CASCADE,
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
CREATE INDEX deliveries_by_state ON deliveries (state, next_us);
CREATE INDEX deliveries_by_hook ON deliveries (hook_id, id);

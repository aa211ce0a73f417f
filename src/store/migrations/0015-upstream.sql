-- SPDX-License-Identifier: Apache-2.0

-- The key of the row whose end this one waits for, and whose answer it needs.
ALTER TABLE upstream_work ADD COLUMN after_key TEXT;

-- Which row of ours is which thing there, whoever made it first.  kind: comment, review, line.
CREATE TABLE upstream_items (
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    upstream_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    PRIMARY KEY (repository_id, kind, upstream_id)
);
CREATE INDEX upstream_items_by_id ON upstream_items (repository_id, kind, id);

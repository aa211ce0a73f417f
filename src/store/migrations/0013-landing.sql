-- SPDX-License-Identifier: Apache-2.0

-- The states of merges are queued, building, checking, landing; landed, conflict, failed, cancelled.
-- reason is a word for why it did not land.  pinned: head_oid is the one that was expected.  The commit's
-- author is written down so that building it again gives the same object.  candidate_oid is what is being
-- checked.  leftover: what is still to be removed, 1 its own ref, 2 the branch that was merged.
ALTER TABLE merges ADD COLUMN reason TEXT;
ALTER TABLE merges ADD COLUMN pinned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merges ADD COLUMN author_name TEXT NOT NULL DEFAULT '';
ALTER TABLE merges ADD COLUMN author_email TEXT NOT NULL DEFAULT '';
ALTER TABLE merges ADD COLUMN candidate_oid TEXT;
ALTER TABLE merges ADD COLUMN tries BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merges ADD COLUMN leftover BIGINT NOT NULL DEFAULT 0;
CREATE INDEX merges_by_state ON merges (state);
CREATE INDEX merges_by_number ON merges (repository_id, number);

-- Who moved it last.
ALTER TABLE repository_refs ADD COLUMN actor TEXT NOT NULL DEFAULT 'coop';

-- SPDX-License-Identifier: Apache-2.0

-- Of pull requests, true for compared_head: from_oid is what the files of the head are compared with,
-- the rest is what lies between the two.  Where nothing lies between head and base any more, they are
-- what they were.  changed_files below 0: git could not tell.
ALTER TABLE threads ADD COLUMN from_oid TEXT;
ALTER TABLE threads ADD COLUMN commits BIGINT NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN changed_files BIGINT NOT NULL DEFAULT -1;
ALTER TABLE threads ADD COLUMN additions BIGINT NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN deletions BIGINT NOT NULL DEFAULT 0;
UPDATE threads SET compared_head = NULL WHERE state = 'open';

-- SPDX-License-Identifier: Apache-2.0

-- Who may read it beside admins: the key of this id, '*' all who may read, '' nobody, as with everything that
-- was written before there was a column for it.
ALTER TABLE events ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX events_by_owner ON events (owner, seq) WHERE owner <> '';

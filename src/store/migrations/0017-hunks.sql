-- SPDX-License-Identifier: Apache-2.0

-- What a comment on a line was made on: the hunk up to that line, or nothing.
ALTER TABLE review_comments ADD COLUMN diff_hunk TEXT NOT NULL DEFAULT '';

-- SPDX-License-Identifier: Apache-2.0

-- purpose: 'pull' where the state of a pull request asked for it, and takes it back; else 'asked'.
-- source: where the commands came from.  template: name and hash of what the box was.
ALTER TABLE check_suites ADD COLUMN purpose TEXT NOT NULL DEFAULT 'asked';
ALTER TABLE check_suites ADD COLUMN actor TEXT NOT NULL DEFAULT 'coop';
ALTER TABLE check_suites ADD COLUMN source TEXT;
ALTER TABLE check_suites ADD COLUMN template TEXT;
ALTER TABLE check_suites ADD COLUMN began_us BIGINT NOT NULL DEFAULT 0;
CREATE INDEX check_suites_by_number ON check_suites (repository_id, number, created_us);

-- Of what Coop ran: how it ended, and a digest over all of its output, of which `output` has a part.
-- tests is a JSON object: what a test runner reported.
ALTER TABLE checks ADD COLUMN reason TEXT;
ALTER TABLE checks ADD COLUMN output_sha256 TEXT;
ALTER TABLE checks ADD COLUMN output_bytes BIGINT;
ALTER TABLE checks ADD COLUMN tests TEXT;
CREATE INDEX checks_by_suite ON checks (suite);

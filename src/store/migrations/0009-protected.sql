-- SPDX-License-Identifier: Apache-2.0

-- An admin has given the box this branch although it is protected.
ALTER TABLE workspaces ADD COLUMN may_advance BIGINT NOT NULL DEFAULT 0;

-- SPDX-License-Identifier: Apache-2.0

-- Its files are not all there: a clone goes on, or was cut short.
ALTER TABLE workspaces ADD COLUMN cloning BIGINT NOT NULL DEFAULT 0;

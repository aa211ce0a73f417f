-- SPDX-License-Identifier: Apache-2.0

-- id is the row's; e2b_id is the box's own and is what other tables and events name.  Times
-- that end in _mono_us are of the clock that never jumps and mean something only until the
-- machine is started anew.  env is emptied when the box ends.
CREATE TABLE sandboxes (
    id TEXT NOT NULL PRIMARY KEY,
    e2b_id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    name TEXT,
    template TEXT NOT NULL,
    template_hash TEXT NOT NULL,
    agent_id TEXT,
    task_id TEXT,
    repo_url TEXT,
    lease TEXT,
    metadata TEXT NOT NULL,
    env TEXT NOT NULL,
    run_user TEXT NOT NULL,
    workdir TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    memory_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    inodes BIGINT NOT NULL,
    pids BIGINT NOT NULL,
    cpu_milli BIGINT NOT NULL,
    degraded BIGINT NOT NULL,
    from_pool BIGINT NOT NULL,
    keep BIGINT NOT NULL,
    lifetime_ms BIGINT NOT NULL,
    idle_ms BIGINT NOT NULL,
    born_mono_us BIGINT NOT NULL,
    deadline_mono_us BIGINT NOT NULL,
    executions BIGINT NOT NULL,
    last_run BIGINT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    last_used_us BIGINT NOT NULL,
    ended_us BIGINT NOT NULL
);
CREATE INDEX sandboxes_by_end ON sandboxes (ended_us);
CREATE INDEX sandboxes_by_owner ON sandboxes (owner, ended_us);

-- box_id is an e2b_id.  argv is a JSON array; command is the line as people read it.
CREATE TABLE commands (
    box_id TEXT NOT NULL REFERENCES sandboxes (e2b_id) ON DELETE CASCADE,
    run BIGINT NOT NULL,
    command TEXT NOT NULL,
    argv TEXT NOT NULL,
    run_user TEXT NOT NULL,
    cwd TEXT NOT NULL,
    tty BIGINT NOT NULL,
    actor TEXT NOT NULL,
    started_us BIGINT NOT NULL,
    ended_us BIGINT NOT NULL,
    reason TEXT,
    code BIGINT NOT NULL,
    exit_code BIGINT NOT NULL,
    out_bytes BIGINT NOT NULL,
    err_bytes BIGINT NOT NULL,
    duration_us BIGINT NOT NULL,
    cpu_us BIGINT NOT NULL,
    max_rss_bytes BIGINT NOT NULL,
    tests TEXT,
    PRIMARY KEY (box_id, run)
);
CREATE INDEX commands_open ON commands (box_id) WHERE ended_us = 0;

-- SPDX-License-Identifier: Apache-2.0

-- config: what a squad decides for its tasks (team/squad.h); user_id is the key that made it, '' the
-- machine's owner.  repository_id: where tasks go that name none.
CREATE TABLE squads (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT 'active',
    config TEXT NOT NULL DEFAULT '{}',
    repository_id TEXT,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    UNIQUE (user_id, name)
);

-- role is free; archetype is coder, reviewer, tester or planner, found by the table of aliases.
-- sandbox_id, current_task_id and git_context tell what it works on.
CREATE TABLE squad_members (
    id TEXT NOT NULL PRIMARY KEY,
    squad_id TEXT NOT NULL REFERENCES squads (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    archetype TEXT NOT NULL,
    specialization TEXT,
    llm_provider TEXT NOT NULL DEFAULT 'openai',
    llm_model TEXT NOT NULL DEFAULT 'gpt-4',
    system_prompt TEXT,
    adapter TEXT NOT NULL DEFAULT 'coop',
    template TEXT,
    config TEXT NOT NULL DEFAULT '{}',
    is_active BIGINT NOT NULL DEFAULT 1,
    identity_id TEXT,
    sandbox_id TEXT,
    current_task_id TEXT,
    git_context TEXT,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    UNIQUE (squad_id, name)
);

-- number is the short name, which branches carry.  policy is the squad's config with what the request
-- says, as it was when the task was made.  file: what the repository asks of the team (team/repo-file.h), as it was
-- when the task began; NULL: not read yet.  state: see team/task.h.  wake_us: nothing is tried before
-- that.  ending: {state, reason, actor} while it is being stopped.
CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL UNIQUE,
    squad_id TEXT NOT NULL REFERENCES squads (id),
    owner TEXT NOT NULL,
    actor TEXT NOT NULL,
    source TEXT NOT NULL,
    dedupe TEXT UNIQUE,
    title TEXT NOT NULL,
    request TEXT NOT NULL,
    repository_id TEXT,
    base_branch TEXT,
    base_oid TEXT,
    branch TEXT,
    pull_number BIGINT,
    pull_url TEXT,
    policy TEXT NOT NULL DEFAULT '{}',
    file TEXT,
    plan_id TEXT,
    state TEXT NOT NULL,
    blocked_from TEXT,
    problem TEXT,
    rung TEXT,
    round BIGINT NOT NULL DEFAULT 0,
    tries BIGINT NOT NULL DEFAULT 0,
    wake_us BIGINT NOT NULL DEFAULT 0,
    ending TEXT,
    merge_id BIGINT,
    report TEXT,
    created_us BIGINT NOT NULL,
    started_us BIGINT NOT NULL DEFAULT 0,
    ended_us BIGINT NOT NULL DEFAULT 0,
    updated_us BIGINT NOT NULL
);
CREATE INDEX tasks_by_state ON tasks (state, number);
CREATE INDEX tasks_by_squad ON tasks (squad_id, number);

-- producer: brain, council, person; one that began as a council's and fell back is a brain's.  state: asked,
-- draft, approved, replaced, failed.  body: team/plan.h.  council: how it came about (team/council.h), or NULL.
CREATE TABLE plans (
    id TEXT NOT NULL PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    producer TEXT NOT NULL,
    state TEXT NOT NULL,
    body TEXT,
    council TEXT,
    problem TEXT,
    actor TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    UNIQUE (task_id, version)
);

-- One answer.  phase: brain, brain-repair; of a council opinion, ranking, synthesis, repair.  seat: from 1; 0 is the
-- one brain, or the chairman.  state: answered, malformed, silent.  text: what was said.  body: what was read of
-- it (a plan; {plan, dissent}; the seats in their order, best first), else NULL.
CREATE TABLE plan_voices (
    plan_id TEXT NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
    phase TEXT NOT NULL,
    seat BIGINT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    text TEXT,
    body TEXT,
    problem TEXT,
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    duration_us BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (plan_id, phase, seat)
);

-- A feature, or what a review, checks or a conflict asked for.  kind: work, fix, resolve.  state: waiting,
-- working, joining, done, failed, cancelled.  conflict: the bundle of merge.h that has to be resolved, or
-- NULL.  evidence: what Coop has seen of its tests.
CREATE TABLE steps (
    id TEXT NOT NULL PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    plan_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    kind TEXT NOT NULL DEFAULT 'work',
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    feature TEXT,
    details TEXT NOT NULL DEFAULT '',
    role TEXT NOT NULL,
    specialization TEXT,
    depends TEXT NOT NULL DEFAULT '[]',
    files TEXT NOT NULL DEFAULT '[]',
    checks TEXT NOT NULL DEFAULT '[]',
    state TEXT NOT NULL,
    member_id TEXT,
    branch TEXT,
    start_oid TEXT,
    head_oid TEXT,
    joined_oid TEXT,
    tries BIGINT NOT NULL DEFAULT 0,
    joins BIGINT NOT NULL DEFAULT 0,
    wake_us BIGINT NOT NULL DEFAULT 0,
    problem TEXT,
    conflict TEXT,
    evidence TEXT,
    started_us BIGINT NOT NULL DEFAULT 0,
    ended_us BIGINT NOT NULL DEFAULT 0,
    UNIQUE (task_id, n)
);

-- One agent's piece of work: what the API calls an agent.  agent is its name, which models and logs
-- see.  kind: work, fix, resolve, test, review.  state: see team/crew.h.  brief: what it was told beyond
-- the plan, {goal, feedback, bundle, checks: [{name, run}]}, where no checks mean the repository's own.
-- git_branch is its branch, made of git_base where there is none.  report: what it says itself.  result: what Coop has seen.
-- repository_id: NULL is the task's.  seen: bytes of its output that became events.
CREATE TABLE task_executions (
    id TEXT NOT NULL PRIMARY KEY,
    agent TEXT NOT NULL UNIQUE,
    task_id TEXT REFERENCES tasks (id) ON DELETE CASCADE,
    step_id TEXT,
    squad_id TEXT,
    member_id TEXT,
    repository_id TEXT,
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    role TEXT NOT NULL,
    archetype TEXT NOT NULL,
    specialization TEXT,
    adapter TEXT NOT NULL,
    template TEXT,
    provider TEXT,
    model TEXT,
    lease TEXT NOT NULL,
    box_id TEXT,
    run BIGINT,
    workdir TEXT,
    seen BIGINT NOT NULL DEFAULT 0,
    state TEXT NOT NULL,
    problem TEXT,
    try BIGINT NOT NULL,
    brief TEXT NOT NULL DEFAULT '{}',
    report TEXT,
    result TEXT,
    git_branch TEXT,
    git_base TEXT,
    pull_request_url TEXT,
    commit_history TEXT NOT NULL DEFAULT '[]',
    review_id BIGINT,
    turns BIGINT NOT NULL DEFAULT 0,
    tools BIGINT NOT NULL DEFAULT 0,
    created_us BIGINT NOT NULL,
    started_us BIGINT NOT NULL DEFAULT 0,
    first_call_us BIGINT NOT NULL DEFAULT 0,
    ended_us BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX task_executions_by_task ON task_executions (task_id, created_us);
CREATE INDEX task_executions_by_state ON task_executions (state);
CREATE INDEX task_executions_by_box ON task_executions (box_id);

CREATE TABLE questions (
    id TEXT NOT NULL PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    execution_id TEXT,
    step_id TEXT,
    text TEXT NOT NULL,
    options TEXT NOT NULL DEFAULT '[]',
    state TEXT NOT NULL,
    answer TEXT,
    answered_by TEXT,
    created_us BIGINT NOT NULL,
    answered_us BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX questions_by_task ON questions (task_id, created_us);

-- What is left of boxes that failed: an archive below the home, or the box itself, paused.
CREATE TABLE kept (
    id TEXT NOT NULL PRIMARY KEY,
    task_id TEXT,
    execution_id TEXT,
    box_id TEXT,
    kind TEXT NOT NULL,
    path TEXT,
    bytes BIGINT NOT NULL DEFAULT 0,
    created_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL
);

-- version counts changes of plan and assignments; sources: whose word each of their members is.
CREATE TABLE rooms (
    id TEXT NOT NULL PRIMARY KEY,
    task_id TEXT UNIQUE REFERENCES tasks (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    plan TEXT NOT NULL DEFAULT '{}',
    assignments TEXT NOT NULL DEFAULT '{}',
    sources TEXT NOT NULL DEFAULT '{}',
    version BIGINT NOT NULL DEFAULT 0,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL
);

-- author is an actor; seen_by tells whose word it is: agent, coop or person.
CREATE TABLE room_messages (
    room_id TEXT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    n BIGINT NOT NULL,
    author TEXT NOT NULL,
    author_name TEXT NOT NULL,
    execution_id TEXT,
    seen_by TEXT NOT NULL,
    priority BIGINT NOT NULL,
    kind TEXT NOT NULL,
    recipient TEXT,
    text TEXT NOT NULL,
    data TEXT,
    created_us BIGINT NOT NULL,
    PRIMARY KEY (room_id, n)
);

CREATE TABLE knowledge (
    id TEXT NOT NULL PRIMARY KEY,
    room_id TEXT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    evidence TEXT,
    author TEXT NOT NULL,
    author_name TEXT NOT NULL,
    seen_by TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL,
    UNIQUE (room_id, name)
);

-- What events say about how well things go, one row a measure: n counted, `good` of them as they should be, and a value
-- (milliseconds or bytes).  class: of errors.  The rows follow from the events up to the setting 'facts.seq', and stay
-- when those have gone.
CREATE TABLE facts (
    seq BIGINT NOT NULL,
    name TEXT NOT NULL,
    class TEXT NOT NULL DEFAULT '',
    at_us BIGINT NOT NULL,
    n BIGINT NOT NULL,
    good BIGINT NOT NULL,
    value BIGINT NOT NULL,
    owner TEXT NOT NULL,
    squad_id TEXT NOT NULL,
    repository_id TEXT NOT NULL,
    PRIMARY KEY (seq, name, class)
);
CREATE INDEX facts_by_time ON facts (at_us, name, class, n, good, value);
CREATE INDEX facts_by_value ON facts (name, value, at_us);

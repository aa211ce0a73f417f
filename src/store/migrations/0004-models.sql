-- SPDX-License-Identifier: Apache-2.0

-- Where models answer.  provider is a JSON object; sealed is a key that only the door can open, ''
-- where there is none; script is the text of a scripted one, else ''.
CREATE TABLE providers (
    name TEXT NOT NULL PRIMARY KEY,
    provider TEXT NOT NULL,
    sealed TEXT NOT NULL,
    script TEXT NOT NULL,
    actor TEXT NOT NULL,
    created_us BIGINT NOT NULL
);

-- scope is 'all', or 'box:', 'agent:', 'task:' or 'squad:' with an id; bounds is a JSON object.
CREATE TABLE budgets (
    scope TEXT NOT NULL PRIMARY KEY,
    bounds TEXT NOT NULL,
    actor TEXT NOT NULL,
    created_us BIGINT NOT NULL
);

-- Model calls, summed for each hour; '' in an id: none.
CREATE TABLE usage (
    hour_us BIGINT NOT NULL,
    box_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    squad_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    calls BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    unpriced BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    microusd BIGINT NOT NULL,
    latency_ms BIGINT NOT NULL,
    PRIMARY KEY (hour_us, box_id, agent_id, task_id, squad_id, provider, model)
);
CREATE INDEX usage_by_box ON usage (box_id);
CREATE INDEX usage_by_task ON usage (task_id);
CREATE INDEX usage_by_squad ON usage (squad_id);

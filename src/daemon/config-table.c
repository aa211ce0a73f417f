/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "daemon/config.h"
#include "daemon/setting.h"

#define KIB (1024)
#define MIB (1024 * 1024)
#define GIB (G_GINT64_CONSTANT(1024) * 1024 * 1024)
#define SECOND (1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (G_GINT64_CONSTANT(24) * HOUR)

#define FIELD(member) .field = offsetof(Config, member)
#define DERIVED .field = SETTING_NO_FIELD /* config.c works the member out */
#define LATER(part) .field = SETTING_NO_FIELD, .later = (part)
#define ENV(...) .env = {{__VA_ARGS__}}
#define TWO_ENVS(first, second) .env = {{first}, {second}}

/* clang-format off: one row is easier to read when its parts stand in the same places. */
const Setting settings[] = {
    {"home", SETTING_PATH, FIELD(home), .flag = "home", .flag_value = "FOLDER", .help = "data folder"},

    {"http.listen", SETTING_ADDRESSES, "127.0.0.1:8003,[::1]:8003", FIELD(http.listen), ENV("COOP_LISTEN"),
     .flag = "listen", .flag_value = "ADDR:PORT",
     .help = "addresses to listen on, in place of the default ones"},
    {"http.compat", SETTING_BOOL, "false", FIELD(http.compat), .flag = "compat",
     .help = "listen on the ports 8000, 8002 and 8004 as well"},
    {"http.allowed_hosts", SETTING_HOSTS, "", FIELD(http.allowed_hosts), .flag = "allow-host",
     .flag_value = "HOST", .help = "further names under which browsers may call this server"},
    {"http.allowed_origins", SETTING_ORIGINS, "", FIELD(http.allowed_origins), .flag = "allow-origin",
     .flag_value = "ORIGIN", .help = "further sites whose pages may call this server"},
    {"http.max_connections", SETTING_INT, "16384", 16, 1000000, FIELD(http.max_connections),
     .help = "connections open at a time"},
    {"http.header_timeout", SETTING_DURATION, "10s", 100, 10 * MINUTE, FIELD(http.header_timeout_ms),
     .help = "time for the head of a request to arrive"},
    {"http.idle_timeout", SETTING_DURATION, "60s", 100, DAY, FIELD(http.idle_timeout_ms),
     .help = "time a connection may wait for its next request"},
    {"http.body_limit", SETTING_SIZE, "8MiB", KIB, GIB, FIELD(http.body_limit),
     .help = "largest body of a call; uploads that are streamed have limits of their own"},
    {"http.rate_per_key", SETTING_INT, "500", 1, 1000000, FIELD(http.rate_per_key),
     .help = "calls a second for each key"},
    {"http.rate_burst", SETTING_INT, "2000", 1, 10000000, FIELD(http.rate_burst),
     .help = "calls that a key which was quiet may make at once"},
    {"http.streams_per_key", SETTING_INT, "1000", 1, 1000000, FIELD(http.streams_per_key),
     .help = "event streams open at a time for each key"},

    {"server.url", SETTING_URL, DERIVED, .schemes = "http,https", ENV("SANDBOX_SERVICE_URL"),
     .flag = "server", .flag_value = "URL",
     .help = "where commands find the server; from http.listen if not set"},
    {"server.key", SETTING_API_KEY, FIELD(server_key), ENV("COOP_API_KEY"), .secret = true,
     .help = "API key of commands; auth.key or the first admin key if not set"},
    {"auth.key", SETTING_API_KEY, FIELD(key), ENV("E2B_API_KEY"), .secret = true,
     .help = "API key of clients"},
    {"events.retention", SETTING_DURATION, "30d", SECOND, 3650 * DAY, FIELD(events_retention_ms),
     .help = "how long events are kept"},
    {"log.level", SETTING_LOG_LEVELS, "info", FIELD(log_levels), ENV("COOP_LOG"), .flag = "log",
     .flag_value = "LEVELS", .help = "log levels, such as info,http=debug"},
    {"database.url", SETTING_DATABASE, "sqlite:coop.db", DERIVED, ENV("DATABASE_URL"),
     .help = "sqlite:FILE (from the data folder), or a PostgreSQL URL"},

    {"redis.url", SETTING_URL, LATER("Redis"), .schemes = "redis,rediss", ENV("REDIS_URL"),
     .help = "Redis server"},
    {"nats.url", SETTING_URL, LATER("NATS"), .schemes = "nats,tls,ws,wss", ENV("NATS_URL"),
     .help = "NATS server"},
    {"rooms.persistence", SETTING_URL, LATER("rooms"), .schemes = "redis,rediss", ENV("ROOM_PERSISTENCE"),
     .help = "where rooms are kept"},
    {"rooms.websocket_url", SETTING_URL, LATER("rooms"), .schemes = "ws,wss", ENV("WEBSOCKET_URL"),
     .help = "where agents find their room"},
    {"board.api_url", SETTING_URL, LATER("the board"), .schemes = "http,https", ENV("NEXT_PUBLIC_API_URL"),
     .help = "where the board finds the API"},
    {"board.events_url", SETTING_URL, LATER("the board"), .schemes = "http,https", ENV("NEXT_PUBLIC_SSE_URL"),
     .help = "where the board finds the events"},

    {"boxes.enabled", SETTING_BOOL, "true", FIELD(boxes.enabled),
     .help = "make boxes; without, there is no keeper and nothing is built"},
    {"boxes.lifetime", SETTING_DURATION, "1h", SECOND, DAY, FIELD(boxes.lifetime_ms),
     ENV("MAX_SANDBOX_LIFETIME", UNIT_MS), .help = "how long a box lives unless it is renewed"},
    {"boxes.idle_timeout", SETTING_DURATION, "1h", SECOND, DAY, FIELD(boxes.idle_ms),
     .help = "how long a box lives that nobody uses"},
    {"boxes.keep", SETTING_DURATION, "1d", 0, 3650 * DAY, FIELD(boxes.keep_ms),
     .help = "how long output of ended boxes, and boxes kept for a look, stay"},
    {"boxes.cpu_milli", SETTING_INT, "2000", 10, 1024 * 1000, FIELD(boxes.limits.cpu_milli),
     .help = "thousandths of a core for a box that names none"},
    {"boxes.memory", SETTING_SIZE, "4GiB", 8 * MIB, 16384 * GIB, FIELD(boxes.limits.memory),
     .help = "memory of a box that names none"},
    {"boxes.disk", SETTING_SIZE, "10GiB", 8 * MIB, 8192 * GIB, FIELD(boxes.limits.disk),
     .help = "disk of a box that names none"},
    {"boxes.inodes", SETTING_INT, "655360", 256, 1 << 28, FIELD(boxes.limits.inodes),
     .help = "files of a box that names none"},
    {"boxes.processes", SETTING_INT, "1024", 4, 1 << 20, FIELD(boxes.limits.processes),
     .help = "processes of a box that names none"},
    {"boxes.max_cpu_milli", SETTING_INT, "8000", 10, 1024 * 1000, FIELD(boxes.max.cpu_milli),
     .help = "most thousandths of a core that a box may ask for"},
    {"boxes.max_memory", SETTING_SIZE, "16GiB", 8 * MIB, 16384 * GIB, FIELD(boxes.max.memory),
     .help = "most memory that a box may ask for"},
    {"boxes.max_disk", SETTING_SIZE, "100GiB", 8 * MIB, 8192 * GIB, FIELD(boxes.max.disk),
     .help = "largest disk that a box may ask for"},
    {"boxes.max_inodes", SETTING_INT, "6553600", 256, 1 << 28, FIELD(boxes.max.inodes),
     .help = "most files that a box may ask for"},
    {"boxes.max_processes", SETTING_INT, "8192", 4, 1 << 20, FIELD(boxes.max.processes),
     .help = "most processes that a box may ask for"},
    {"boxes.per_key", SETTING_INT, "100", 1, 4096, FIELD(boxes.per_key),
     .help = "boxes that live at a time for each key"},
    {"boxes.max", SETTING_INT, "1024", 1, 4096, FIELD(boxes.count), .help = "boxes that live at a time"},
    {"boxes.pool", SETTING_INT, "2", 0, 256, FIELD(boxes.pool),
     .help = "clean boxes kept ready for each template in use"},
    {"boxes.prepared_disks", SETTING_INT, "4", 0, 256, FIELD(boxes.disks),
     .help = "disks kept ready for new boxes"},
    {"boxes.memory_floor", SETTING_SIZE, "256MiB", 0, 16384 * GIB, FIELD(boxes.memory_floor),
     .help = "free memory below which no box is made"},
    {"boxes.disk_floor", SETTING_SIZE, "1GiB", 0, 8192 * GIB, FIELD(boxes.disk_floor),
     .help = "free disk space below which no box is made"},
    {"boxes.price_cents", SETTING_INT, "20", 0, 1000000, FIELD(boxes.price_cents),
     .help = "price of an hour of a box, for the estimate of costs"},
    {"keeper.socket", SETTING_PATH, FIELD(keeper_socket),
     .help = "where the server finds its keeper; beside the data folder if not set"},
    {"keeper.memory_disk", SETTING_SIZE, "256MiB", 0, 8192 * GIB, FIELD(keeper_memory_disk),
     .help = "without root: largest disk of a box that is in memory; a larger one is a folder"},
    {"door.enabled", SETTING_BOOL, "true", FIELD(door.enabled),
     .help = "give boxes a way out; without, their network is loopback alone"},
    {"door.socket", SETTING_PATH, FIELD(door.socket),
     .help = "where the server finds the door; beside the data folder if not set"},
    {"door.ask_clients", SETTING_BOOL, "true", FIELD(door.ask_clients),
     .help = "allow boxes what the package clients of this machine use (npm, pip, go, cargo, apt)"},
    {"door.bytes_per_day", SETTING_SIZE, "64GiB", 0, 8192 * 1024 * GIB, FIELD(door.limits.bytes_per_day),
     .help = "bytes a box may move in a day, both ways; 0: without bound"},
    {"door.bytes_per_second", SETTING_SIZE, "0", 0, 1024 * GIB, FIELD(door.limits.bytes_per_s),
     .help = "bytes a box may move in a second; 0: without bound"},
    {"door.requests_per_minute", SETTING_INT, "6000", 0, 10000000, FIELD(door.limits.requests_per_min),
     .help = "requests of a box in a minute; 0: without bound"},
    {"door.lookups_per_minute", SETTING_INT, "600", 0, 10000000, FIELD(door.limits.lookups_per_min),
     .help = "names a box may have looked up in a minute; 0: without bound"},
    {"door.max_bytes_per_day", SETTING_SIZE, "0", 0, 8192 * 1024 * GIB, FIELD(door.max.bytes_per_day),
     .help = "most that 'coop door limits' may set for a day; 0: no maximum"},
    {"door.max_bytes_per_second", SETTING_SIZE, "0", 0, 1024 * GIB, FIELD(door.max.bytes_per_s),
     .help = "most bytes a second that may be set; 0: no maximum"},
    {"door.max_requests_per_minute", SETTING_INT, "0", 0, 10000000, FIELD(door.max.requests_per_min),
     .help = "most requests a minute that may be set; 0: no maximum"},
    {"door.max_lookups_per_minute", SETTING_INT, "0", 0, 10000000, FIELD(door.max.lookups_per_min),
     .help = "most lookups a minute that may be set; 0: no maximum"},
    {"templates.dir", SETTING_PATH, DERIVED,
     .help = "where built templates are kept; templates/ in the data folder if not set"},
    {"templates.build", SETTING_BOOL, "true", FIELD(templates_build),
     .help = "build the default template at the start of a server that has it not"},
    {"templates.default", SETTING_WORD, "base", FIELD(template_default), ENV("E2B_TEMPLATE_ID"),
     .help = "template of a box that names none"},
    {"templates.coder", SETTING_WORD, FIELD(team.template_coder), ENV("E2B_TEMPLATE_CODER"),
     .help = "template of coders"},
    {"templates.reviewer", SETTING_WORD, FIELD(team.template_reviewer), ENV("E2B_TEMPLATE_REVIEWER"),
     .help = "template of reviewers"},
    {"templates.tester", SETTING_WORD, FIELD(team.template_tester), ENV("E2B_TEMPLATE_TESTER"),
     .help = "template of testers"},
    {"interpreter.timeout", SETTING_DURATION, "30s", 1, DAY, LATER("the code interpreter"),
     ENV("E2B_TIMEOUT", UNIT_MS), .help = "time for one execution"},
    {"interpreter.retries", SETTING_INT, "3", 0, 100, LATER("the code interpreter"), ENV("E2B_MAX_RETRIES"),
     .help = "attempts after a failed execution"},

    {"team.agents_per_task", SETTING_INT, "5", 1, 50, FIELD(team.agents_per_task), ENV("MAX_AGENTS_PER_TASK"),
     .help = "agents that work on one task at a time"},
    {"team.concurrent_tasks", SETTING_INT, "3", 1, 1000, FIELD(team.concurrent_tasks),
     ENV("MAX_CONCURRENT_TASKS"), .help = "tasks worked on at a time; others wait their turn"},
    {"team.model", SETTING_WORD, FIELD(team.model), .help = "provider/model of members that name none"},
    {"team.tries", SETTING_INT, "3", 1, 10, FIELD(team.tries),
     .help = "tries of a step before a person is asked"},
    {"team.rounds", SETTING_INT, "3", 1, 10, FIELD(team.rounds), .help = "rounds of review of a task"},
    {"team.turns", SETTING_INT, "100", 1, 10000, FIELD(team.turns),
     .help = "questions to its model in one agent's work"},
    {"team.agent_time", SETTING_DURATION, "30m", 5 * SECOND, DAY, FIELD(team.agent_ms),
     .help = "time of one agent's work"},
    {"team.keep", SETTING_DURATION, "1d", SECOND, 365 * DAY, FIELD(team.keep_ms),
     .help = "how long what is left of failed work is kept"},
    {"team.kept_max", SETTING_SIZE, "10GiB", MIB, 1024 * GIB, FIELD(team.kept_max),
     .help = "how much is kept of boxes in all; the oldest goes first"},
    {"team.retry_pause", SETTING_DURATION, "1s", 1, MINUTE, FIELD(team.retry_ms),
     .help = "pause before the second try of what is broken; doubled each time"},

    {"forge.mirror_interval", SETTING_DURATION, "10m", SECOND, 365 * DAY, FIELD(forge.mirror_ms),
     .help = "how often mirrors of other repositories are fetched"},
    {"forge.fetch_max", SETTING_SIZE, "16GiB", MIB, 1024 * GIB, FIELD(forge.fetch_max),
     .help = "how much one import, or one fetch of a mirror, may bring"},
    {"slack.signing_secret", SETTING_WORD, FIELD(slack_secret), ENV("SLACK_SIGNING_SECRET"), .secret = true,
     .help = "what Slack signs the commands with that it sends to /slack/commands"},
    {"slack.reply_origins", SETTING_ORIGINS, "https://hooks.slack.com,https://hooks.slack-gov.com",
     FIELD(slack_origins), .help = "where progress may be posted to, as Slack asks for it"},
    {"github.token", SETTING_WORD, FIELD(github.token), TWO_ENVS("GITHUB_TOKEN", "GH_TOKEN"), .secret = true,
     .help = "token for GitHub; 'coop github login' keeps one sealed instead"},
    {"github.api_url", SETTING_URL, FIELD(github.api_url), .schemes = "http,https", ENV("GITHUB_API_URL"),
     .help = "where that token is for; GitHub itself if not set"},
    {"github.write_pause", SETTING_DURATION, "1s", 0, MINUTE, FIELD(github.write_pause_ms),
     .help = "pause between two writes to the same place"},
    {"github.poll_interval", SETTING_DURATION, "5m", SECOND, DAY, FIELD(github.poll_ms),
     .help = "how often open pull requests there are asked for"},
    {"github.org", SETTING_WORD, LATER("the forge"), ENV("GITHUB_ORG"), .help = "organisation"},
    {"github.owner", SETTING_WORD, LATER("the forge"), ENV("GITHUB_REPO_OWNER"),
     .help = "owner of the default repository"},
    {"github.repo", SETTING_WORD, LATER("the forge"), TWO_ENVS("GITHUB_REPO_NAME", "GITHUB_REPO"),
     .help = "default repository"},
    {"webhooks.allow_loopback", SETTING_BOOL, "false", FIELD(forge.hooks_to_loopback),
     .help = "let webhooks go to programs on this machine"},
    {"github.agent_prefix", SETTING_WORD, FIELD(forge.agent_prefix), ENV("GITHUB_AGENT_PREFIX"),
     .help = "start of the names of identities"},

    {"agent.task_id", SETTING_WORD, LATER("agents"), TWO_ENVS("TASK_ID", "CURRENT_TASK_ID"),
     .help = "task of an agent"},
    {"agent.role", SETTING_WORD, LATER("agents"), ENV("AGENT_ROLE"), .help = "role of an agent"},
    {"agent.room_id", SETTING_WORD, LATER("agents"), ENV("ROOM_ID"), .help = "room of an agent"},
    {"agent.main_id", SETTING_WORD, LATER("agents"), ENV("MAIN_AGENT_ID"),
     .help = "agent that leads the task"},
    {"agent.git_username", SETTING_STRING, LATER("agents"), ENV("GIT_USERNAME"),
     .help = "name on an agent's commits"},
    {"agent.git_email", SETTING_WORD, LATER("agents"), ENV("GIT_EMAIL"),
     .help = "address on an agent's commits"},
    {"agent.ssh_key", SETTING_PATH, LATER("agents"), ENV("SSH_KEY_PATH"), .help = "key file of an agent"},
};
/* clang-format on */

const size_t n_settings = G_N_ELEMENTS(settings);

const Setting *
setting_find(const char *name)
{
    for (size_t i = 0; i < n_settings; i++) {
        if (strcmp(settings[i].name, name) == 0)
            return &settings[i];
    }
    return NULL;
}

bool
setting_is_list(const Setting *setting)
{
    return setting->type == SETTING_ADDRESSES || setting->type == SETTING_HOSTS ||
           setting->type == SETTING_ORIGINS;
}

char *
setting_dup_env_name(const Setting *setting)
{
    g_autofree char *upper = g_ascii_strup(setting->name, -1);

    return g_strconcat("COOP_", g_strdelimit(upper, ".", '_'), NULL);
}

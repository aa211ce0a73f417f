/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/config.h"
#include "daemon/setting-net.h"
#include "daemon/setting.h"

#define KEY "e2b_0123456789abcdef0123456789abcdef01234567"

/* A data folder and a system file of its own for each load. */
typedef struct Place {
    char *folder;
    char *home_file;
    char *system_file;
} Place;

static void
place_init(Place *p)
{
    p->folder = g_dir_make_tmp("coop-config-XXXXXX", NULL);
    g_assert_nonnull(p->folder);
    p->home_file = g_build_filename(p->folder, "config.yaml", NULL);
    p->system_file = g_build_filename(p->folder, "system.yaml", NULL);
}

static void
place_clear(Place *p)
{
    (void)g_unlink(p->home_file);
    (void)g_unlink(p->system_file);
    g_assert_cmpint(g_rmdir(p->folder), ==, 0);
    g_free(p->folder);
    g_free(p->home_file);
    g_free(p->system_file);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Place, place_clear)

static void
write_file(const char *path, const char *text, int mode)
{
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_assert_cmpint(g_chmod(path, mode), ==, 0);
}

/* `env` is "NAME=value" texts, `flag` one "setting=value"; each may be NULL. */
static Config *
load(const Place *p, const char *const *env, const char *flag, GError **error)
{
    static const char *const no_env[] = {NULL};
    ConfigFlag flags[2] = {{"home", p->folder, "--home"}};
    g_auto(GStrv) pair = flag != NULL ? g_strsplit(flag, "=", 2) : NULL;

    if (pair != NULL)
        flags[1] = (ConfigFlag){pair[0], pair[1], "--set"};
    return config_load(&(ConfigSpec){.system_file = p->system_file,
                                     .env = env != NULL ? env : no_env,
                                     .flags = flags,
                                     .n_flags = pair != NULL ? 2 : 1},
                       error);
}

static const ConfigEntry *
find_entry(GPtrArray *entries, const char *name)
{
    for (guint i = 0; i < entries->len; i++) {
        const ConfigEntry *e = entries->pdata[i];

        if (strcmp(e->setting->name, name) == 0)
            return e;
    }
    g_assert_not_reached();
}

static void
test_defaults(void)
{
    g_auto(Place) p;
    g_autoptr(GError) error = NULL;

    place_init(&p);
    g_autoptr(Config) c = load(&p, NULL, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(c->home, ==, p.folder);
    g_assert_cmpuint(c->addresses->len, ==, 2);
    g_assert_cmpstr(g_array_index(c->addresses, ConfigAddress, 0).text, ==, "127.0.0.1:8003");
    g_assert_cmpstr(g_array_index(c->addresses, ConfigAddress, 1).text, ==, "[::1]:8003");
    g_assert_cmpint(c->http.header_timeout_ms, ==, 10000);
    g_assert_cmpint(c->http.body_limit, ==, 8 << 20);
    g_assert_cmpint(c->events_retention_ms, ==, G_GINT64_CONSTANT(30) * 24 * 3600 * 1000);
    g_assert_cmpstr(c->server_url, ==, "http://127.0.0.1:8003");
    g_assert_cmpstr(c->log_levels, ==, "info");
    g_assert_false(c->http.compat);
    g_assert_null(c->key);
    g_assert_cmpuint(c->notices->len, ==, 0);
    g_autofree char *db = g_build_filename(p.folder, "coop.db", NULL);
    g_assert_cmpstr(c->database_file, ==, db);
}

/* Each source overrides the ones before it, and the origin says which one won. */
static void
test_order(void)
{
    static const char *const origins[] = {"default", "system.yaml:2", "config.yaml:3",
                                          "environment COOP_HTTP_MAX_CONNECTIONS", "option --set"};

    for (int level = 0; level < 5; level++) {
        const char *const env[] = {level >= 3 ? "COOP_HTTP_MAX_CONNECTIONS=3000" : NULL, NULL};
        g_auto(Place) p;
        g_autoptr(GError) error = NULL;

        place_init(&p);
        if (level >= 1)
            write_file(p.system_file, "http:\n  max_connections: 1000\n", 0644);
        if (level >= 2)
            write_file(p.home_file, "# c\nhttp:\n  max_connections: 2000\n", 0600);
        g_autoptr(Config) c = load(&p, env, level >= 4 ? "http.max_connections=4000" : NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpint(c->http.max_connections, ==, level == 0 ? 16384 : level * 1000);
        g_autoptr(GPtrArray) entries = config_entries(c);
        g_assert_true(g_str_has_suffix(find_entry(entries, "http.max_connections")->origin, origins[level]));
    }
}

static void
test_good_values(void)
{
    static const struct {
        const char *given; /* setting=value */
        const char *shown;
    } cases[] = {
        {"http.listen=0.0.0.0:80", "0.0.0.0:80"},
        {"http.listen=localhost:0", "127.0.0.1:0,[::1]:0"},
        {"http.listen=*:8003, [::1]:9", "0.0.0.0:8003,[::]:8003,[::1]:9"},
        {"http.listen=[0:0::1]:1,[::1]:1", "[::1]:1"},
        {"http.compat=YES", "true"},
        {"http.compat=off", "false"},
        {"http.allowed_hosts=", ""},
        {"http.allowed_hosts=Coop.Example.com, a:1,10.0.0.1,[FE80::1]:65535",
         "coop.example.com,a:1,10.0.0.1,[fe80::1]:65535"},
        {"http.allowed_origins=HTTPS://Board.example.com:443,http://[::1]:3000,http://a:80",
         "https://board.example.com,http://[::1]:3000,http://a"},
        {"http.max_connections=16", "16"},
        {"http.max_connections=1000000", "1000000"},
        {"http.header_timeout=1500ms", "1500ms"},
        {"http.header_timeout=120s", "2m"},
        {"http.idle_timeout=24h", "1d"},
        {"http.body_limit=1048576", "1MiB"},
        {"http.body_limit=1000B", NULL},
        {"http.body_limit=1500KiB", "1500KiB"},
        {"http.body_limit=1GiB", "1GiB"},
        {"events.retention=3650d", "3650d"},
        {"log.level=warn,http=debug", "warn,http=debug"},
        {"auth.key=" KEY, "********"},
        {"github.token=github_pat_x", "********"},
        {"server.url=https://coop.example.com/x", "https://coop.example.com/x"},
        {"redis.url=redis://:secret@redis:6379/0", "redis://:***@redis:6379/0"},
        {"nats.url=nats://token@nats:4222", "nats://***@nats:4222"},
        {"database.url=sqlite:x/y.db", "sqlite:x/y.db"},
        {"database.url=sqlite:///y.db", "sqlite:y.db"},
        {"database.url=sqlite:////abs/y.db", "sqlite:/abs/y.db"},
        {"database.url=sqlite+aiosqlite:///y.db", "sqlite:y.db"},
        {"database.url=postgres://u:p@h/d", "postgresql://u:***@h/d"},
        {"database.url=postgresql://h/d?password=secret", "postgresql://h/d?***"},
        {"database.url=postgresql+asyncpg://postgres:postgres@postgres:5432/agent_squad_dev",
         "postgresql://postgres:***@postgres:5432/agent_squad_dev"},
        {"agent.git_username=Ada Lovelace", "Ada Lovelace"},
        {"agent.ssh_key=/keys/./a/../b", "/keys/b"},
        {"interpreter.timeout=30s", "30s"},
        {"interpreter.retries=0", "0"},
        {"boxes.lifetime=24h", "1d"},
    };
    g_auto(Place) p;

    place_init(&p);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *name = g_strndup(cases[i].given, strcspn(cases[i].given, "="));

        g_test_message("%s", cases[i].given);
        g_autoptr(Config) c = load(&p, NULL, cases[i].given, &error);
        if (cases[i].shown == NULL) {
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
            continue;
        }
        g_assert_no_error(error);
        g_autoptr(GPtrArray) entries = config_entries(c);
        g_assert_cmpstr(find_entry(entries, name)->value, ==, cases[i].shown);
    }
}

static void
test_bad_values(void)
{
#define LISTEN " is not an address and a port, such as 127.0.0.1:8003, [::1]:8003, localhost:8003 or *:8003"
#define HOST " is not the name of a host, such as coop.example.com or coop.example.com:8003"
#define ORIGIN " is not an origin, such as https://board.example.com or http://localhost:3000"
#define DATABASE " is not sqlite:FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME"
    static const struct {
        const char *given;
        const char *message; /* after "option --set: " */
    } cases[] = {
        {"http.listen=8003", "'8003'" LISTEN},
        {"http.listen=127.0.0.1", "'127.0.0.1'" LISTEN},
        {"http.listen=127.0.0.1:65536", "'127.0.0.1:65536'" LISTEN},
        {"http.listen=127.0.0.1:000080", "'127.0.0.1:000080'" LISTEN},
        {"http.listen=127.0.0.1:-1", "'127.0.0.1:-1'" LISTEN},
        {"http.listen=::1:8003", "'::1:8003'" LISTEN},
        {"http.listen=[::1:8003", "'[::1:8003'" LISTEN},
        {"http.listen=example.com:80", "'example.com:80'" LISTEN},
        {"http.listen=127.0.0.1:1,,[::1]:1", "''" LISTEN},
        {"http.listen=", "an empty list" LISTEN},
        {"http.compat=maybe", "'maybe' is not true or false"},
        {"http.allowed_hosts=a b", "'a b'" HOST},
        {"http.allowed_hosts=*", "'*'" HOST},
        {"http.allowed_hosts=http://a", "'http://a'" HOST},
        {"http.allowed_hosts=a:0", "'a:0'" HOST},
        {"http.allowed_hosts=a..b", "'a..b'" HOST},
        {"http.allowed_origins=null", "'null'" ORIGIN},
        {"http.allowed_origins=*", "'*'" ORIGIN},
        {"http.allowed_origins=https://a/", "'https://a/'" ORIGIN},
        {"http.allowed_origins=ftp://a", "'ftp://a'" ORIGIN},
        {"http.max_connections=0", "'0' is not a whole number from 16 to 1000000"},
        {"http.max_connections=1e3", "'1e3' is not a whole number from 16 to 1000000"},
        {"http.max_connections=99999999999999999999",
         "'99999999999999999999' is not a whole number from 16 to 1000000"},
        {"http.header_timeout=10",
         "'10' is not a duration from 100ms to 10m, such as 500ms, 30s, 15m, 24h or 30d"},
        {"http.header_timeout=1h",
         "'1h' is not a duration from 100ms to 10m, such as 500ms, 30s, 15m, 24h or 30d"},
        {"http.header_timeout=-5s",
         "'-5s' is not a duration from 100ms to 10m, such as 500ms, 30s, 15m, 24h or 30d"},
        {"events.retention=18014398509481985d",
         "'18014398509481985d' is not a duration from 1s to 3650d, such as 500ms, 30s, 15m, 24h or 30d"},
        {"http.body_limit=8MB", "'8MB' is not a size from 1KiB to 1GiB, such as 512KiB, 8MiB or 1GiB"},
        {"http.body_limit=2GiB", "'2GiB' is not a size from 1KiB to 1GiB, such as 512KiB, 8MiB or 1GiB"},
        {"log.level=loud", "'loud' is not a list of levels, such as info or info,http=debug "
                           "(debug, info, warn, error)"},
        {"auth.key=e2b_your_api_key_here", "the value (not shown) is not e2b_ and 40 hexadecimal digits"},
        {"auth.key=" KEY "0", "the value (not shown) is not e2b_ and 40 hexadecimal digits"},
        {"github.token=a b", "the value (not shown) is not a text without spaces"},
        {"server.url=ftp://x", "'ftp://x' is not a URL that begins with http://, https://"},
        {"server.url=http://", "'http://' is not a URL that begins with http://, https://"},
        {"redis.url=http://u:pass@x",
         "the value (not shown) is not a URL that begins with redis://, rediss://"},
        {"database.url=mysql://u:pass@x/d", "the value (not shown)" DATABASE},
        {"database.url=postgres://u:pass@x/d secret", "the value (not shown)" DATABASE},
        {"database.url=sqlite::memory:", "'sqlite::memory:'" DATABASE},
        {"database.url=sqlite://x", "'sqlite://x'" DATABASE},
        {"database.url=sqlite:../x.db", "'sqlite:../x.db'" DATABASE},
        {"database.url=sqlite:", "'sqlite:'" DATABASE},
        {"home=/", "'/' is not the path of a folder or file below /"},
        {"agent.git_username=a\nb", "'a\\x0ab' is not a line of text"},
        {"agent.git_username=\xff", "'\ufffd' is not a line of text"},
        {"interpreter.retries=-1", "'-1' is not a whole number from 0 to 100"},
        {"boxes.lifetime=25h", "'25h' is not a duration from 1s to 1d, such as 500ms, 30s, 15m, 24h or 30d"},
    };
    g_auto(Place) p;

    place_init(&p);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *want = g_strconcat("option --set: ", cases[i].message, NULL);

        g_assert_null(load(&p, NULL, cases[i].given, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        g_assert_cmpstr(error->message, ==, want);
    }
}

/* Every variable of the mission, with its unit. */
static void
test_environment(void)
{
    static const struct {
        const char *variable;
        const char *setting;
        const char *shown;
        bool used; /* no notice */
    } cases[] = {
        {"SANDBOX_SERVICE_URL=http://localhost:8003", "server.url", "http://localhost:8003", true},
        {"E2B_API_KEY=" KEY, "auth.key", "********", true},
        {"COOP_API_KEY=" KEY, "server.key", "********", true},
        {"COOP_LOG=debug", "log.level", "debug", true},
        {"COOP_LISTEN=127.0.0.1:1", "http.listen", "127.0.0.1:1", true},
        {"COOP_HTTP_RATE_PER_KEY=7", "http.rate_per_key", "7", true},
        {"COOP_HTTP_IDLE_TIMEOUT=90s", "http.idle_timeout", "90s", true},
        {"DATABASE_URL=sqlite:a.db", "database.url", "sqlite:a.db", true},
        {"DATABASE_URL=postgresql+asyncpg://postgres:postgres@postgres:5432/agent_squad_dev", "database.url",
         "postgresql://postgres:***@postgres:5432/agent_squad_dev", false},
        {"REDIS_URL=redis://redis:6379/0", "redis.url", "redis://redis:6379/0", false},
        {"NATS_URL=nats://nats:4222", "nats.url", "nats://nats:4222", false},
        {"ROOM_PERSISTENCE=redis://your-redis-server", "rooms.persistence", "redis://your-redis-server",
         false},
        {"WEBSOCKET_URL=wss://your-websocket-server", "rooms.websocket_url", "wss://your-websocket-server",
         false},
        {"NEXT_PUBLIC_API_URL=http://localhost:8000/api/v1", "board.api_url", "http://localhost:8000/api/v1",
         false},
        {"NEXT_PUBLIC_SSE_URL=http://localhost:8000/api/v1/sse", "board.events_url",
         "http://localhost:8000/api/v1/sse", false},
        {"MAX_SANDBOX_LIFETIME=3600000", "boxes.lifetime", "1h", true},
        {"MAX_SANDBOX_LIFETIME=30m", "boxes.lifetime", "30m", true},
        {"E2B_TIMEOUT=30000", "interpreter.timeout", "30s", false},
        {"E2B_MAX_RETRIES=3", "interpreter.retries", "3", false},
        {"E2B_TEMPLATE_ID=base", "templates.default", "base", true},
        {"E2B_TEMPLATE_CODER=c", "templates.coder", "c", true},
        {"E2B_TEMPLATE_REVIEWER=r", "templates.reviewer", "r", true},
        {"E2B_TEMPLATE_TESTER=t", "templates.tester", "t", true},
        {"MAX_AGENTS_PER_TASK=5", "team.agents_per_task", "5", true},
        {"MAX_CONCURRENT_TASKS=3", "team.concurrent_tasks", "3", true},
        {"GITHUB_TOKEN=org_admin_token", "github.token", "********", true},
        {"GH_TOKEN=org_admin_token", "github.token", "********", true},
        {"GITHUB_API_URL=https://ghe.example/api/v3", "github.api_url", "https://ghe.example/api/v3", true},
        {"GITHUB_ORG=your_private_org", "github.org", "your_private_org", false},
        {"GITHUB_REPO_OWNER=your-org", "github.owner", "your-org", false},
        {"GITHUB_REPO_NAME=your-repo", "github.repo", "your-repo", false},
        {"GITHUB_REPO=autocoder-workspace", "github.repo", "autocoder-workspace", false},
        {"GITHUB_AGENT_PREFIX=eliza-agent", "github.agent_prefix", "eliza-agent", true},
        {"TASK_ID=t1", "agent.task_id", "t1", false},
        {"CURRENT_TASK_ID=t2", "agent.task_id", "t2", false},
        {"AGENT_ROLE=coder", "agent.role", "coder", false},
        {"GIT_USERNAME=A B", "agent.git_username", "A B", false},
        {"GIT_EMAIL=a@b", "agent.git_email", "a@b", false},
        {"ROOM_ID=r", "agent.room_id", "r", false},
        {"MAIN_AGENT_ID=m", "agent.main_id", "m", false},
        {"SSH_KEY_PATH=/k", "agent.ssh_key", "/k", false},
    };
    g_auto(Place) p;

    place_init(&p);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const env[] = {cases[i].variable, NULL};
        g_autofree char *name = g_strndup(cases[i].variable, strcspn(cases[i].variable, "="));
        g_autofree char *origin = g_strconcat("environment ", name, NULL);
        g_autoptr(GError) error = NULL;

        g_test_message("%s", name);
        g_autoptr(Config) c = load(&p, env, NULL, &error);
        g_assert_no_error(error);
        g_autoptr(GPtrArray) entries = config_entries(c);
        g_assert_cmpstr(find_entry(entries, cases[i].setting)->value, ==, cases[i].shown);
        g_assert_cmpstr(find_entry(entries, cases[i].setting)->origin, ==, origin);
        g_assert_cmpuint(c->notices->len, ==, cases[i].used ? 0 : 1);
        if (!cases[i].used)
            g_assert_nonnull(strstr(c->notices->pdata[0], name));
    }
}

static void
test_environment_edges(void)
{
    const char *const env[] = {"E2B_TEMPLATE_ID=",  "COOP_LOG=warn",  "COOP_LOG_LEVEL=debug",
                               "COOP_HTTP_LISTN=x", "COOP_PROGRAM=x", NULL};
    g_autoptr(GError) error = NULL;
    g_auto(Place) p;

    place_init(&p);
    g_autoptr(Config) c = load(&p, env, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(c->log_levels, ==, "debug");
    g_assert_cmpuint(c->notices->len, ==, 2);
    g_assert_cmpstr(c->notices->pdata[0], ==,
                    "environment variable COOP_LOG is left out because COOP_LOG_LEVEL is set");
    g_assert_cmpstr(c->notices->pdata[1], ==,
                    "environment variable COOP_HTTP_LISTN is not known: did you mean COOP_HTTP_LISTEN?");
    g_autoptr(GPtrArray) entries = config_entries(c);
    g_assert_cmpstr(find_entry(entries, "templates.default")->origin, ==, "default");
}

static void
test_files(void)
{
    static const struct {
        const char *text;
        const char *message; /* after "FILE:"; NULL: good */
    } cases[] = {
        {"", NULL},
        {"# only a comment\n", NULL},
        {"---\n", NULL},
        {"http:\n  listen: 127.0.0.1:1\n", NULL},
        {"http:\n  listen: [127.0.0.1:1, '[::1]:1']\n", NULL},
        {"http:\n  listen:\n    - 127.0.0.1:1\n    - \"[::1]:1\"\n", NULL},
        {"http: {allowed_hosts: [], compat: yes}\n", NULL},
        {"log:\n  level: loud\n",
         "2:10: log.level: 'loud' is not a list of levels, such as info or info,http=debug "
         "(debug, info, warn, error)"},
        {"htpp:\n  listen: x\n", "2:11: unknown setting htpp.listen: did you mean http.listen?"},
        {"banana: 1\n", "1:9: unknown setting banana"},
        {"http: 1\n", "1:7: http is a section: its settings go below it, indented"},
        {"log:\n  level:\n    http: debug\n",
         "3:11: unknown setting log.level.http: did you mean log.level?"},
        {"log:\n  level: [info]\n", "2:10: log.level takes one value, not a list"},
        {"log:\n  level:\n", "2:9: log.level has no value: write one, or remove the line"},
        {"log:\n  level: ~\n", "2:10: log.level has no value: write one, or remove the line"},
        {"log:\n  level: ''\n",
         "2:10: log.level: '' is not a list of levels, such as info or info,http=debug "
         "(debug, info, warn, error)"},
        {"home: /x\n", "1:7: home cannot be set from inside the data folder"},
        {"log:\n  level: info\n  level: warn\n", "3:3: log.level is there twice"},
        {"log:\n  level: info\nlog:\n", "3:1: log is there twice"},
        {"a: &x 1\nb: *x\n", "1:4: anchors and tags are not supported"},
        {"log: *x\n", "1:6: aliases are not supported"},
        {"log:\n  level: !!str info\n", "2:10: anchors and tags are not supported"},
        {"log:\n  level: \"in\\0fo\"\n", "2:10: the value has a NUL character or is too long"},
        {"a: {b: {c: {d: {e: 1}}}}\n", "1:16: sections are nested too deeply"},
        {"[a]: 1\n", "1:1: the name of a setting must be plain text"},
        {"http:\n  listen: [[a]]\n", "2:12: a list may hold only plain values"},
        {"- a\n", "1:1: the file must hold settings, such as \"log:\" and below it \"  level: info\""},
        {"log: {}\n---\nlog: {}\n", "2:1: a second document in the file"},
        {"log:\n\tlevel: x\n", "2:1: not valid YAML: found character that cannot start any token"},
        {"log: 'x\n", "2:1: not valid YAML: found unexpected end of stream"},
        {"log: \xff\n", "1:6: not valid YAML: invalid leading UTF-8 octet"},
    };
    g_auto(Place) p;

    place_init(&p);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("case %zu", i);
        write_file(p.home_file, cases[i].text, 0600);
        g_autoptr(Config) c = load(&p, NULL, NULL, &error);
        g_assert_true((c == NULL) == (error != NULL));
        if (cases[i].message == NULL) {
            g_assert_no_error(error);
            continue;
        }
        g_autofree char *want = g_strconcat(p.home_file, ":", cases[i].message, NULL);
        g_assert_nonnull(error);
        g_assert_cmpstr(error->message, ==, want);
    }
}

static void
test_file_bounds(void)
{
    g_autoptr(GString) many = g_string_new("http:\n  allowed_hosts: [a");
    g_autofree char *large = g_strnfill(64 * 1024 + 1, '#');
    g_autofree char *deep = g_strnfill(60 * 1024, '[');
    g_autofree char *value = g_strnfill(5000, 'x');
    g_autofree char *long_value = g_strdup_printf("log: {level: %s}\n", value);
    g_auto(Place) p;

    for (int i = 0; i < 100; i++)
        g_string_append_printf(many, ", h%d", i);
    g_string_append(many, "]\n");
    const struct {
        const char *text, *message;
    } cases[] = {
        {large, "is larger than 64 KiB"},
        {many->str, "2:18: http.allowed_hosts: more than 64 entries"},
        {deep, "1:1: the file must hold settings"},
        {long_value, "the value has a NUL character or is too long"},
    };

    place_init(&p);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        write_file(p.home_file, cases[i].text, 0600);
        g_assert_null(load(&p, NULL, NULL, &error));
        if (strstr(error->message, cases[i].message) == NULL)
            g_error("'%s' is not in '%.200s'", cases[i].message, error->message);
    }
}

static void
test_file_modes(void)
{
    g_auto(Place) p;
    g_autoptr(GError) error = NULL, linked = NULL, folder = NULL;

    place_init(&p);
    write_file(p.home_file, "github:\n  token: x\n", 0644);
    g_autoptr(Config) c = load(&p, NULL, NULL, &error);
    g_assert_no_error(error);
    g_assert_nonnull(strstr(c->notices->pdata[0], "holds a secret and can be read by others: run chmod 600"));
    write_file(p.home_file, "log: {level: info}\n", 0646);
    g_assert_null(load(&p, NULL, NULL, &error));
    g_assert_nonnull(strstr(error->message, "can be written by everybody: run chmod o-w"));

    g_assert_cmpint(rename(p.home_file, p.system_file), ==, 0);
    g_assert_cmpint(chmod(p.system_file, 0600), ==, 0);
    g_assert_cmpint(symlink(p.system_file, p.home_file), ==, 0);
    g_assert_null(load(&p, NULL, NULL, &linked));
    g_assert_nonnull(strstr(linked->message, "is a link: put the file itself there"));
    g_assert_cmpint(unlink(p.home_file), ==, 0);
    g_assert_cmpint(mkdir(p.home_file, 0700), ==, 0);
    g_assert_null(load(&p, NULL, NULL, &folder));
    g_assert_nonnull(strstr(folder->message, "is not a regular file"));
    g_assert_cmpint(rmdir(p.home_file), ==, 0);
}

/* One run tells everything that is wrong. */
static void
test_all_problems_at_once(void)
{
    const char *const env[] = {"E2B_TIMEOUT=soon", "E2B_API_KEY=hunter2hunter2", NULL};
    g_auto(Place) p;
    g_autoptr(GError) error = NULL;

    place_init(&p);
    write_file(p.system_file, "http:\n  max_connections: many\n  rate_burst: -1\n", 0644);
    write_file(p.home_file, "lgo:\n  level: x\n", 0600);
    g_assert_null(load(&p, env, "http.compat=perhaps", &error));
    g_autofree char *want = g_strdup_printf(
        "%s:2:20: http.max_connections: 'many' is not a whole number from 16 to 1000000\n"
        "%s:3:15: http.rate_burst: '-1' is not a whole number from 1 to 10000000\n"
        "environment variable E2B_API_KEY: the value (not shown) is not e2b_ and 40 hexadecimal digits\n"
        "environment variable E2B_TIMEOUT: 'soon' is not a duration from 1ms to 1d, such as 500ms, 30s, 15m, "
        "24h or 30d; a number without a unit counts milliseconds\n"
        "option --set: 'perhaps' is not true or false\n"
        "%s:2:10: unknown setting lgo.level: did you mean log.level?",
        p.system_file, p.system_file, p.home_file);
    g_assert_cmpstr(error->message, ==, want);
}

static void
test_many_problems_are_cut(void)
{
    g_autoptr(GString) text = g_string_new("x:\n");
    g_autoptr(GError) error = NULL;
    g_auto(Place) p;

    place_init(&p);
    for (int i = 0; i < 70; i++)
        g_string_append_printf(text, "  zzzz%d: 1\n", i);
    write_file(p.home_file, text->str, 0600);
    g_assert_null(load(&p, NULL, NULL, &error));
    g_assert_true(g_str_has_suffix(error->message, "\n... and 20 more"));
}

static void
test_compat_and_urls(void)
{
    static const struct {
        const char *listen, *url;
    } cases[] = {
        {"*:8003", "http://127.0.0.1:8003"},
        {"[::]:9000", "http://[::1]:9000"},
        {"192.0.2.1:8003", "http://192.0.2.1:8003"},
    };
    const char *const env[] = {"COOP_HTTP_COMPAT=1", NULL};
    static const char *const want[] = {"10.0.0.1:8002", "[::1]:8003",    "10.0.0.1:8000", "[::1]:8000",
                                       "[::1]:8002",    "10.0.0.1:8004", "[::1]:8004"};
    g_auto(Place) p;

    place_init(&p);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *flag = g_strconcat("http.listen=", cases[i].listen, NULL);
        g_autoptr(Config) c = load(&p, NULL, flag, NULL);

        g_assert_cmpstr(c->server_url, ==, cases[i].url);
        g_assert_false(c->server_url_is_set);
    }
    g_autoptr(Config) named = load(&p, env, "server.url=https://coop.example:1", NULL);
    g_assert_cmpstr(named->server_url, ==, "https://coop.example:1");
    g_assert_true(named->server_url_is_set);
    g_autoptr(Config) c = load(&p, env, "http.listen=10.0.0.1:8002,[::1]:8003", NULL);
    g_assert_cmpuint(c->addresses->len, ==, G_N_ELEMENTS(want));
    for (guint i = 0; i < c->addresses->len; i++) {
        const ConfigAddress *a = &g_array_index(c->addresses, ConfigAddress, i);

        g_assert_cmpstr(a->text, ==, want[i]);
        g_assert_true(a->compat == (i >= 2));
        g_assert_true(a->addr.ss_family == (a->text[0] == '[' ? AF_INET6 : AF_INET));
    }
}

/* The table itself: every row can be documented, shown and set from each source. */
static void
test_table_rows(void)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (size_t i = 0; i < n_settings; i++) {
        const Setting *s = &settings[i];

        g_test_message("%s", s->name);
        g_assert_true(g_hash_table_add(names, setting_dup_env_name(s)) || strcmp(s->name, "home") == 0);
        for (size_t j = 0; j < SETTING_ENVS_MAX && s->env[j].name != NULL; j++)
            g_assert_true(g_hash_table_add(names, g_strdup(s->env[j].name)));
        g_assert_true(s->help != NULL && s->help[0] != '\0');
        g_assert_true(s->later == NULL || s->field == SETTING_NO_FIELD);
        g_assert_true((s->type == SETTING_URL) == (s->schemes != NULL));
        g_assert_true(setting_find(s->name) == s);
        g_autofree char *expects = setting_dup_expects(s, UNIT_NONE);
        g_assert_nonnull(expects);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/config/table", test_table_rows);
    g_test_add_func("/config/defaults", test_defaults);
    g_test_add_func("/config/order", test_order);
    g_test_add_func("/config/good-values", test_good_values);
    g_test_add_func("/config/bad-values", test_bad_values);
    g_test_add_func("/config/environment", test_environment);
    g_test_add_func("/config/environment-edges", test_environment_edges);
    g_test_add_func("/config/files", test_files);
    g_test_add_func("/config/file-bounds", test_file_bounds);
    g_test_add_func("/config/file-modes", test_file_modes);
    g_test_add_func("/config/all-problems", test_all_problems_at_once);
    g_test_add_func("/config/many-problems", test_many_problems_are_cut);
    g_test_add_func("/config/addresses", test_compat_and_urls);
    return g_test_run();
}

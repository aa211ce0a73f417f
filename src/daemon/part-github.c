/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "daemon/github.h"
#include "daemon/serve-private.h"

static void
make_github(Server *s)
{
    g_autoptr(GError) error = NULL;

    if (s->forge == NULL)
        return;
    s->github = serve_github_new(
        &(ServeGithubSpec){
            .config = s->config, .loop = s->loop, .db = s->db, .events = s->events, .forge = s->forge},
        &error);
    if (s->github == NULL)
        log_warn("daemon", "nothing goes to GitHub", log_gerror(error));
}

static bool
load_github(Server *s, DbDone done)
{
    if (s->github != NULL)
        github_load(s->github, done, s);
    return s->github != NULL;
}

static void
stop_github(Server *s)
{
    github_free(s->github);
}

const ServePart part_github = {.make = make_github, .load = load_github, .stop = stop_github};

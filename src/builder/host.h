/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* What the host's own tools are told about where packages come from, read when a build begins
 * and before the space is entered, as the user who builds. */
typedef struct HostSources {
    char *apt_options;  /* lines for an apt.conf: proxies, certificates, time-outs */
    char *apt_list;     /* one-line sources of the host's own release */
    char *apt_stanzas;  /* the same in the newer form */
    char *architecture; /* of packages: amd64 */
    char *codename;     /* of the host's release; "": unknown */
    char **npm_env;     /* npm_config_registry=… and the like; never NULL */
    char **pip_env;
    char **proxy_env;
    char **go_proxies; /* URLs, in the order in which they are tried */
    bool has_npm;
} HostSources;

/* Asking costs time, so only for what is needed; the rest is NULL. */
typedef enum HostNeeds { HOST_APT = 1 << 0, HOST_NPM = 1 << 1, HOST_GO = 1 << 2 } HostNeeds;
HostSources *host_sources_read(unsigned needs);
void host_sources_free(HostSources *sources);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HostSources, host_sources_free)

/* For tests: the parts of these texts that belong to the release; NULL codename: all. */
void host_pick_list(const char *text, const char *codename, GString *out);
void host_pick_stanzas(const char *text, const char *codename, GString *out);

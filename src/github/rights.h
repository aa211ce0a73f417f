/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "github/client.h"

/* What a token may do, as far as headers and harmless calls tell:
 *
 *     {"login", "kind", "scopes": […], "may": […], "lacks": […], "probed": "owner/repo" | null,
 *      "expires_us"}
 *
 * Classic tokens say their scopes.  Of others each probe asks for one thing that a permission opens: 200
 * is proof that it is there.  What may be written is tried with a body that cannot be taken. */
void github_rights_ask(GithubClient *client, void (*done)(Json *rights, const GError *error, void *data),
                       void *data);

/* Texts for people: more than pull requests and contents, less than needed, expired or about to. */
Json *github_rights_warnings(const Json *rights, gint64 expires_us, gint64 now_us);

/* "classic", "fine-grained", "app" or "other", by its beginning. */
const char *github_token_kind(const char *token);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/api.h"
#include "box/template.h"
#include "daemon/config.h"

/* The templates of a server: the store with its catalogue and builder, an event for each build,
 * and the build of the default template where that is missing. */
typedef struct ServeTemplates ServeTemplates;

/* `space_fd` is borrowed.  NULL: there are none; the log says why, and the server goes on
 * without. */
ServeTemplates *serve_templates_new(const Config *config, Loop *loop, Db *db, int space_fd);
void serve_templates_free(ServeTemplates *templates);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ServeTemplates, serve_templates_free)

TemplateStore *serve_templates_store(ServeTemplates *templates); /* NULL of NULL */
/* Requests are served: what is missing is built, what is wrong is told in /health.  Without
 * boxes nobody else says that nothing is in use. */
void serve_templates_begin(ServeTemplates *templates, Api *api, bool has_boxes);

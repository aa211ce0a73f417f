/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "api/api.h"
#include "daemon/boxes.h"
#include "daemon/forge.h"
#include "daemon/mind.h"
#include "daemon/serve.h"
#include "daemon/templates.h"
#include "http/server.h"

/* The server and what it is made of.  A part is made from the configuration, may lack what it needs
 * (the rest works without it then) and is a file of its own, part-NAME.c. */
typedef struct Server {
    const Config *config;
    const ServeOptions *options;
    GMainLoop *main;
    int lock_fd;
    int space_fd;    /* -1: none */
    GArray *tcp_fds; /* int, opened while we may still be root; taken by the server */
    char *address;   /* of the first of them, as a URL */
    Loop *loop;
    Db *db;
    EventLog *events;
    ServeTemplates *templates; /* NULL: none */
    Boxes *boxes;              /* NULL: none */
    Forge *forge;              /* NULL: none */
    ReceiptKey *receipt_key;   /* NULL: none */
    Checks *checks;            /* NULL: none */
    Landings *landings;        /* NULL: none */
    ServeHooks hooks;
    Github *github;  /* NULL: none */
    ServeMind *mind; /* NULL: nobody can be asked */
    Team *team;
    Api *api;
    HttpServer *http;
    guint parts_loaded; /* how many of the table */
    DbDone loaded;      /* all of them are, or one failed */
    bool stopping;
    GError *forge_problem; /* why there is none */
    GError *error;         /* why the loop ended, NULL: as asked */
} Server;

/* Each may be NULL. */
typedef struct ServePart {
    void (*make)(Server *s);
    /* true: `done` comes with `s`, once.  false: there is nothing to be loaded. */
    bool (*load)(Server *s, DbDone done);
    void (*start)(Server *s); /* requests are served from now on */
    void (*stop)(Server *s);  /* none is under way any more; the database works */
    void (*clear)(Server *s); /* the database was closed: no job of it runs */
} ServePart;

extern const ServePart part_templates, part_boxes, part_forge, part_checks, part_landings, part_team,
    part_github, part_api, part_hooks;

/* All of them: made, loaded and started in the order of one table, stopped in the opposite one. */
void serve_parts_make(Server *s);
/* `done` with `s`, when all are there, one failed, or the server is stopping. */
void serve_parts_load(Server *s, DbDone done);
void serve_parts_start(Server *s);
void serve_parts_stop(Server *s);
void serve_parts_clear(Server *s);

BoxHost *serve_box_host(Server *s); /* NULL: none */

/* Before the loop, as root where we are: the folder, the ports; then as who we are to be. */
bool serve_take_place(Server *s, GError **error);
/* Listens on them. */
bool serve_open_http(Server *s, GError **error);
void serve_leave_place(Server *s);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "door/door.h"

/* A real door between three networks that exist only for this process:
 *
 *     box      loopback and the door's listener
 *     near     where the door is: loopback, 11.255.0.1 and 2a00:ff::1, a canary on each
 *     far      everything else: one server that answers at every address there is, the
 *              metadata services and private ranges among them, and a scripted name server
 *
 * Whoever connects to one of the servers is written down, so that a leak shows and no packet
 * leaves.  At port 80 the servers answer "canary ADDRESS PORT" and the request they got; at the
 * others they send back what comes. */
typedef struct World {
    Loop *loop;
    OwnAddresses *own;
    Dialer *dialer;
    FactLog *facts;
    Door *door;
    DoorBox *box;
    GPtrArray *reached; /* "ADDRESS PORT", … */
    GPtrArray *asked;   /* names, each time the name server was asked for one */
    GHashTable *names;  /* name -> GPtrArray of answers */
    GPtrArray *watches;
    GString *got;       /* all that the servers received */
    const char *script; /* what a server sends when the first bytes came; NULL: as above */
    bool script_ends;   /* … and closes then */
    size_t patience;    /* bytes that come before it answers; 0: the first */
    guint server_closed;
} World;

enum { WORLD_DEAD_MS = 800 };
#define WORLD_BOX "box00000000000000001"

/* Once, before the tests, with main()'s arguments.  False: this host does not let us, and the
 * tests were skipped. */
bool world_enter(int *argc, char ***argv);
/* In the networks: "near", "far".  Commands of ip(8). */
void world_ip(const char *net, const char *arguments);

/* The file that says which name servers there are, for this process. */
void world_name_servers(const char *text);

void world_init(World *w, const char *policy_json);
void world_clear(World *w);

Policy *world_policy(const char *json);
/* Answers, one for each time it is asked, the last one for ever: "11.0.0.1 2a00::1", or
 * "=other.test 11.0.0.1" for an alias; "": no address. */
void world_name(World *w, const char *name, ...) G_GNUC_NULL_TERMINATED;

int world_connect(World *w); /* a client in the box */
int world_listen(const char *net);
guint64 world_cookie(const char *net);
/* Asks on a connection of its own, and reads until the door closes or `until` came. */
char *world_ask(World *w, const char *request, const char *until);
/* CONNECT and, if it succeeded, the fd; -1: `*ret_answer` says why. */
int world_tunnel(World *w, const char *authority, char **ret_answer);
bool world_was_reached(const World *w, const char *address);
/* The newest fact of that kind about that host (NULL: any); NULL: none. */
Json *world_fact(const World *w, const char *kind, const char *host);
/* A ClientHello with that name (NULL: none). */
GByteArray *world_hello(const char *name);

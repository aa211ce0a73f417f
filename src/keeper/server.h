/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "wire/record.h"

typedef struct Box Box;
typedef struct Keeper Keeper;

/* The one server that is connected, and what it has yet to be told.  Answers wait here while
 * its socket is full; GONE waits also while nobody is connected. */
typedef struct Server Server;

Server *server_new(Keeper *keeper, GError **error);
void server_free(Server *server);

void server_answer(Server *server, const KeeperAnswer *answer);
/* What its box is in, in `trouble`. */
void server_tell_trouble(Server *server, const Box *box);
/* An answer that carries nothing but these. */
void server_tell(Server *server, KeeperVerb verb, uint32_t serial, const char *box);
void server_tell_failure(Server *server, uint32_t serial, const char *box, KeeperStage stage, int error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Whether the repository that we stand in is one of ours.  Git does what a repository's configuration
 * says, programs and other repositories included; so what ours has is a short list of settings of which
 * none can run or reach anything, and whatever else is there was not written by us.  `ret_problem` is
 * for people and stays valid. */
bool vet_repository(const char **ret_problem);
/* The same for the text of a configuration; it is changed. */
bool vet_config(char *text, const char **ret_problem);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

const char *version_number(void);
/* What git said about the tree when it was built ("a1b2c3d4e5f6-dirty"); NULL for a build
 * without git. */
const char *version_commit(void);

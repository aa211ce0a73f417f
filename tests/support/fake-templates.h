/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* In the place of template.c: "base" and "other", both of the one layer "00aa". */
void fake_templates_reset(void);
void fake_templates_rebuild(void); /* their hashes change */

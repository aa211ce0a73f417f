/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

extern const char price_builtin[]; /* templates/prices.yaml */

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

const char *http_status_reason(int status);

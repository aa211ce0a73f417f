/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "report/report.h"

/* One stream of output, read by every runner's reader at once.
 *
 * Each reader reports the runs it found with the lines they span.  A run inside another's lines
 * is that one's noise (a test that prints a summary, a captured log) and is dropped, whichever
 * of the two was told first.  What is left is weighed at the end, see reader.c. */

typedef enum ScanRank {
    SCAN_NAMES, /* names only, for a run that the other stream tells of */
    SCAN_WEAK,  /* could also be a program that talks of tests */
    SCAN_COPY,  /* a file that tells again what a runner may have told already */
    SCAN_STRONG,
} ScanRank;

typedef struct ScanRun {
    ScanRank rank;
    guint64 first, last; /* lines */
    TestReport *report;
} ScanRun;

enum {
    SCAN_RUNS_MAX = 1024,
    SCAN_NAMES_MAX = 4 * REPORT_NAMES_MAX, /* of all runs together */
};

typedef struct Scan Scan;

/* A reader of one runner's output.  Its state begins as `size` zero bytes. */
typedef struct Runner {
    size_t size;
    void (*line)(void *state, Scan *scan, const char *line);
    /* Raw bytes, before the lines they end are told. */
    void (*bytes)(void *state, Scan *scan, const guint8 *bytes, size_t n);
    void (*end)(void *state, Scan *scan);
    void (*clear)(void *state);
} Runner;

extern const Runner runner_cargo, runner_ctest, runner_go, runner_go_json, runner_jest, runner_junit,
    runner_mocha, runner_node, runner_pytest, runner_tap, runner_unittest, runner_vitest;

Scan *scan_new(void);
void scan_free(Scan *scan);
void scan_feed(Scan *scan, const guint8 *bytes, size_t n);
void scan_gap(Scan *scan);
void scan_end(Scan *scan);

/* The line that is being read. */
guint64 scan_number(const Scan *scan);
/* Takes the report. */
void scan_add(Scan *scan, ScanRank rank, guint64 first, guint64 last, TestReport *report);
/* ScanRun, in the order of their ends. */
const GArray *scan_runs(const Scan *scan);
bool scan_is_cut(const Scan *scan);

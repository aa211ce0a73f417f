/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/filter-names.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>

#include "base/err.h"
#include "keeper/filter-table.h"

enum {
    CALLS_MAX = 1024,
    SPANS_MAX = 250, /* a jump passes over 255 instructions at most */
};

typedef enum Verdict { VERDICT_UNKNOWN, VERDICT_REFUSED, VERDICT_ALLOWED } Verdict;

typedef struct Span {
    uint32_t first;
    Verdict verdict;
} Span;

/* Of the tree's end: where each verdict is. */
typedef struct Tree {
    const Span *spans;
    struct sock_filter *insns;
    size_t end;
} Tree;

static bool
mark(uint32_t arch, const char *const *names, Verdict verdict, uint8_t *verdicts, GError **error)
{
    for (; *names != NULL; names++) {
        int call = seccomp_syscall_resolve_name_arch(arch, *names);

        if (call == __NR_SCMP_ERROR || call >= CALLS_MAX)
            return err_set(error, ERR_INTERNAL, "there is no system call '%s'", *names);
        /* One that only another architecture has. */
        if (call >= 0)
            verdicts[call] = (uint8_t)verdict;
    }
    return true;
}

/* The last one reaches to the largest number: calls to come, and those with 32-bit pointers, whose
 * numbers have a high bit set. */
static size_t
make_spans(const uint8_t *verdicts, Span *ret_spans)
{
    size_t n = 0;

    for (uint32_t call = 0; call <= CALLS_MAX; call++) {
        Verdict verdict = call < CALLS_MAX ? (Verdict)verdicts[call] : VERDICT_UNKNOWN;

        if (n > 0 && ret_spans[n - 1].verdict == verdict)
            continue;
        if (n == SPANS_MAX)
            return 0;
        ret_spans[n++] = (Span){.first = call, .verdict = verdict};
    }
    return n;
}

static uint8_t
jump(const Tree *tree, size_t from, size_t lo, size_t hi, size_t below)
{
    size_t target = hi - lo == 1 ? tree->end + tree->spans[lo].verdict : below;

    return (uint8_t)(target - from - 1);
}

/* One comparison for the spans from `lo` up to `hi`, at `at`; those of the lower half follow it, and
 * then those of the upper one. */
static void
emit(const Tree *tree, size_t lo, size_t hi, size_t at)
{
    if (hi - lo < 2)
        return;
    size_t mid = lo + (hi - lo) / 2;
    size_t lower = at + 1;
    size_t upper = lower + (mid - lo - 1);

    tree->insns[at] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, tree->spans[mid].first,
                                                   jump(tree, at, mid, hi, upper),
                                                   jump(tree, at, lo, mid, lower));
    emit(tree, lo, mid, lower);
    emit(tree, mid, hi, upper);
}

bool
filter_names_build(uint32_t arch, FilterProgram *ret_program, GError **error)
{
    const struct sock_filter head[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    uint8_t verdicts[CALLS_MAX] = {0};
    Span spans[SPANS_MAX];

    if (!mark(arch, filter_allowed, VERDICT_ALLOWED, verdicts, error) ||
        !mark(arch, filter_refused, VERDICT_REFUSED, verdicts, error))
        return false;
    size_t n = make_spans(verdicts, spans);

    if (n == 0)
        return err_set(error, ERR_INTERNAL, "the lists of system calls have too many spans");
    Tree tree = {.spans = spans, .insns = ret_program->insns, .end = G_N_ELEMENTS(head) + n - 1};

    memcpy(ret_program->insns, head, sizeof head);
    emit(&tree, 0, n, G_N_ELEMENTS(head));
    ret_program->insns[tree.end + VERDICT_UNKNOWN] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                                                  SECCOMP_RET_ERRNO | ENOSYS);
    ret_program->insns[tree.end + VERDICT_REFUSED] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                                                  SECCOMP_RET_ERRNO | EPERM);
    ret_program->n = tree.end + VERDICT_ALLOWED;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/mman.h>

#include "base/callfilter.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "keeper/filter-table.h"

/* Names are a binary search: about nine comparisons for any call. */
enum { OPTIMIZE_TREE = 2 };

static int
fill_names(scmp_filter_ctx context)
{
    int result = callfilter_add_names(context, filter_allowed, SCMP_ACT_ALLOW);

    if (result == 0)
        result = callfilter_add_names(context, filter_refused, SCMP_ACT_ERRNO(EPERM));
    return result;
}

static int
fill_arguments(scmp_filter_ctx context)
{
    int result = 0;

    for (const FilterRule *rule = filter_rules; rule->call != NULL && result == 0; rule++)
        result = seccomp_rule_add_array(context, SCMP_ACT_ERRNO((uint16_t)rule->error),
                                        seccomp_syscall_resolve_name(rule->call), rule->n, rule->compare);
    return result;
}

static int
set_arch(scmp_filter_ctx context, uint32_t arch)
{
    uint32_t native = seccomp_arch_native();
    int result;

    if (arch == SCMP_ARCH_NATIVE || arch == native)
        return 0;
    result = seccomp_arch_add(context, arch);
    return result != 0 ? result : seccomp_arch_remove(context, native);
}

/* Rules reach only the architectures that are there when they are added: the 32-bit-pointer
 * calls of x86-64 get none, so that they do not exist. */
static int
close_x32(scmp_filter_ctx context, uint32_t arch)
{
    if (arch == SCMP_ARCH_NATIVE)
        arch = seccomp_arch_native();
    return arch == SCMP_ARCH_X86_64 ? seccomp_arch_add(context, SCMP_ARCH_X32) : 0;
}

static bool
export_program(scmp_filter_ctx context, FilterProgram *ret_program, GError **error)
{
    autofd fd = memfd_create("filter", MFD_CLOEXEC);

    if (fd < 0)
        return err_errno(error, "make a memory file for the system call filter");
    int result = seccomp_export_bpf(context, fd);

    if (result != 0)
        return err_set(error, ERR_INTERNAL, "make the system call filter: %s", g_strerror(-result));
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(error, "rewind the system call filter");
    ssize_t n = io_read_full(fd, ret_program->insns, sizeof ret_program->insns);

    if (n < 0)
        return err_errno(error, "read the system call filter");
    if (n == 0 || (size_t)n == sizeof ret_program->insns || (size_t)n % sizeof ret_program->insns[0] != 0)
        return err_set(error, ERR_INTERNAL, "the system call filter has %zd bytes", n);
    ret_program->n = (size_t)n / sizeof ret_program->insns[0];
    return true;
}

/* Only the plain personalities, Linux and Linux32, with or without old answers of uname, and the
 * question which one is set (all bits).  libseccomp has no "any bit but these", so this part is
 * ours, in front of the rest; another architecture is dealt with by the list of names. */
static bool
refuse_personalities(uint32_t arch, FilterProgram *program, GError **error)
{
    enum { PER_LINUX32_BIT = 8, UNAME26_BIT = 0x20000 };
    int call = seccomp_syscall_resolve_name_arch(arch == SCMP_ARCH_NATIVE ? seccomp_arch_native() : arch,
                                                 "personality");
    const struct sock_filter head[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 3, 0),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)(PER_LINUX32_BIT | UNAME26_BIT)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };

    if (program->n + G_N_ELEMENTS(head) > G_N_ELEMENTS(program->insns))
        return err_set(error, ERR_INTERNAL, "the system call filter is too long");
    memmove(program->insns + G_N_ELEMENTS(head), program->insns, program->n * sizeof program->insns[0]);
    memcpy(program->insns, head, sizeof head);
    program->n += G_N_ELEMENTS(head);
    return true;
}

bool
filter_build(FilterPart part, uint32_t arch, FilterProgram *ret_program, GError **error)
{
    bool names = part == FILTER_NAMES;
    auto_callfilter context = seccomp_init(names ? SCMP_ACT_ERRNO(ENOSYS) : SCMP_ACT_ALLOW);
    int result;

    if (context == NULL)
        return err_set(error, ERR_INTERNAL, "make the system call filter");
    result = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, OPTIMIZE_TREE);
    if (result == 0)
        result = set_arch(context, arch);
    if (result == 0)
        result = names ? fill_names(context) : fill_arguments(context);
    if (result == 0)
        result = close_x32(context, arch);
    if (result != 0)
        return err_set(error, ERR_INTERNAL, "fill the system call filter: %s", g_strerror(-result));
    return export_program(context, ret_program, error) &&
           (names || refuse_personalities(arch, ret_program, error));
}

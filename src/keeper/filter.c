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
#include "keeper/filter-names.h"
#include "keeper/filter-table.h"

/* Names are a binary search there too. */
enum { OPTIMIZE_TREE = 2 };

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

    if (arch == native)
        return 0;
    result = seccomp_arch_add(context, arch);
    return result != 0 ? result : seccomp_arch_remove(context, native);
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

static bool
append(const struct sock_filter *insns, size_t n, FilterProgram *program, GError **error)
{
    if (n > G_N_ELEMENTS(program->insns) - program->n)
        return err_set(error, ERR_INTERNAL, "the system call filter is too long");
    memcpy(program->insns + program->n, insns, n * sizeof insns[0]);
    program->n += n;
    return true;
}

/* Only the plain personalities, Linux and Linux32, with or without old answers of uname, and the
 * question which one is set (all bits).  libseccomp has no "any bit but these", so this part is
 * ours, in front of the rest. */
static bool
add_personalities(uint32_t arch, FilterProgram *program, GError **error)
{
    enum { PER_LINUX32_BIT = 8, UNAME26_BIT = 0x20000 };
    int call = seccomp_syscall_resolve_name_arch(arch, "personality");
    const struct sock_filter part[] = {
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 3, 0),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)(PER_LINUX32_BIT | UNAME26_BIT)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };

    return append(part, G_N_ELEMENTS(part), program, error);
}

static bool
arguments_build(uint32_t arch, FilterProgram *ret_program, GError **error)
{
    auto_callfilter context = seccomp_init(SCMP_ACT_ALLOW);
    int result;

    if (context == NULL)
        return err_set(error, ERR_INTERNAL, "make the system call filter");
    result = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, OPTIMIZE_TREE);
    if (result == 0)
        result = set_arch(context, arch);
    if (result == 0)
        result = fill_arguments(context);
    if (result != 0)
        return err_set(error, ERR_INTERNAL, "fill the system call filter: %s", g_strerror(-result));
    return export_program(context, ret_program, error);
}

bool
filter_build(uint32_t arch, FilterProgram *ret_program, GError **error)
{
    FilterProgram arguments;

    if (arch == SCMP_ARCH_NATIVE)
        arch = seccomp_arch_native();
    return filter_names_build(arch, ret_program, error) && add_personalities(arch, ret_program, error) &&
           arguments_build(arch, &arguments, error) &&
           append(arguments.insns, arguments.n, ret_program, error);
}

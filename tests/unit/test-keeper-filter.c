/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <glib.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "keeper/filter-table.h"
#include "keeper/filter.h"

/* The program is run here, in an interpreter of the few instructions it uses, so that every call of
 * both architectures is looked at without making one. */

enum { CALLS = 480, X32_BIT = 0x40000000, INSNS_GOOD = 350, STEPS_GOOD = 60 };

typedef struct Machine {
    FilterProgram program;
    guint32 audit_arch;
    guint longest; /* path of instructions */
} Machine;

static guint32
load(const struct seccomp_data *data, guint32 offset)
{
    guint32 word;

    g_assert_cmpuint(offset + sizeof word, <=, sizeof *data);
    memcpy(&word, (const char *)data + offset, sizeof word);
    return word;
}

static bool
jump_is_taken(const struct sock_filter *insn, guint32 accumulator)
{
    switch (BPF_OP(insn->code)) {
    case BPF_JEQ:
        return accumulator == insn->k;
    case BPF_JGT:
        return accumulator > insn->k;
    case BPF_JGE:
        return accumulator >= insn->k;
    case BPF_JSET:
        return (accumulator & insn->k) != 0;
    default:
        g_assert_not_reached();
    }
}

static guint32
run_program(const FilterProgram *program, const struct seccomp_data *data, guint *steps)
{
    guint32 a = 0;

    for (size_t at = 0; at < program->n; at++, (*steps)++) {
        const struct sock_filter *insn = &program->insns[at];

        if (BPF_CLASS(insn->code) == BPF_RET)
            return insn->k;
        if (insn->code == (BPF_LD | BPF_W | BPF_ABS))
            a = load(data, insn->k);
        else if (insn->code == (BPF_ALU | BPF_AND | BPF_K))
            a &= insn->k;
        else if (insn->code == (BPF_JMP | BPF_JA))
            at += insn->k;
        else if (BPF_CLASS(insn->code) == BPF_JMP)
            at += jump_is_taken(insn, a) ? insn->jt : insn->jf;
        else
            g_assert_not_reached();
    }
    g_assert_not_reached();
}

static guint32
run_filter(Machine *m, guint32 arch, int call, const guint64 *args)
{
    struct seccomp_data data = {.nr = call, .arch = arch};
    guint steps = 0;

    if (args != NULL)
        memcpy(data.args, args, sizeof data.args);
    guint32 action = run_program(&m->program, &data, &steps);

    m->longest = MAX(m->longest, steps);
    return action;
}

static void
machine_init(Machine *m, guint32 arch, guint32 audit_arch)
{
    g_autoptr(GError) error = NULL;

    *m = (Machine){.audit_arch = audit_arch};
    g_assert_true(filter_build(arch, &m->program, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(m->program.n, <, INSNS_GOOD);
    g_test_message("%zu instructions", m->program.n);
}

/* One letter a call number, with arguments of 0: A allowed, P EPERM, S ENOSYS, F EAFNOSUPPORT. */
static const char golden_x86_64[] =
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFAAAAAAAAAAAFAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAPAPAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPAPAAPAAAAAAAAAAAAAPPPPAAP"
    "APAPPPPPPPPPPPPPPPPPPSSSSSAAAAAAAAAAAAAAAAAAASAAAAASPASSPAAAAAAAAAAPAAAAAAAASPPA"
    "AAAAAAPAPPPAAAAAPAAAAAAAAAAAAAAAPAAAAAPPAAAAAAAAAAAAAAAAAAPAPPAPPPAAPAPPPPAAAAAA"
    "PPAPAAAAAAAAAAASSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS"
    "SSSSSSSSSSSSSSSSSSSSSSSSASSSSSSSSSASAAPAPASSAAAPPASSSSSSSSSSSSSSSSSSSSSSSSSSSSSS";
static const char golden_aarch64[] =
    "AAAAAAAAAAAAAAAAAAPAAAAAAAAAAAAAAAAAAAAPPPPAAAAAAAAPAAAAAAPAPAAAAAAAAAAAAAAPAAAA"
    "AAAAAAAAAPAAAAAAAPAAAAAAPPPAAAAAPAAAPPAAAAAAAAAAAAAAAAAAAAAAAAPAAAAAAAAAAAAAAAAA"
    "APPAAAAAAAPPAAAAAAAAAAAAAAAAAAAAAAAAAAFFAAAAAAAAAAAAAAAAAPPPAAAAPPAAAAAAAAPPAPPP"
    "APAASSSSSSSSSSSSSSSSAAPPPPPAPAPPPPAAAAAAPAPAAAAAAAAAAAPSSSSSSSSSSSSSSSSSSSSSSSSS"
    "SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS"
    "SSSSSSSSSSSSSSSSSSSSSSSSASSSSSSSSSASAAPAPASSAAAPPASSSSSSSSSSSSSSSSSSSSSSSSSSSSSS";

static char
letter(guint32 action)
{
    switch (action) {
    case SECCOMP_RET_ALLOW:
        return 'A';
    case SECCOMP_RET_ERRNO | EPERM:
        return 'P';
    case SECCOMP_RET_ERRNO | ENOSYS:
        return 'S';
    case SECCOMP_RET_ERRNO | EAFNOSUPPORT:
        return 'F';
    default:
        return '?';
    }
}

static void
check_golden(guint32 arch, guint32 audit_arch, const char *golden)
{
    char found[CALLS + 1] = "";
    Machine m;

    machine_init(&m, arch, audit_arch);
    for (int call = 0; call < CALLS; call++)
        found[call] = letter(run_filter(&m, audit_arch, call, NULL));
    g_assert_cmpstr(found, ==, golden);
    g_assert_cmpuint(m.longest, <, STEPS_GOOD);
    g_test_message("the longest path has %u instructions", m.longest);
}

static void
test_golden(void)
{
    check_golden(SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64, golden_x86_64);
    check_golden(SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64, golden_aarch64);
}

#define HIGH (UINT64_C(1) << 32)

static const struct {
    const char *call;
    guint64 args[6];
    int error; /* 0: allowed */
} cases[] = {
    {"clone", {0x11}, 0},
    {"clone", {0x3d0f00}, 0}, /* a thread */
    {"clone", {0x10000000 | 0x11}, EPERM},
    {"clone", {0x20000}, EPERM},
    {"clone", {0x02000000}, EPERM},
    {"clone", {0x04000000}, EPERM},
    {"clone", {0x08000000}, EPERM},
    {"clone", {0x20000000}, EPERM},
    {"clone", {0x40000000}, EPERM},
    {"clone", {0x80}, EPERM},
    {"socket", {AF_UNIX, SOCK_STREAM}, 0},
    {"socket", {AF_UNIX, SOCK_SEQPACKET}, 0},
    {"socket", {AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK}, 0},
    {"socket", {AF_INET6, SOCK_DGRAM}, 0},
    {"socket", {AF_INET, SOCK_RAW}, EPERM},
    {"socket", {AF_INET, SOCK_RAW | SOCK_CLOEXEC}, EPERM},
    {"socket", {AF_INET6, SOCK_RAW}, EPERM},
    {"socket", {AF_INET, SOCK_SEQPACKET}, EPERM},
    {"socket", {AF_INET, SOCK_PACKET}, EPERM},
    {"socket", {AF_INET, 0}, EPERM},
    {"socket", {HIGH | AF_INET, SOCK_STREAM}, EAFNOSUPPORT},
    {"socket", {AF_INET, HIGH | SOCK_RAW}, EPERM},
    {"socket", {AF_NETLINK, SOCK_RAW, 0}, 0},
    {"socket", {AF_NETLINK, SOCK_RAW, 12}, EAFNOSUPPORT},
    {"socket", {AF_NETLINK, SOCK_RAW, HIGH | 6}, EAFNOSUPPORT},
    {"socket", {AF_PACKET, SOCK_RAW}, EAFNOSUPPORT},
    {"socket", {AF_VSOCK, SOCK_STREAM}, EAFNOSUPPORT},
    {"socket", {HIGH | AF_VSOCK, SOCK_STREAM}, EAFNOSUPPORT},
    {"socket", {AF_ALG, SOCK_SEQPACKET}, EAFNOSUPPORT},
    {"socket", {AF_AX25, SOCK_DGRAM}, EAFNOSUPPORT},
    {"socket", {HIGH | AF_AX25, SOCK_DGRAM}, EAFNOSUPPORT},
    {"socket", {AF_UNSPEC}, EAFNOSUPPORT},
    {"socket", {G_MAXUINT64}, EAFNOSUPPORT},
    {"socketpair", {AF_UNIX, SOCK_STREAM}, 0},
    {"socketpair", {AF_INET, SOCK_STREAM}, EAFNOSUPPORT},
    {"setsockopt", {3, 6, 1}, 0},
    {"setsockopt", {3, 6, 31}, EPERM},
    {"setsockopt", {3, HIGH | 6, HIGH | 31}, EPERM},
    {"setsockopt", {3, 279, 1}, EPERM},
    {"setsockopt", {3, 0, 1}, 0},
    {"setsockopt", {3, 0, 64}, EPERM},
    {"setsockopt", {3, 0, 96}, EPERM},
    {"setsockopt", {3, 41, 64}, EPERM},
    {"setsockopt", {3, 41, 65}, EPERM},
    {"setsockopt", {3, 41, 67}, 0},
    {"setsockopt", {3, 1, 2}, 0},
    {"ioctl", {0, 0x5401}, 0},
    {"ioctl", {0, 0x5413}, 0},
    {"ioctl", {0, 0x5412}, EPERM},
    {"ioctl", {0, HIGH | 0x5412}, EPERM},
    {"ioctl", {0, 0x541c}, EPERM},
    {"ioctl", {0, 0x5423}, EPERM},
    {"ioctl", {0, 0x401c5820}, EPERM},
    {"ioctl", {0, 0x40086602}, EPERM},
    {"ioctl", {0, 0x40046602}, EPERM},
    {"ioctl", {0, 0xc0045877}, EPERM},
    {"ioctl", {0, 0x4c00}, EPERM},
    {"ioctl", {0, 0x4c82}, EPERM},
    {"ioctl", {0, 0xc138fd00}, EPERM},
    {"futex", {0, 0}, 0},
    {"futex", {0, 128 | 9}, 0},
    {"futex", {0, 11}, ENOSYS},
    {"futex", {0, 128 | 256 | 11}, ENOSYS},
    {"futex", {0, 12}, ENOSYS},
    {"personality", {0}, 0},
    {"personality", {0x20008}, 0},
    {"personality", {0xffffffff}, 0},
    {"personality", {8}, 0},
    {"personality", {0x20000}, 0},
    {"personality", {0x40000}, EPERM},
    {"personality", {0x400000}, EPERM},
    {"personality", {1}, EPERM},
    {"personality", {0x30000}, EPERM},
    {"personality", {0x2000c}, EPERM},
    {"personality", {0x80000000}, EPERM},
    {"personality", {0xfffffff7}, EPERM},
    {"personality", {0xfffdffff}, EPERM},
    {"personality", {0xfffffffe}, EPERM},
    {"personality", {0x7fffffff}, EPERM},
    {"personality", {UINT64_C(0x100000000)}, 0},
    {"personality", {UINT64_C(0x100040000)}, EPERM},
    {"prctl", {PR_SET_NAME}, 0},
    {"prctl", {PR_SET_MM, 1}, EPERM},
    {"prctl", {HIGH | PR_SET_MM, 1}, EPERM},
    {"prctl", {0x59616d61, G_MAXUINT64}, EPERM},
    {"prctl", {62}, EPERM},
    {"mknodat", {0, 0, S_IFIFO | 0600}, 0},
    {"mknodat", {0, 0, S_IFREG | 0600}, 0},
    {"mknodat", {0, 0, S_IFCHR | 0600}, EPERM},
    {"mknodat", {0, 0, S_IFBLK | 0600}, EPERM},
    {"unshare", {0}, EPERM},
    {"setns", {0}, EPERM},
    {"mount", {0}, EPERM},
    {"clone3", {0}, ENOSYS},
    {"io_uring_setup", {0}, ENOSYS},
    {"fsopen", {0}, ENOSYS},
    {"ptrace", {0}, EPERM},
    {"bpf", {0}, EPERM},
    {"keyctl", {0}, EPERM},
    {"execveat", {0}, 0},
    {"seccomp", {0}, 0},
};

static void
check_cases(guint32 arch, guint32 audit_arch)
{
    Machine m;

    machine_init(&m, arch, audit_arch);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        int call = seccomp_syscall_resolve_name_arch(arch, cases[i].call);
        guint32 action = run_filter(&m, audit_arch, call, cases[i].args);
        guint32 wanted = cases[i].error == 0 ? SECCOMP_RET_ALLOW
                                             : SECCOMP_RET_ERRNO | (guint32)cases[i].error;

        g_test_message("%s(%" G_GINT64_MODIFIER "x, %" G_GINT64_MODIFIER "x)", cases[i].call,
                       cases[i].args[0], cases[i].args[1]);
        g_assert_cmpint(call, >=, 0);
        g_assert_cmphex(action, ==, wanted);
    }
}

static void
test_arguments(void)
{
    check_cases(SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64);
    check_cases(SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64);
}

static void
test_foreign(void)
{
    Machine m;

    machine_init(&m, SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64);
    for (int call = 0; call < CALLS; call++) {
        g_assert_cmphex(run_filter(&m, AUDIT_ARCH_I386, call, NULL), ==, SECCOMP_RET_KILL_PROCESS);
        g_assert_cmphex(run_filter(&m, AUDIT_ARCH_X86_64, X32_BIT | call, NULL), ==,
                        SECCOMP_RET_ERRNO | ENOSYS);
    }
}

/* A name in two lists would be decided by their order. */
static void
test_lists(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    for (size_t i = 0; filter_allowed[i] != NULL; i++)
        g_assert_true(g_hash_table_add(seen, (gpointer)(guintptr)filter_allowed[i]));
    for (size_t i = 0; filter_refused[i] != NULL; i++)
        g_assert_true(g_hash_table_add(seen, (gpointer)(guintptr)filter_refused[i]));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/filter/golden", test_golden);
    g_test_add_func("/filter/arguments", test_arguments);
    g_test_add_func("/filter/foreign", test_foreign);
    g_test_add_func("/filter/lists", test_lists);
    return g_test_run();
}

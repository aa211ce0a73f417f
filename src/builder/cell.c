/* SPDX-License-Identifier: Apache-2.0 */
#include "builder/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "builder/cell-private.h"
#include "builder/space.h"

enum { OUTPUT_MAX = 64 * 1024 };

static bool
write_map(pid_t pid, const char *file)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/%s", (int)pid, file);
    g_autofree char *text = g_strdup_printf("0 0 %d\n", SPACE_IDS);
    autofd fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && io_write_all(fd, text, strlen(text));
}

typedef struct Output {
    const CellSpec *spec;
    GQueue tail;
    char line[CELL_LINE_MAX];
    size_t n;
} Output;

static void
end_line(Output *o)
{
    o->line[o->n] = '\0';
    o->n = 0;
    if (o->line[0] == '\0')
        return;
    if (o->spec->line != NULL)
        o->spec->line(o->line, o->spec->line_data);
    g_queue_push_tail(&o->tail, g_strdup(o->line));
    if (g_queue_get_length(&o->tail) > CELL_TAIL_LINES)
        g_free(g_queue_pop_head(&o->tail));
}

static void
take(Output *o, const char *bytes, size_t n)
{
    GString *all = o->spec->output;

    if (all != NULL && all->len < OUTPUT_MAX)
        g_string_append_len(all, bytes, (gssize)MIN(n, OUTPUT_MAX - all->len));
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r' || o->n == sizeof o->line - 1)
            end_line(o);
        if (bytes[i] != '\n' && bytes[i] != '\r')
            o->line[o->n++] = bytes[i] != '\0' ? bytes[i] : ' ';
    }
}

/* Until pid 1 of the cell has ended: with it goes everybody who could still write. */
static void
read_output(Output *o, int fd)
{
    char bytes[8192];
    ssize_t n;

    while ((n = TEMP_FAILURE_RETRY(read(fd, bytes, sizeof bytes))) > 0)
        take(o, bytes, (size_t)n);
    end_line(o);
}

static char *
join_tail(GQueue *tail)
{
    GString *text = g_string_new(NULL);

    for (GList *l = tail->head; l != NULL; l = l->next)
        g_string_append_printf(text, "%s%s", l == tail->head ? "" : "\n", (const char *)l->data);
    return g_string_free(text, FALSE);
}

static int
judge(const CellSpec *spec, int status, GQueue *tail, GError **error)
{
    g_autofree char *text = join_tail(tail);
    const char *name = spec->argv != NULL ? spec->argv[0] : "a step of its own";

    if (WIFEXITED(status) && WEXITSTATUS(status) == CELL_CODE_SETUP) {
        err_set(error, ERR_UNAVAILABLE, "%s cannot be confined: %s", name, text);
        return -1;
    }
    if (WIFSIGNALED(status)) {
        err_set(error, ERR_INTERNAL, "%s was ended by signal %d: %s", name, WTERMSIG(status), text);
        return -1;
    }
    if (WEXITSTATUS(status) != 0)
        err_set(error, ERR_UNAVAILABLE, "%s failed (%d): %s", name, WEXITSTATUS(status), text);
    return WEXITSTATUS(status);
}

static pid_t
clone_cell(const CellSpec *spec)
{
    unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD;

    if (!spec->network)
        flags |= CLONE_NEWNET;
    return (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, 0);
}

int
cell_code(const CellSpec *spec, GError **error)
{
    int ready[2];
    int output[2];
    int status;

    if (pipe2(ready, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe") ? 0 : -1;
    autofd ready_read = ready[0];
    autofd ready_write = ready[1];
    if (pipe2(output, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe") ? 0 : -1;
    autofd output_read = output[0];
    autofd output_write = output[1];
    pid_t pid = clone_cell(spec);

    if (pid < 0)
        return err_errno(error, "make the namespaces of a cell") ? 0 : -1;
    if (pid == 0)
        cell_child(spec, ready_read, output_write);
    close(g_steal_fd(&output_write));
    bool mapped = write_map(pid, "uid_map") && write_map(pid, "gid_map");
    if (!mapped || write(ready_write, "x", 1) != 1) {
        err_errno(error, "give ids to a cell");
        kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0); /* it is gone either way */
        return -1;
    }
    Output o = {.spec = spec, .tail = G_QUEUE_INIT};

    read_output(&o, output_read);
    if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) < 0)
        return err_errno(error, "wait for a cell") ? 0 : -1;
    int code = judge(spec, status, &o.tail, error);
    g_queue_clear_full(&o.tail, g_free);
    return code;
}

bool
cell_run(const CellSpec *spec, GError **error)
{
    return cell_code(spec, error) == 0;
}

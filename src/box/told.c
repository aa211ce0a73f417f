/* SPDX-License-Identifier: Apache-2.0 */
#include "box/told.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { VERSION = 1 };

typedef struct ToldEntry {
    char id[ID_BOX_LEN];
    gint64 born_us;
} ToldEntry;

/* A ring.  An entry is whole before `count` says so. */
typedef struct ToldFile {
    guint64 version;
    gint64 since_us; /* boxes that are older may have been forgotten */
    guint64 count;   /* ever added */
    ToldEntry entries[TOLD_MAX];
} ToldFile;

struct Told {
    ToldFile *file;
};

static ToldFile *
map(const char *path, GError **error)
{
    autofd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        err_errno(error, "open '%s'", path);
        return NULL;
    }
    /* A page without a block behind it would be a SIGBUS when the disk is full. */
    errno = posix_fallocate(fd, 0, sizeof(ToldFile));
    if (errno != 0) {
        err_errno(error, "make room for '%s'", path);
        return NULL;
    }
    void *file = mmap(NULL, sizeof(ToldFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) {
        err_errno(error, "map '%s'", path);
        return NULL;
    }
    return file;
}

Told *
told_open(const char *path, gint64 now_us, GError **error)
{
    ToldFile *file = map(path, error);

    if (file == NULL)
        return NULL;
    /* A later time is of before the machine was started anew. */
    if (file->version != VERSION || file->since_us > now_us || file->since_us <= 0) {
        memset(file, 0, sizeof *file);
        file->since_us = now_us;
        file->version = VERSION;
    }
    Told *told = g_new(Told, 1);
    told->file = file;
    return told;
}

void
told_close(Told *told)
{
    if (told == NULL)
        return;
    munmap(told->file, sizeof *told->file);
    g_free(told);
}

void
told_add(Told *told, const char id[static ID_BOX_LEN], gint64 born_us)
{
    ToldFile *file = told->file;
    ToldEntry *entry = &file->entries[file->count % TOLD_MAX];

    if (file->count >= TOLD_MAX)
        file->since_us = MAX(file->since_us, entry->born_us + 1);
    memcpy(entry->id, id, ID_BOX_LEN);
    entry->born_us = born_us;
    file->count++;
}

bool
told_has(const Told *told, const char *id, gint64 born_us)
{
    const ToldFile *file = told->file;
    size_t n = (size_t)MIN(file->count, (guint64)TOLD_MAX);

    if (born_us < file->since_us)
        return true;
    for (size_t i = 0; i < n; i++) {
        if (memcmp(file->entries[i].id, id, ID_BOX_LEN) == 0)
            return true;
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The operations of wire/builtin.h, in a process that is the user's: input on descriptor 0,
 * output on 1.  Each returns 0 or an errno. */
int builtin_run(int argc, const char *const *argv);

int builtin_stat(const char *const *args);
int builtin_list(const char *const *args);
int builtin_read(const char *const *args);
int builtin_write(const char *const *args);
int builtin_mkdir(const char *const *args);
int builtin_move(const char *const *args);
int builtin_remove(const char *const *args);
int builtin_chmod(const char *const *args);
int builtin_watch(const char *const *args);
int builtin_tar_out(const char *const *args);
int builtin_tar_in(const char *const *args);

/* The whole text is a number of that base. */
bool number_parse(const char *text, unsigned base, uint64_t max, uint64_t *ret_number);

/* openat() that follows no magic link, waits for no FIFO and refuses /proc.  -1 with errno. */
int file_open(int dir_fd, const char *path, int flags, mode_t mode);
/* An ordinary file to read. */
int file_open_regular(const char *path, struct stat *ret_stat);
/* A folder below `dir_fd`, by a path without links and mount points. */
int folder_open_below(int dir_fd, const char *path);
/* As getdents64() gives it. */
typedef struct Dirent {
    uint64_t inode;
    int64_t next; /* where to seek for what follows */
    uint16_t bytes;
    uint8_t type;
    char name[];
} Dirent;
bool name_is_dots(const char *name);
/* 0 or an errno. */
int file_write_all(int fd, const void *bytes, size_t n);
/* `name` as it is known, "" for none. */
int entry_write(int dir_fd, const char *name, const struct stat *st);

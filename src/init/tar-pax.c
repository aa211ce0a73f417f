/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "init/tar.h"

enum { LENGTH_DIGITS_MAX = 8, NANO_DIGITS = 9 };

typedef struct Record {
    const char *key;
    size_t key_n;
    const char *value;
    size_t value_n;
} Record;

/* "LENGTH KEY=VALUE\n", where LENGTH counts all of it.  Bytes, or 0. */
static size_t
take_record(const char *text, size_t n, Record *ret_record)
{
    size_t length = 0;
    size_t at = 0;

    for (; at < n && at < LENGTH_DIGITS_MAX && text[at] >= '0' && text[at] <= '9'; at++)
        length = length * 10 + (size_t)(text[at] - '0');
    if (at == 0 || at >= n || text[at] != ' ' || length > n || length < at + 3 || text[length - 1] != '\n')
        return 0;
    const char *key = text + at + 1;
    const char *equals = memchr(key, '=', length - at - 2);
    if (equals == NULL || equals == key)
        return 0;
    *ret_record = (Record){.key = key,
                           .key_n = (size_t)(equals - key),
                           .value = equals + 1,
                           .value_n = (size_t)(text + length - 1 - (equals + 1))};
    return length;
}

static bool
key_is(const Record *record, const char *key)
{
    return record->key_n == strlen(key) && memcmp(record->key, key, record->key_n) == 0;
}

/* A name with a NUL in it would be another one than the writer meant. */
static int
take_name(const Record *record, char *out, bool *ret_has)
{
    if (record->value_n >= TAR_PATH_MAX)
        return ENAMETOOLONG;
    if (memchr(record->value, '\0', record->value_n) != NULL)
        return EBADMSG;
    memcpy(out, record->value, record->value_n);
    out[record->value_n] = '\0';
    /* An empty value takes back what was said. */
    *ret_has = record->value_n > 0;
    return 0;
}

static int
take_number(const Record *record, uint64_t *ret_number, bool *ret_has)
{
    uint64_t number = 0;

    for (size_t i = 0; i < record->value_n; i++) {
        unsigned digit = (unsigned)(unsigned char)record->value[i] - '0';

        if (digit > 9 || number > ((uint64_t)INT64_MAX - digit) / 10)
            return EBADMSG;
        number = number * 10 + digit;
    }
    *ret_number = number;
    *ret_has = record->value_n > 0;
    return 0;
}

/* "-12.345"; what lies behind the ninth digit is left out. */
static int
take_time(const Record *record, TarExtra *extra)
{
    bool negative = record->value_n > 0 && record->value[0] == '-';
    Record whole = *record;
    long nanos = 0;
    uint64_t seconds;
    bool has;

    whole.value += negative ? 1 : 0;
    whole.value_n -= negative ? 1 : 0;
    const char *dot = memchr(whole.value, '.', whole.value_n);
    size_t digits = dot != NULL ? whole.value_n - (size_t)(dot + 1 - whole.value) : 0;
    whole.value_n = dot != NULL ? (size_t)(dot - whole.value) : whole.value_n;
    int e = take_number(&whole, &seconds, &has);
    for (size_t i = 0; i < NANO_DIGITS; i++) {
        char c = i < digits ? dot[1 + i] : '0';

        if (c < '0' || c > '9')
            return EBADMSG;
        nanos = nanos * 10 + (c - '0');
    }
    if (e != 0)
        return e;
    extra->has_mtime = has;
    extra->mtime.tv_sec = negative ? -(time_t)seconds : (time_t)seconds;
    extra->mtime.tv_nsec = nanos;
    if (negative && nanos > 0) {
        extra->mtime.tv_sec--;
        extra->mtime.tv_nsec = 1000000000 - nanos;
    }
    return 0;
}

static int
take_sparse(const Record *record, TarExtra *extra)
{
    uint64_t number;
    bool has;
    int e;

    if (key_is(record, "GNU.sparse.name"))
        return take_name(record, extra->path, &extra->has_path);
    if (key_is(record, "GNU.sparse.realsize"))
        return take_number(record, &extra->real_size, &extra->has_real_size);
    if (!key_is(record, "GNU.sparse.major") && !key_is(record, "GNU.sparse.minor")) {
        extra->unknown_sparse = true;
        return 0;
    }
    e = take_number(record, &number, &has);
    if (e != 0)
        return e;
    if (key_is(record, "GNU.sparse.major"))
        extra->sparse_major = number == 1 ? 1 : 0;
    extra->unknown_sparse |= number != (key_is(record, "GNU.sparse.major") ? 1 : 0);
    return 0;
}

static int
take(const Record *record, TarExtra *extra)
{
    if (key_is(record, "path"))
        return take_name(record, extra->path, &extra->has_path);
    if (key_is(record, "linkpath"))
        return take_name(record, extra->target, &extra->has_target);
    if (key_is(record, "size"))
        return take_number(record, &extra->size, &extra->has_size);
    if (key_is(record, "mtime"))
        return take_time(record, extra);
    if (record->key_n > 11 && memcmp(record->key, "GNU.sparse.", 11) == 0)
        return take_sparse(record, extra);
    return 0;
}

int
tar_pax_parse(const char *text, size_t n, TarExtra *extra)
{
    Record record;

    while (n > 0) {
        size_t length = take_record(text, n, &record);
        int e = length > 0 ? take(&record, extra) : EBADMSG;

        if (e != 0)
            return e;
        text += length;
        n -= length;
    }
    return 0;
}

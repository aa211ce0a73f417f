/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 8446, 5.1 (records), 4.1.2 (ClientHello), RFC 6066, 3 (server_name).  The message may be
 * spread over many records, so it is put together first. */
#include "door/sni.h"

#include <string.h>

enum {
    RECORD_HEAD = 5,
    RECORD_HANDSHAKE = 22,
    RECORD_MAX = 16 * 1024,
    MESSAGE_HEAD = 4,
    MESSAGE_CLIENT_HELLO = 1,
    RANDOM_LEN = 32,
    SESSION_ID_MAX = 32,
    EXTENSION_SERVER_NAME = 0,
    NAME_TYPE_HOST = 0,
};

/* What is left to read; every take checks. */
typedef struct Cursor {
    const guint8 *at;
    size_t left;
} Cursor;

static bool
take(Cursor *c, size_t n, const guint8 **ret)
{
    if (c->left < n)
        return false;
    *ret = c->at;
    c->at += n;
    c->left -= n;
    return true;
}

static bool
take_number(Cursor *c, guint bytes, size_t *ret)
{
    const guint8 *p;

    if (!take(c, bytes, &p))
        return false;
    *ret = 0;
    for (guint i = 0; i < bytes; i++)
        *ret = *ret << 8 | p[i];
    return true;
}

/* A vector: its length in `bytes` bytes, then that many. */
static bool
take_vector(Cursor *c, guint bytes, Cursor *ret)
{
    return take_number(c, bytes, &ret->left) && take(c, ret->left, &ret->at);
}

/* ---- the message ---- */

static bool
read_server_name(Cursor extension, char ret_name[DOOR_NAME_MAX + 1])
{
    Cursor list, name;
    size_t type;

    if (!take_vector(&extension, 2, &list) || extension.left > 0 || !take_number(&list, 1, &type) ||
        type != NAME_TYPE_HOST || !take_vector(&list, 2, &name) || list.left > 0)
        return false;
    if (name.left == 0 || name.left > DOOR_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.left; i++) {
        if (!g_ascii_isalnum(name.at[i]) && name.at[i] != '-' && name.at[i] != '.')
            return false;
    }
    memcpy(ret_name, name.at, name.left);
    ret_name[name.left] = '\0';
    return true;
}

static SniResult
read_extensions(Cursor extensions, char ret_name[DOOR_NAME_MAX + 1])
{
    SniResult result = SNI_NONE;

    while (extensions.left > 0) {
        Cursor body;
        size_t type;

        if (!take_number(&extensions, 2, &type) || !take_vector(&extensions, 2, &body))
            return SNI_BAD;
        if (type != EXTENSION_SERVER_NAME)
            continue;
        if (result == SNI_NAME || !read_server_name(body, ret_name))
            return SNI_BAD;
        result = SNI_NAME;
    }
    return result;
}

static SniResult
read_hello(Cursor hello, char ret_name[DOOR_NAME_MAX + 1])
{
    const guint8 *skipped;
    Cursor session, suites, compressions, extensions;
    size_t version;

    if (!take_number(&hello, 2, &version) || version >> 8 != 3 || !take(&hello, RANDOM_LEN, &skipped) ||
        !take_vector(&hello, 1, &session) || session.left > SESSION_ID_MAX ||
        !take_vector(&hello, 2, &suites) || !take_vector(&hello, 1, &compressions))
        return SNI_BAD;
    if (hello.left == 0)
        return SNI_NONE;
    if (!take_vector(&hello, 2, &extensions) || hello.left > 0)
        return SNI_BAD;
    return read_extensions(extensions, ret_name);
}

/* ---- the records ---- */

static SniResult
need(size_t n, size_t *ret_need)
{
    *ret_need = n;
    return n > SNI_HELLO_MAX ? SNI_BAD : SNI_MORE;
}

/* The payload of one record; SNI_NAME: it is there. */
static SniResult
next_record(const guint8 *bytes, size_t n, size_t at, Cursor *ret, size_t *ret_need)
{
    /* Nothing at all may come without a place. */
    const guint8 *r = n > at ? bytes + at : NULL;

    if (n - at >= 1 && r[0] != RECORD_HANDSHAKE)
        return at == 0 ? SNI_NOT_TLS : SNI_BAD;
    if (n - at >= 2 && r[1] != 3)
        return at == 0 ? SNI_NOT_TLS : SNI_BAD;
    if (n - at < RECORD_HEAD)
        return need(at + RECORD_HEAD, ret_need);
    size_t len = (size_t)r[3] << 8 | r[4];
    if (len == 0 || len > RECORD_MAX)
        return SNI_BAD;
    if (n - at - RECORD_HEAD < len)
        return need(at + RECORD_HEAD + len, ret_need);
    *ret = (Cursor){.at = r + RECORD_HEAD, .left = len};
    return SNI_NAME;
}

/* 0: not known yet. */
static size_t
message_size(const GByteArray *message)
{
    if (message->len < MESSAGE_HEAD)
        return 0;
    return MESSAGE_HEAD + ((size_t)message->data[1] << 16 | (size_t)message->data[2] << 8 | message->data[3]);
}

/* What follows the ClientHello before the server has spoken: early data at most. */
static bool
is_end_of_hello(const GByteArray *message, const guint8 *rest, size_t n)
{
    return message->len == message_size(message) && (n == 0 || rest[0] != RECORD_HANDSHAKE);
}

SniResult
sni_read(const guint8 *bytes, size_t n, char ret_name[DOOR_NAME_MAX + 1], size_t *ret_need)
{
    g_autoptr(GByteArray) message = g_byte_array_new();
    size_t at = 0;

    while (message_size(message) == 0 || message->len < message_size(message)) {
        Cursor payload;
        SniResult result = next_record(bytes, n, at, &payload, ret_need);

        if (result != SNI_NAME)
            return result;
        g_byte_array_append(message, payload.at, (guint)payload.left);
        at += RECORD_HEAD + payload.left;
        if (message->data[0] != MESSAGE_CLIENT_HELLO || message_size(message) > SNI_HELLO_MAX)
            return SNI_BAD;
    }
    if (!is_end_of_hello(message, bytes + at, n - at))
        return SNI_BAD;
    return read_hello((Cursor){.at = message->data + MESSAGE_HEAD, .left = message->len - MESSAGE_HEAD},
                      ret_name);
}

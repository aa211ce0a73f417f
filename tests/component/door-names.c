/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted name server of a World. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "door-world-private.h"

typedef struct Packet {
    guint8 bytes[512];
    size_t len;
} Packet;

static void
put(Packet *p, const void *bytes, size_t n)
{
    g_assert_cmpuint(p->len + n, <=, sizeof p->bytes);
    memcpy(p->bytes + p->len, bytes, n);
    p->len += n;
}

static void
put_number(Packet *p, guint16 n)
{
    n = htons(n);
    put(p, &n, sizeof n);
}

static void
put_name(Packet *p, const char *name)
{
    g_auto(GStrv) labels = g_strsplit(name, ".", -1);

    for (guint i = 0; labels[i] != NULL; i++) {
        guint8 n = (guint8)strlen(labels[i]);

        put(p, &n, 1);
        put(p, labels[i], n);
    }
    put(p, "", 1);
}

static void
put_record(Packet *p, const char *alias, guint16 type, const void *data, size_t n)
{
    if (alias != NULL)
        put_name(p, alias);
    else
        put_number(p, 0xc00c); /* the question's name */
    put_number(p, type);
    put_number(p, 1);
    put_number(p, 0); /* a TTL of nothing */
    put_number(p, 0);
    put_number(p, (guint16)n);
    put(p, data, n);
    p->bytes[7]++; /* answers */
}

enum { TYPE_A = 1, TYPE_CNAME = 5, TYPE_AAAA = 28 };

static void
put_answers(Packet *p, const char *answer, guint16 type)
{
    g_auto(GStrv) words = g_strsplit(answer, " ", -1);
    const char *alias = NULL;

    for (guint i = 0; words[i] != NULL; i++) {
        guint8 address[16];

        if (words[i][0] == '=') {
            Packet name = {0};

            put_name(&name, words[i] + 1);
            put_record(p, NULL, TYPE_CNAME, name.bytes, name.len);
            alias = words[i] + 1;
        } else if (type == TYPE_A && inet_pton(AF_INET, words[i], address) == 1) {
            put_record(p, alias, TYPE_A, address, 4);
        } else if (type == TYPE_AAAA && inet_pton(AF_INET6, words[i], address) == 1) {
            put_record(p, alias, TYPE_AAAA, address, 16);
        }
    }
}

static char *
read_question(const guint8 *bytes, size_t n, size_t *ret_end, guint16 *ret_type)
{
    g_autoptr(GString) name = g_string_new(NULL);
    size_t at = 12;

    while (at < n && bytes[at] != 0) {
        if (name->len > 0)
            g_string_append_c(name, '.');
        g_string_append_len(name, (const char *)bytes + at + 1, bytes[at]);
        at += 1u + bytes[at];
    }
    g_assert_cmpuint(at + 5, <=, n);
    *ret_type = (guint16)(bytes[at + 1] << 8 | bytes[at + 2]);
    *ret_end = at + 5;
    return g_string_free(g_steal_pointer(&name), FALSE);
}

/* The A question comes first; its AAAA twin gets the same answer. */
static const char *
next_answer(World *w, const char *name, guint16 type)
{
    GPtrArray *answers = g_hash_table_lookup(w->names, name);

    if (type == TYPE_A)
        g_ptr_array_add(w->asked, g_strdup(name));
    if (answers == NULL)
        return NULL;
    guint times = 0;
    for (guint i = 0; i < w->asked->len; i++)
        times += g_str_equal(w->asked->pdata[i], name);
    return answers->pdata[MIN(MAX(times, 1) - 1, answers->len - 1)];
}

void
name_server_ready(LoopWatch *watch, uint32_t events)
{
    World *w = ((Server *)watch)->world;
    struct sockaddr_in6 from;
    socklen_t size = sizeof from;
    guint8 bytes[512];
    ssize_t n = recvfrom(watch->fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size);
    size_t end;
    guint16 type;
    Packet p = {0};

    if (n < 12)
        return;
    g_autofree char *name = read_question(bytes, (size_t)n, &end, &type);
    const char *answer = next_answer(w, name, type);
    put(&p, bytes, end);
    p.bytes[2] = 0x81;
    p.bytes[3] = answer != NULL ? 0x80 : 0x83; /* NXDOMAIN */
    memset(p.bytes + 6, 0, 6);
    if (answer != NULL)
        put_answers(&p, answer, type);
    (void)sendto(watch->fd, p.bytes, p.len, 0, (struct sockaddr *)&from, size);
}

void
world_name(World *w, const char *name, ...)
{
    GPtrArray *answers = g_ptr_array_new_with_free_func(g_free);
    va_list list;
    const char *answer;

    va_start(list, name);
    while ((answer = va_arg(list, const char *)) != NULL)
        g_ptr_array_add(answers, g_strdup(answer));
    va_end(list);
    g_hash_table_replace(w->names, g_strdup(name), answers);
}

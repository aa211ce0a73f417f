/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/object-write.h"

#include <string.h>
#include <zlib.h>

#include "base/err.h"

enum { PACK_VERSION = 2, SHA1_BYTES = 20 };

/* ---- texts ---- */

/* Without what ends a name, an address or the line. */
static void
put_word(GString *text, const char *word)
{
    g_autofree char *trimmed = g_strstrip(g_strdup(word));

    for (const char *p = trimmed; *p != '\0'; p++) {
        if ((guchar)*p >= ' ' && *p != 0x7f && *p != '<' && *p != '>')
            g_string_append_c(text, *p);
    }
}

static void
put_person(GString *text, const char *key, const MergePerson *person)
{
    int zone = ABS(person->zone_min);

    g_string_append_printf(text, "%s ", key);
    put_word(text, person->name);
    g_string_append(text, " <");
    put_word(text, person->email);
    g_string_append_printf(text, "> %" G_GINT64_FORMAT " %c%02d%02d\n", person->time_s,
                           person->zone_min < 0 ? '-' : '+', zone / 60, zone % 60);
}

GString *
commit_text_new(const char *tree, const char *const *parents, const MergePerson *author,
                const MergePerson *committer, const char *message)
{
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "tree %s\n", tree);
    for (guint i = 0; parents[i] != NULL; i++)
        g_string_append_printf(text, "parent %s\n", parents[i]);
    put_person(text, "author", author);
    put_person(text, "committer", committer);
    g_string_append_printf(text, "\n%s", message);
    if (text->str[text->len - 1] != '\n')
        g_string_append_c(text, '\n');
    return text;
}

GString *
tag_text_new(const char *oid, const char *type, const char *name, const MergePerson *tagger,
             const char *message)
{
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "object %s\ntype %s\ntag %s\n", oid, type, name);
    put_person(text, "tagger", tagger);
    g_string_append_printf(text, "\n%s", message);
    if (text->str[text->len - 1] != '\n')
        g_string_append_c(text, '\n');
    return text;
}

/* The whole line of a header, newline and all; `*ret_n` 0: there is none. */
static const char *
find_header(const char *head, size_t n, const char *key, size_t *ret_n)
{
    size_t key_len = strlen(key);
    const char *at = head, *end = head + n;

    *ret_n = 0;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline != NULL ? newline + 1 : end;

        if ((size_t)(next - at) > key_len && memcmp(at, key, key_len) == 0 && at[key_len] == ' ') {
            *ret_n = (size_t)(next - at);
            return at;
        }
        at = next;
    }
    return NULL;
}

GString *
commit_text_again(const guint8 *bytes, size_t n, const char *tree, const char *parent,
                  const MergePerson *committer)
{
    const char *raw = (const char *)bytes;
    const char *blank = memmem(raw, n, "\n\n", 2);
    size_t head = blank != NULL ? (size_t)(blank - raw) + 1 : n;
    size_t author_len, encoding_len;
    const char *author = find_header(raw, head, "author", &author_len);
    const char *encoding = find_header(raw, head, "encoding", &encoding_len);

    if (author == NULL || author[author_len - 1] != '\n')
        return NULL;
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "tree %s\nparent %s\n", tree, parent);
    g_string_append_len(text, author, (gssize)author_len);
    put_person(text, "committer", committer);
    g_string_append_len(text, encoding != NULL ? encoding : "", (gssize)encoding_len);
    g_string_append_len(text, raw + head, (gssize)(n - head));
    return text;
}

static void
object_oid(ObjectKind kind, const GString *bytes, char ret_oid[GIT_OID_LEN + 1])
{
    static const char *const names[] = {
        [OBJECT_COMMIT] = "commit", [OBJECT_TREE] = "tree", [OBJECT_BLOB] = "blob", [OBJECT_TAG] = "tag"};
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA1);
    g_autofree char *head = g_strdup_printf("%s %zu", names[kind], bytes->len);

    g_checksum_update(sum, (const guchar *)head, (gssize)strlen(head) + 1);
    g_checksum_update(sum, (const guchar *)bytes->str, (gssize)bytes->len);
    g_strlcpy(ret_oid, g_checksum_get_string(sum), GIT_OID_LEN + 1);
}

void
commit_text_oid(const GString *text, char ret_oid[GIT_OID_LEN + 1])
{
    object_oid(OBJECT_COMMIT, text, ret_oid);
}

NewObject *
new_object_make(ObjectKind kind, GString *bytes)
{
    NewObject *object = g_new0(NewObject, 1);

    *object = (NewObject){.kind = kind, .bytes = bytes};
    object_oid(kind, bytes, object->oid);
    return object;
}

void
new_object_free(NewObject *object)
{
    if (object == NULL)
        return;
    g_string_free(object->bytes, TRUE);
    g_free(object);
}

/* ---- the pack that brings them ---- */

static void
put_32(GByteArray *pack, guint32 value)
{
    value = GUINT32_TO_BE(value);
    g_byte_array_append(pack, (const guint8 *)&value, sizeof value);
}

/* Type and size: four bits of it in the first byte, seven in each that follows. */
static void
put_head(GByteArray *pack, ObjectKind kind, size_t size)
{
    guint8 byte = (guint8)((guint)kind << 4 | (size & 15));

    for (size >>= 4; size > 0; size >>= 7) {
        byte |= 0x80;
        g_byte_array_append(pack, &byte, 1);
        byte = size & 0x7f;
    }
    g_byte_array_append(pack, &byte, 1);
}

static void
put_object(GByteArray *pack, ObjectKind kind, const GString *text)
{
    uLongf room = compressBound(text->len);
    g_autofree guint8 *packed = g_malloc(room);
    int result = compress(packed, &room, (const Bytef *)text->str, text->len);

    g_assert(result == Z_OK);
    put_head(pack, kind, text->len);
    g_byte_array_append(pack, packed, (guint)room);
}

static GByteArray *
pack_begin(guint n)
{
    GByteArray *pack = g_byte_array_new();

    g_byte_array_append(pack, (const guint8 *)"PACK", 4);
    put_32(pack, PACK_VERSION);
    put_32(pack, n);
    return pack;
}

static bool
pack_send(GitRepo *repo, GByteArray *pack, const char *const *args, GError **error)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA1);
    guint8 digest[SHA1_BYTES];
    gsize n = sizeof digest;

    g_checksum_update(sum, pack->data, pack->len);
    g_checksum_get_digest(sum, digest, &n);
    g_byte_array_append(pack, digest, sizeof digest);
    GitCall call = {
        .access = GIT_WRITE,
        .args = args,
        .input = pack->data,
        .input_len = pack->len,
    };

    return git_run(repo, &call, NULL, error);
}

bool
commits_write(GitRepo *repo, const GPtrArray *texts, GError **error)
{
    g_autoptr(GByteArray) pack = pack_begin(texts->len);

    for (guint i = 0; i < texts->len; i++)
        put_object(pack, OBJECT_COMMIT, texts->pdata[i]);
    return pack_send(repo, pack, GIT_ARGS("unpack-objects", "-q"), error);
}

bool
objects_write(GitRepo *repo, const GPtrArray *objects, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) once = g_ptr_array_new();

    /* Two folders may hold the same, and git wants an object once. */
    for (guint i = 0; i < objects->len; i++) {
        NewObject *object = objects->pdata[i];

        if (g_hash_table_add(seen, object->oid))
            g_ptr_array_add(once, object);
    }
    g_autoptr(GByteArray) pack = pack_begin(once->len);

    for (guint i = 0; i < once->len; i++) {
        const NewObject *object = once->pdata[i];

        put_object(pack, object->kind, object->bytes);
    }
    return pack_send(repo, pack, GIT_ARGS("unpack-objects", "-q", "--strict"), error);
}

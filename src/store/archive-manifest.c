/* SPDX-License-Identifier: Apache-2.0 */
#include "store/archive-manifest.h"

#include <string.h>

#include "base/err.h"
#include "json/json.h"

enum { HASH_HEX_LEN = 2 * ARCHIVE_HASH_LEN };

char *
manifest_format(const Manifest *m)
{
    char hash[HASH_HEX_LEN + 1];

    sodium_bin2hex(hash, sizeof hash, m->hash, ARCHIVE_HASH_LEN);
    g_autoptr(Json) value = json_pack(
        "{s:i, s:s, s:I, s:s, s:[{s:s, s:I, s:s}]}", "format", (int)ARCHIVE_FORMAT, "version",
        m->info.version, "schema", (json_int_t)m->info.schema, "created_at", m->info.created_at, "members",
        "name", ARCHIVE_DB_NAME, "size", (json_int_t)m->info.bytes, "blake2b", hash);
    g_autofree char *text = json_encode(value);
    return g_strconcat(text, "\n", NULL);
}

static bool
parse_member(Json *member, Manifest *ret, GError **error)
{
    const char *name = "", *hash = "";
    gint64 size = 0;
    const JsonField fields[] = {
        {.name = "name", .kind = JSON_KIND_STRING, .ret = &name, .required = true, .max = 64},
        {.name = "size", .kind = JSON_KIND_INT, .ret = &size, .required = true, .max = G_MAXINT64},
        {.name = "blake2b", .kind = JSON_KIND_STRING, .ret = &hash, .required = true, .max = HASH_HEX_LEN},
        {NULL},
    };

    if (!json_read(member, fields, error))
        return false;
    if (strcmp(name, ARCHIVE_DB_NAME) != 0)
        return err_set(error, ERR_INVALID, "it names the member '%s'", name);
    if (strlen(hash) != HASH_HEX_LEN ||
        sodium_hex2bin(ret->hash, ARCHIVE_HASH_LEN, hash, HASH_HEX_LEN, NULL, NULL, NULL) != 0)
        return err_set(error, ERR_INVALID, "'blake2b' is not %d hex digits", HASH_HEX_LEN);
    ret->info.bytes = (guint64)size;
    return true;
}

/* Before the rest is read: a later format may have other fields. */
static bool
check_format(const Json *object, GError **error)
{
    const Json *format = json_object_get(object, "format");

    if (!json_is_integer(format))
        return err_set(error, ERR_INVALID, "it has no format number");
    if (json_integer_value(format) != ARCHIVE_FORMAT)
        return err_set(error, ERR_INVALID, "its format is %" JSON_INTEGER_FORMAT ", this program reads %d",
                       json_integer_value(format), ARCHIVE_FORMAT);
    return true;
}

static bool
parse_object(Json *object, Manifest *ret, GError **error)
{
    const char *version = "", *created = "";
    gint64 format, schema = 0;
    Json *members = NULL;
    const JsonField fields[] = {
        {.name = "format", .kind = JSON_KIND_INT, .ret = &format, .required = true, .max = G_MAXINT64},
        {.name = "version",
         .kind = JSON_KIND_STRING,
         .ret = &version,
         .required = true,
         .max = ARCHIVE_VERSION_MAX},
        {.name = "schema", .kind = JSON_KIND_INT, .ret = &schema, .required = true, .max = G_MAXINT64},
        {.name = "created_at",
         .kind = JSON_KIND_STRING,
         .ret = &created,
         .required = true,
         .max = CLOCK_ISO_LEN},
        {.name = "members", .kind = JSON_KIND_ARRAY, .ret = &members, .required = true, .max = 1},
        {NULL},
    };

    if (!check_format(object, error) || !json_read(object, fields, error))
        return false;
    if (json_array_size(members) != 1)
        return err_set(error, ERR_INVALID, "it names no member");
    g_strlcpy(ret->info.version, version, sizeof ret->info.version);
    g_strlcpy(ret->info.created_at, created, sizeof ret->info.created_at);
    ret->info.schema = schema;
    return parse_member(json_array_get(members, 0), ret, error);
}

bool
manifest_parse(const char *text, size_t len, Manifest *ret_manifest, GError **error)
{
    Manifest m = {0};
    g_autoptr(Json) object = json_decode(text, len, error);

    if (object == NULL || !parse_object(object, &m, error)) {
        g_prefix_error(error, "its manifest is wrong: ");
        return false;
    }
    *ret_manifest = m;
    return true;
}

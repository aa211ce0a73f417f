/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/recording.h"

#include <string.h>

#include "base/err.h"
#include "base/path.h"
#include "brain/ask.h"
#include "brain/usage.h"

enum { FILE_MODE = 0600 };

static char *
file_of(const char *folder, const guint8 digest[ASK_DIGEST_LEN])
{
    GString *path = g_string_new(folder);

    g_string_append_c(path, '/');
    for (guint i = 0; i < ASK_DIGEST_LEN; i++)
        g_string_append_printf(path, "%02x", digest[i]);
    return g_string_free(g_string_append(path, ".json"), FALSE);
}

/* Text where it is text, so that a person can read the file. */
static Json *
encode_piece(const TapePiece *piece)
{
    size_t n;
    const char *bytes = g_bytes_get_data(piece->bytes, &n);
    Json *object = json_pack("{s:i}", "after_ms", (int)piece->after_ms);

    if (g_utf8_validate_len(bytes != NULL ? bytes : "", n, NULL)) {
        json_object_set_new(object, "text", json_stringn(bytes, n));
    } else {
        g_autofree char *encoded = g_base64_encode((const guint8 *)bytes, n);

        json_object_set_new(object, "base64", json_string(encoded));
    }
    return object;
}

char *
recording_encode(const Tape *tape, const RecordingLabel *label)
{
    Json *pieces = json_array();

    for (guint i = 0; i < tape->pieces->len; i++)
        json_array_append_new(pieces, encode_piece(&g_array_index(tape->pieces, TapePiece, i)));
    g_autoptr(Json)
        object = json_pack("{s:i, s:s, s:s?, s:s, s:i, s:b, s:o}", "version", RECORDING_VERSION, "provider",
                           label->provider, "model", label->model, "path", label->path, "status",
                           tape->status, "stream", (int)tape->is_stream, "pieces", pieces);
    Json *request = label->request != NULL ? json_decode_foreign(label->request, strlen(label->request),
                                                                 ASK_VALUES_MAX, NULL, NULL)
                                           : json_object();

    json_object_set_new(object, "request", request);
    return json_encode(object);
}

static bool
decode_piece(Tape *tape, Json *object, GError **error)
{
    gint64 after_ms = 0;
    const char *text = NULL, *encoded = NULL;
    const JsonField fields[] = {
        {"after_ms", JSON_KIND_INT, &after_ms, false, 0, TAPE_WAIT_MAX_MS},
        {"text", JSON_KIND_STRING, &text, false, 0, RECORDING_FILE_MAX},
        {"base64", JSON_KIND_STRING, &encoded, false, 0, RECORDING_FILE_MAX},
        {NULL},
    };

    if (!json_read(object, fields, error))
        return false;
    if ((text == NULL) == (encoded == NULL))
        return err_set(error, ERR_INVALID, "a piece has 'text' or 'base64'");
    if (text != NULL) {
        tape_add(tape, (guint)MIN(after_ms, RECORDING_WAIT_MAX_MS), text, strlen(text));
        return true;
    }
    size_t n;
    g_autofree guchar *bytes = g_base64_decode(encoded, &n);
    tape_add(tape, (guint)MIN(after_ms, RECORDING_WAIT_MAX_MS), bytes, n);
    return true;
}

Tape *
recording_decode(const char *text, size_t n, GError **error)
{
    gint64 version = 0, status = 0;
    bool is_stream = false;
    const char *provider, *model, *path;
    Json *pieces = NULL, *request, *piece;
    size_t i;
    const JsonField fields[] = {
        {"version", JSON_KIND_INT, &version, true, RECORDING_VERSION, RECORDING_VERSION},
        {"provider", JSON_KIND_STRING, &provider, false, 0, 0},
        {"model", JSON_KIND_STRING, &model, false, 0, 0},
        {"path", JSON_KIND_STRING, &path, false, 0, 0},
        {"request", JSON_KIND_OBJECT, &request, false, 0, 0},
        {"status", JSON_KIND_INT, &status, true, 200, 599},
        {"stream", JSON_KIND_BOOL, &is_stream, true, 0, 0},
        {"pieces", JSON_KIND_ARRAY, &pieces, true, 0, TAPE_PIECES_MAX},
        {NULL},
    };
    g_autoptr(Json) object = json_decode_foreign(text, n, USAGE_VALUES_MAX, NULL, error);

    if (object == NULL || !json_read(object, fields, error))
        return NULL;
    g_autoptr(Tape) tape = tape_new((int)status, is_stream);
    json_array_foreach(pieces, i, piece)
    {
        if (!decode_piece(tape, piece, error))
            return NULL;
    }
    return g_steal_pointer(&tape);
}

bool
recording_store(const char *folder, const guint8 digest[ASK_DIGEST_LEN], const char *text, GError **error)
{
    g_autofree char *path = file_of(folder, digest);

    return path_write_atomic(path, text, strlen(text), FILE_MODE, error);
}

Tape *
recording_load(const char *folder, const guint8 digest[ASK_DIGEST_LEN], GError **error)
{
    g_autofree char *path = file_of(folder, digest);
    g_autofree char *text = NULL;
    g_autoptr(GError) why = NULL;
    size_t n;

    if (!g_file_get_contents(path, &text, &n, &why)) {
        bool missing = g_error_matches(why, G_FILE_ERROR, G_FILE_ERROR_NOENT);

        err_set(error, missing ? ERR_NOT_FOUND : ERR_INTERNAL, "%s",
                missing ? "nothing was recorded for this request" : why->message);
        return NULL;
    }
    Tape *tape = n <= RECORDING_FILE_MAX ? recording_decode(text, n, error) : NULL;
    if (tape == NULL && n > RECORDING_FILE_MAX)
        err_set(error, ERR_LIMIT, "the recording '%s' is too long", path);
    else if (tape == NULL)
        g_prefix_error(error, "the recording '%s': ", path);
    return tape;
}

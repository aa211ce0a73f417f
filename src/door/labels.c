/* SPDX-License-Identifier: Apache-2.0 */
#include "door/labels.h"

#include "base/err.h"

bool
door_labels_read(Json *object, DoorLabels *ret, GError **error)
{
    const JsonField fields[] = {
        {"agent", JSON_KIND_STRING, &ret->agent, false, 1, DOOR_LABEL_MAX},
        {"task", JSON_KIND_STRING, &ret->task, false, 1, DOOR_LABEL_MAX},
        {"squad", JSON_KIND_STRING, &ret->squad, false, 1, DOOR_LABEL_MAX},
        {NULL},
    };

    return json_read(object, fields, error);
}

Json *
door_labels_json(const DoorLabels *labels)
{
    return json_pack("{s:s*, s:s*, s:s*}", "agent", labels->agent, "task", labels->task, "squad",
                     labels->squad);
}

bool
door_limits_read(Json *object, DoorLimits *ret, GError **error)
{
    gint64 day = (gint64)ret->bytes_per_day, second = (gint64)ret->bytes_per_s;
    gint64 requests = ret->requests_per_min, lookups = ret->lookups_per_min;
    const JsonField fields[] = {
        {"bytes_per_day", JSON_KIND_INT, &day, false, 0, G_MAXINT64},
        {"bytes_per_s", JSON_KIND_INT, &second, false, 0, G_MAXINT64},
        {"requests_per_min", JSON_KIND_INT, &requests, false, 0, G_MAXINT32},
        {"lookups_per_min", JSON_KIND_INT, &lookups, false, 0, G_MAXINT32},
        {NULL},
    };

    if (!json_read(object, fields, error))
        return false;
    *ret = (DoorLimits){.bytes_per_day = (guint64)day,
                        .bytes_per_s = (guint64)second,
                        .requests_per_min = (guint)requests,
                        .lookups_per_min = (guint)lookups};
    return true;
}

Json *
door_limits_json(const DoorLimits *limits)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "bytes_per_day", (json_int_t)limits->bytes_per_day,
                     "bytes_per_s", (json_int_t)limits->bytes_per_s, "requests_per_min",
                     (json_int_t)limits->requests_per_min, "lookups_per_min",
                     (json_int_t)limits->lookups_per_min);
}

static bool
is_above(guint64 value, guint64 max)
{
    return max > 0 && (value == 0 || value > max);
}

bool
door_limits_check(const DoorLimits *limits, const DoorLimits *max, GError **error)
{
    const struct {
        const char *name;
        guint64 value, max;
    } rows[] = {
        {"bytes_per_day", limits->bytes_per_day, max->bytes_per_day},
        {"bytes_per_s", limits->bytes_per_s, max->bytes_per_s},
        {"requests_per_min", limits->requests_per_min, max->requests_per_min},
        {"lookups_per_min", limits->lookups_per_min, max->lookups_per_min},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (is_above(rows[i].value, rows[i].max))
            return err_set(error, ERR_LIMIT, "'%s' is from 1 to %" G_GUINT64_FORMAT " on this server",
                           rows[i].name, rows[i].max);
    }
    return true;
}

void
door_limits_clamp(DoorLimits *limits, const DoorLimits *max)
{
    if (is_above(limits->bytes_per_day, max->bytes_per_day))
        limits->bytes_per_day = max->bytes_per_day;
    if (is_above(limits->bytes_per_s, max->bytes_per_s))
        limits->bytes_per_s = max->bytes_per_s;
    if (is_above(limits->requests_per_min, max->requests_per_min))
        limits->requests_per_min = max->requests_per_min;
    if (is_above(limits->lookups_per_min, max->lookups_per_min))
        limits->lookups_per_min = max->lookups_per_min;
}

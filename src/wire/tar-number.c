/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tar-write.h"

/* Two's complement in the bits below the first one, big end first. */
static bool
parse_base256(const uint8_t *field, size_t n, int64_t *ret_number)
{
    bool negative = (field[0] & 0x40) != 0;
    uint64_t number = negative ? UINT64_MAX : 0;

    for (size_t i = 0; i < n; i++) {
        uint8_t byte = i > 0 ? field[i] : (uint8_t)(negative ? field[0] | 0x80 : field[0] & 0x3f);

        /* What is shifted out must be sign, and the sign must stay. */
        if (number >> 55 != (negative ? 0x1ff : 0))
            return false;
        number = number << 8 | byte;
    }
    *ret_number = (int64_t)number;
    return true;
}

bool
tar_number_parse(const uint8_t *field, size_t n, int64_t *ret_number)
{
    uint64_t number = 0;
    size_t i = 0;

    if ((field[0] & 0x80) != 0)
        return parse_base256(field, n, ret_number);
    while (i < n && field[i] == ' ')
        i++;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++) {
        if (number > INT64_MAX / 8)
            return false;
        number = number * 8 + (field[i] - '0');
    }
    /* Blank to the end of the field, or to a NUL, behind which old writers left anything. */
    while (i < n && field[i] == ' ')
        i++;
    if (i < n && field[i] != '\0')
        return false;
    *ret_number = (int64_t)number;
    return true;
}

/* Digits and a NUL.  False: it does not fit. */
bool
tar_number_format(uint8_t *field, size_t n, int64_t number)
{
    if (number < 0)
        return false;
    field[--n] = '\0';
    while (n > 0) {
        field[--n] = (uint8_t)('0' + (number & 7));
        number >>= 3;
    }
    return number == 0;
}

/* SPDX-License-Identifier: Apache-2.0
 * Redis' own form of a small hash, as DUMP gives and RESTORE takes it since
 * Redis 7 (and Valkey and Kvrocks, which read it too):
 *
 *   16                        a hash in a listpack
 *   0x40|size>>8, size        of the listpack
 *   u32 size, u16 count       the listpack's head, little-endian
 *   0x80|n, n bytes, n + 1    each text of up to 63 bytes, and its length again for walking back
 *   0xFF                      its end
 *   u16 10                    the version of this form
 *   u64 CRC-64 (Jones)        of everything before
 *
 * Whether a server takes it is tried once a connection; see redis.c. Pure. */
#include "warm/pack.h"

#include <string.h>

#include "base/check.h"

enum { TYPE_HASH_LISTPACK = 16, FORM_VERSION = 10, HEAD_SIZE = 3, LISTPACK_HEAD_SIZE = 6 };

#define CRC64_JONES_REFLECTED 0x95ac9329ac4bc9b5u

void pack_sums_init(struct pack_sums *sums)
{
    for (uint64_t byte = 0; byte < 256; byte++) {
        uint64_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ CRC64_JONES_REFLECTED : crc >> 1;
        sums->of_byte[byte] = crc;
    }
}

static uint64_t crc64(const struct pack_sums *sums, const uint8_t *data, size_t size)
{
    uint64_t crc = 0;
    for (size_t i = 0; i < size; i++)
        crc = sums->of_byte[(uint8_t)crc ^ data[i]] ^ crc >> 8;
    return crc;
}

static void put_little(uint8_t *out, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

void pack_begin(struct pack *pack)
{
    pack->size = HEAD_SIZE + LISTPACK_HEAD_SIZE;
    pack->count = 0;
}

void pack_put(struct pack *pack, const char *text, size_t size)
{
    CHECK(size <= PACK_TEXT_SIZE_MAX);
    CHECK(pack->count < 2 * PACK_FIELD_COUNT_MAX);
    _Static_assert(2 * PACK_FIELD_COUNT_MAX * (PACK_TEXT_SIZE_MAX + 2) + 32 > PACK_SIZE_MAX,
                   "the size is checked, not the number alone");
    CHECK(pack->size + size + 32 <= sizeof(pack->data));
    uint8_t *at = pack->data + pack->size;
    at[0] = (uint8_t)(0x80 | size);
    memcpy(at + 1, text, size);
    at[1 + size] = (uint8_t)(size + 1);
    pack->size += size + 2;
    pack->count++;
}

void pack_end(struct pack *pack, const struct pack_sums *sums)
{
    pack->data[pack->size++] = 0xFF;
    size_t listpack_size = pack->size - HEAD_SIZE;
    pack->data[0] = TYPE_HASH_LISTPACK;
    pack->data[1] = (uint8_t)(0x40 | listpack_size >> 8);
    pack->data[2] = (uint8_t)listpack_size;
    put_little(pack->data + HEAD_SIZE, listpack_size, 4);
    put_little(pack->data + HEAD_SIZE + 4, pack->count, 2);
    put_little(pack->data + pack->size, FORM_VERSION, 2);
    pack->size += 2;
    put_little(pack->data + pack->size, crc64(sums, pack->data, pack->size), 8);
    pack->size += 8;
}

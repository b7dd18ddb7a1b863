/* SPDX-License-Identifier: Apache-2.0
 * A small hash as RESTORE takes it: made with its life in one command of five
 * arguments, where HSET and PEXPIREAT need two of nineteen. */
#ifndef HOLDFAST_WARM_PACK_H
#define HOLDFAST_WARM_PACK_H

#include <stddef.h>
#include <stdint.h>

enum { PACK_TEXT_SIZE_MAX = 63, PACK_SIZE_MAX = 1024, PACK_FIELD_COUNT_MAX = 8 };

struct pack {
    uint8_t data[PACK_SIZE_MAX];
    size_t size;
    uint32_t count; /* of texts */
};

struct pack_sums { /* for the check sum; made once */
    uint64_t of_byte[256];
};

void pack_sums_init(struct pack_sums *sums);
void pack_begin(struct pack *pack);
void pack_put(struct pack *pack, const char *text, size_t size); /* field, value, field, value, … */
/* Now data and size are RESTORE's argument. */
void pack_end(struct pack *pack, const struct pack_sums *sums);

#endif

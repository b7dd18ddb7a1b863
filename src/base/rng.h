/* SPDX-License-Identifier: Apache-2.0
 * Random numbers. Seeded once: from the system for real, by hand in the
 * simulator, so that a run can be replayed. One rng belongs to one thread. */
#ifndef HOLDFAST_BASE_RNG_H
#define HOLDFAST_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t state[4];
    int64_t uuid_last_ms; /* see uuid_make() */
    uint32_t uuid_counter;
};

void rng_init_seed(struct rng *rng, uint64_t seed);
void rng_init_system(struct rng *rng);
uint64_t rng_next(struct rng *rng);
uint64_t rng_below(struct rng *rng, uint64_t bound); /* 0 … bound − 1 */

/* From the system's generator, for secrets. Aborts if there is none. */
void random_secret(void *out, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Random numbers: xoshiro256** by Blackman and Vigna, filled from one word by
 * splitmix64, as its authors advise. Good for ids, jitter and simulation; for
 * secrets there is random_secret(), straight from the system.
 * One rng belongs to one thread. */
#include "base/rng.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/check.h"

static uint64_t splitmix_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

void rng_init_seed(struct rng *rng, uint64_t seed)
{
    *rng = (struct rng){0};
    for (int i = 0; i < 4; i++)
        rng->state[i] = splitmix_next(&seed);
}

void rng_init_system(struct rng *rng)
{
    *rng = (struct rng){0};
    random_secret(rng->state, sizeof(rng->state));
    rng->state[0] |= 1; /* all zeros is the one state it cannot leave */
}

static uint64_t rotate_left(uint64_t value, int by)
{
    return (value << by) | (value >> (64 - by));
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* Lemire's method: a product instead of a division, and every value equally likely. */
uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    CHECK(bound > 0);
    unsigned __int128 product = (unsigned __int128)rng_next(rng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = (0 - bound) % bound;
        while ((uint64_t)product < threshold)
            product = (unsigned __int128)rng_next(rng) * bound;
    }
    return (uint64_t)(product >> 64);
}

void random_secret(void *out, size_t size)
{
    unsigned char *at = out;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        CHECK(got > 0);
        at += got;
        size -= (size_t)got;
    }
}

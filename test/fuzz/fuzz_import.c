/* SPDX-License-Identifier: Apache-2.0
 * Import files: anything is either a plan that keeps the rules or a reason. */
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/rng.h"
#include "cli/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct rng rng;
    struct import_plan plan;
    char why[256] = "";
    arena_init(&arena);
    rng_init_seed(&rng, 1);
    if (import_parse((const char *)data, size, &rng, 1000, &arena, &plan, why, sizeof(why)))
        CHECK(policy_valid(&plan.event.policy));
    else
        CHECK(why[0] != '\0');
    arena_deinit(&arena);
    return 0;
}

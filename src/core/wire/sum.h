/* sum.h: XXH3, the checksum of chunks, by the widest vectors that the machine has where the library
 * offers them: the same sums, at memory's speed. Include it in place of <xxhash.h>. */
#ifndef PARLEY_CORE_SUM_H
#define PARLEY_CORE_SUM_H

#include <xxhash.h>

#ifdef PARLEY_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

#endif

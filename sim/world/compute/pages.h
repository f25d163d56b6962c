/* pages.h: large pages, where the system has them, for what is read from all over: a thousand
 * models, or samples drawn at random. Without, all is as well, but slower.
 *
 * Thread rule: any.
 */
#ifndef PARLEY_SIM_PAGES_H
#define PARLEY_SIM_PAGES_H

#include <stddef.h>

enum { SIM_LARGE_PAGE = 2 << 20 }; /* bytes; memory that is aligned to it has most of them */

/* For fresh memory, before it is used. */
void sim_pages_advise(void *memory, size_t bytes);

/* For memory in use: what lies there moves into large pages. NULL is none. */
void sim_pages_collapse(void *memory, size_t bytes);

#endif

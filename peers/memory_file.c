/* memory_file.c: see memory_file.h. */
#define _GNU_SOURCE /* memfd_create, F_GET_SEALS */
#include "memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#ifndef MFD_NOEXEC_SEAL /* headers from before Linux 6.3 */
#define MFD_NOEXEC_SEAL 8U
#endif

/* An older kernel does not know of execution; a newer one may demand that it is spoken of, by
 * vm.memfd_noexec. */
int memory_file_new(const char *name)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int file = memfd_create(name, flags | MFD_NOEXEC_SEAL);
    return file < 0 && errno == EINVAL ? memfd_create(name, flags) : file;
}

/* The kernel adds one of its own where nobody may execute it. */
bool memory_file_has_seals(int file, int seals)
{
    int has = fcntl(file, F_GET_SEALS);
    return has >= 0 && (has & seals) == seals;
}

/* libfuzzer.c: `fuzz TARGET [libFuzzer's own arguments]`. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    target = *argc > 1 ? fuzz_find((*argv)[1]) : NULL;
    if (!target) {
        fprintf(stderr, "fuzz TARGET [ARGUMENT...]; fuzz-replay --list names the targets\n");
        exit(2);
    }
    (*argv)[1] = (*argv)[0];
    ++*argv;
    --*argc;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    target->run(bytes, size);
    return 0;
}

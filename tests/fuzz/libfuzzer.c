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
    if (target) {
        setenv("PARLEY_FUZZ_TARGET", target->name, 1); /* for those that libFuzzer starts */
        (*argv)[1] = (*argv)[0];
        ++*argv;
        --*argc;
    } else if (getenv("PARLEY_FUZZ_TARGET")) {
        target = fuzz_find(getenv("PARLEY_FUZZ_TARGET"));
    }
    if (target) return 0;
    fprintf(stderr, "fuzz TARGET [ARGUMENT...]; fuzz-replay --list names the targets\n");
    exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    target->run(bytes, size);
    return 0;
}

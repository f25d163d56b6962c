#include "cli.h"
int check_command(const struct settings *settings)
{
    (void)settings;
    return 1;
}

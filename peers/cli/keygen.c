/* keygen.c: `parley keygen FILE`: a new cluster key, for its owner's eyes alone.
 *
 * A file that is there stays as it is: it may be the key of a cluster that runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "network/tls.h"

static int draw(char text[TLS_KEY_DIGITS + 2], char *why, size_t size)
{
    uint8_t key[TLS_KEY_BYTES];
    int code = uv_random(NULL, NULL, key, sizeof key, 0, NULL);
    if (code) {
        snprintf(why, size, "can't draw random bytes: %s", uv_strerror(code));
        return PARLEY_EFAIL;
    }
    for (int i = 0; i < TLS_KEY_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", key[i]);
    strcpy(text + TLS_KEY_DIGITS, "\n");
    return 0;
}

static int write_new(const char *path, const char *text, char *why, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        snprintf(why, size, "%s: it is there already; remove it first, or choose another name",
                 path);
        return PARLEY_EUSAGE;
    }
    ssize_t left = (ssize_t)strlen(text);
    errno = fd < 0 ? errno : ENOSPC; /* where a part of it is written */
    bool written = fd >= 0 && write(fd, text, (size_t)left) == left && fsync(fd) == 0;
    int cause = errno;
    if (fd >= 0) close(fd);
    if (written) return 0;
    if (fd >= 0) unlink(path);
    snprintf(why, size, "keygen: %s: %s", path, strerror(cause));
    return PARLEY_EFAIL;
}

int keygen_command(const struct settings *settings)
{
    char text[TLS_KEY_DIGITS + 2], why[256];
    const char *path = settings->operands[0];
    if (strcmp(path, "-") == 0)
        return say_failure(PARLEY_EUSAGE,
                           "\"-\": a key is not written to stdout; name a file (./- is one)");
    int error = draw(text, why, sizeof why);
    if (!error) error = write_new(path, text, why, sizeof why);
    return error ? say_failure(error, why) : 0;
}

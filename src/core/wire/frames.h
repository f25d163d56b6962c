/* frames.h: from a connection's bytes to frames, each handed to the module that owns it.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_FRAMES_H
#define PARLEY_CORE_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "parley/node.h"

/* Takes frame after frame of bytes[size], until they or the room for updates end: how many bytes it
 * took. What is malformed closes the connection. */
size_t frames_received(struct parley_node *node, uint32_t id, const uint8_t *bytes, size_t size);

#endif

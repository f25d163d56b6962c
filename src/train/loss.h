/* loss.h: softmax and cross-entropy in one, and counting hits; squared error.
 *
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_TRAIN_LOSS_H
#define PARLEY_TRAIN_LOSS_H

#include <stdint.h>

/* logits: [rows][classes], in place: on return softmax minus one-hot, which is the gradient of the
 * summed loss. labels: [rows], each below classes. Returns the sum of -log p(label) over the rows;
 * not finite if a logit is NaN or +infinity. */
double loss_gradient(float *logits, const uint16_t *labels, uint32_t rows, uint32_t classes);

/* y: [rows], in place: on return 2 (y - target), the gradient of the summed loss. Returns the sum
 * of (y - target)^2. */
double loss_square(float *y, const float *targets, uint32_t rows);

/* The place of the greatest of logits[classes], the first of equals. */
uint32_t loss_best(const float *logits, uint32_t classes);

/* In how many rows the greatest logit (the first of equals) is the label's. */
uint32_t loss_hits(const float *logits, const uint16_t *labels, uint32_t rows, uint32_t classes);

#endif

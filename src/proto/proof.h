// SPDX-License-Identifier: MIT
/*
 * How the two ends of gradb.v1 prove to each other that they share a token, without sending it:
 * HMAC-SHA256 over the role and random bytes of both ends. See docs/protocol.md, "Token".
 */
#ifndef GD_PROTO_PROOF_H
#define GD_PROTO_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GD_PROOF_BYTES 32 /* of a nonce, and of a proof */

enum gd_proof_role { GD_PROOF_TRAINER, GD_PROOF_DEBUGGER };

struct gd_proof {                    /* of one connection */
    uint8_t trainer[GD_PROOF_BYTES]; /* nonces */
    uint8_t debugger[GD_PROOF_BYTES];
};

/* False: the system provides no random bytes. */
bool gd_proof_nonce(uint8_t ret[GD_PROOF_BYTES]);
void gd_proof_make(const struct gd_proof *nonces, enum gd_proof_role role, const char *token,
                   uint8_t ret[GD_PROOF_BYTES]);
/* Takes the same time for wrong and right proofs. */
bool gd_proof_check(const struct gd_proof *nonces, enum gd_proof_role role, const char *token,
                    const uint8_t *proof, size_t len);

#endif

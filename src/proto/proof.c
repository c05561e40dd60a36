// SPDX-License-Identifier: MIT
#include "proto/proof.h"

#include <sodium.h>
#include <string.h>
#include <sys/random.h>

_Static_assert(GD_PROOF_BYTES == crypto_auth_hmacsha256_BYTES, "a proof is one HMAC-SHA256");

bool gd_proof_nonce(uint8_t ret[GD_PROOF_BYTES])
{
    return getrandom(ret, GD_PROOF_BYTES, 0) == GD_PROOF_BYTES;
}

void gd_proof_make(const struct gd_proof *nonces, enum gd_proof_role role, const char *token,
                   uint8_t ret[GD_PROOF_BYTES])
{
    /* The role is part of the proof, so that a proof cannot be sent back as one's own. */
    const char *label = role == GD_PROOF_TRAINER ? "gradb.v1 trainer" : "gradb.v1 debugger";
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, (const uint8_t *)token, strlen(token));
    crypto_auth_hmacsha256_update(&state, (const uint8_t *)label, strlen(label));
    crypto_auth_hmacsha256_update(&state, nonces->trainer, GD_PROOF_BYTES);
    crypto_auth_hmacsha256_update(&state, nonces->debugger, GD_PROOF_BYTES);
    crypto_auth_hmacsha256_final(&state, ret);
    sodium_memzero(&state, sizeof(state));
}

bool gd_proof_check(const struct gd_proof *nonces, enum gd_proof_role role, const char *token,
                    const uint8_t *proof, size_t len)
{
    uint8_t right[GD_PROOF_BYTES];
    gd_proof_make(nonces, role, token, right);
    return len == GD_PROOF_BYTES && sodium_memcmp(right, proof, GD_PROOF_BYTES) == 0;
}

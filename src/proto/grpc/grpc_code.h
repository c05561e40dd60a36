// SPDX-License-Identifier: MIT
/*
 * The status codes of gRPC that both sides of the wire use.
 */
#ifndef GD_PROTO_GRPC_CODE_H
#define GD_PROTO_GRPC_CODE_H

/* Grpc-status */
enum gd_grpc_code {
    GD_GRPC_OK = 0,
    GD_GRPC_CANCELLED = 1,
    GD_GRPC_UNKNOWN = 2,
    GD_GRPC_INVALID_ARGUMENT = 3,
    GD_GRPC_DEADLINE_EXCEEDED = 4,
    GD_GRPC_NOT_FOUND = 5,
    GD_GRPC_PERMISSION_DENIED = 7,
    GD_GRPC_RESOURCE_EXHAUSTED = 8,
    GD_GRPC_FAILED_PRECONDITION = 9,
    GD_GRPC_UNIMPLEMENTED = 12,
    GD_GRPC_INTERNAL = 13,
    GD_GRPC_UNAVAILABLE = 14,
    GD_GRPC_UNAUTHENTICATED = 16,
};

#endif

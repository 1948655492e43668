/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connection parameters of either end.
 */

#ifndef PARAMS_H
#define PARAMS_H

#include <stdbool.h>
#include <stdint.h>

struct conn;

/*
 * The private message of RFC 8797 Section 4: format identifier, version, flags, and the
 * Send Size and Receive Size, each in KiB minus one.
 */
#define PRIVATE_ID			0xf6, 0xab, 0x0e, 0x18
#define PRIVATE_MSG(flags, send, recv)	PRIVATE_ID, 1, flags, send, recv
#define PRIVATE_MSG_LEN			8
#define REMOTE_INVALIDATE		1	/* the flag */

/* The block behind it in which an end offers pulled Replies. */
#define PULLED_ID	0xd3, 0x97, 0x1e, 0xa4
#define PULLED_MSG	PULLED_ID, 1, 1, 0, 0
#define PULLED_MSG_LEN	8

/* What this end declares when it connects or accepts. */
struct params {
	uint8_t private_data[256];
	int private_len;
	int responder, initiator;	/* RDMA Read depths */
	unsigned int recv_size;		/* the longest message that the peer may send */
	bool rnr_forever;		/* the peer's RNR retry count is 7: it never gives up */
	uint8_t ack_timeout;		/* 4 us * 2^n; 0: the device's default */
};

extern const struct params params_default, params_rnr_forever, params_no_private,
	params_remote_inv, params_1k, params_no_reads, params_reserved_bits, params_prefixed,
	params_long_timeout, params_pulled;

bool peer_may_invalidate(const struct conn *c);
bool peer_pulls(const struct conn *c);
unsigned int peer_send_size(const struct conn *c);
unsigned int peer_recv_size(const struct conn *c);

#endif

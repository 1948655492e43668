// SPDX-License-Identifier: GPL-2.0
/*
 * Connection parameters of either end.
 */

#include <string.h>
#include "conn.h"
#include "params.h"

const struct params params_default = {
	.private_data = { PRIVATE_MSG(0, 3, 3) }, .private_len = PRIVATE_MSG_LEN,
	.responder = 16, .recv_size = 4096,
};

const struct params params_rnr_forever = {
	.private_data = { PRIVATE_MSG(0, 3, 3) }, .private_len = PRIVATE_MSG_LEN,
	.responder = 16, .recv_size = 4096, .rnr_forever = true,
};

const struct params params_no_private = { .responder = 16, .recv_size = 1024 };

const struct params params_remote_inv = {
	.private_data = { PRIVATE_MSG(REMOTE_INVALIDATE, 3, 3) }, .private_len = PRIVATE_MSG_LEN,
	.responder = 16, .recv_size = 4096,
};

const struct params params_1k = {
	.private_data = { PRIVATE_MSG(0, 0, 0) }, .private_len = PRIVATE_MSG_LEN,
	.responder = 16, .recv_size = 1024,
};

const struct params params_no_reads = {
	.private_data = { PRIVATE_MSG(0, 3, 3) }, .private_len = PRIVATE_MSG_LEN,
	.responder = 0, .recv_size = 4096,
};

/* All Reserved flags are set, REMOTE_INVALIDATE is not. */
const struct params params_reserved_bits = {
	.private_data = { PRIVATE_MSG(0xff & ~REMOTE_INVALIDATE, 3, 3) },
	.private_len = PRIVATE_MSG_LEN, .responder = 16, .recv_size = 4096,
};

/* Other data, with fragments of the format identifier in it, precedes the message. */
const struct params params_prefixed = {
	.private_data = { 1, 2, 3, 0xf6, 5, 6, 7, 0xf6, 0xab, 10, 11, 12, 13,
			  PRIVATE_MSG(0, 3, 3) },
	.private_len = 13 + PRIVATE_MSG_LEN, .responder = 16, .recv_size = 4096,
};

/* The longest ACK timeout there is, 4 us * 2^31, of which the peer takes seven. */
const struct params params_long_timeout = {
	.private_data = { PRIVATE_MSG(0, 3, 3) }, .private_len = PRIVATE_MSG_LEN,
	.responder = 16, .recv_size = 4096, .ack_timeout = 31,
};

const struct params params_pulled = {
	.private_data = { PRIVATE_MSG(0, 3, 3), PULLED_MSG },
	.private_len = PRIVATE_MSG_LEN + PULLED_MSG_LEN,
	.responder = 16, .initiator = 16, .recv_size = 4096,
};

/* The three bytes behind identifier and version in a block of the peer's private data. */
static const uint8_t *peer_block(const struct conn *c, const uint8_t id[5])
{
	static const uint8_t absent[3];
	int i;

	for (i = 0; i + 8 <= c->peer_private_len; i++)
		if (!memcmp(c->peer_private + i, id, 5))
			return c->peer_private + i + 5;
	return absent;
}

/* Flags, Send Size and Receive Size of the peer (RFC 8797 Section 4). */
static const uint8_t *peer_msg(const struct conn *c)
{
	static const uint8_t id[] = { PRIVATE_ID, 1 };

	return peer_block(c, id);
}

/* Whether the peer may use Remote Invalidation. */
bool peer_may_invalidate(const struct conn *c)
{
	return peer_msg(c)[0] & REMOTE_INVALIDATE;
}

/* Whether the peer offers pulled Replies. */
bool peer_pulls(const struct conn *c)
{
	static const uint8_t id[] = { PULLED_ID, 1 };

	return peer_block(c, id)[0] & 1;
}

unsigned int peer_send_size(const struct conn *c)
{
	return (peer_msg(c)[1] + 1) * 1024;
}

unsigned int peer_recv_size(const struct conn *c)
{
	return (peer_msg(c)[2] + 1) * 1024;
}

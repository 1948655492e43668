/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interfaces of groups that have not been converted to the headers by subject yet.
 */

#ifndef COMPAT_H
#define COMPAT_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "answers.h"
#include "counters.h"
#include "expect.h"
#include "exposed_reply.h"
#include "file_io.h"
#include "fuzz.h"
#include "group.h"
#include "mutate.h"
#include "nfs4.h"
#include "pattern.h"
#include "peers.h"
#include "probe.h"
#include "serve.h"
#include "session.h"
#include "stall.h"
#include "work.h"

static inline bool old_write_item(struct conn *c, unsigned int off, unsigned int count,
				  unsigned int n, bool zero, bool pzrc, bool both)
{
	return write_file_item(c, &(struct file_io) {
		.offset = off, .count = count, .segments = n, .empty_segments = zero,
		.form = !pzrc ? READ_CHUNK : both ? POSITION_ZERO_READ_CHUNK : POSITION_ZERO,
	});
}

static inline bool old_read_item(struct conn *c, unsigned int off, unsigned int count,
				 unsigned int n, bool zero, unsigned int extra)
{
	return read_file_item(c, &(struct file_io) {
		.offset = off, .count = count, .segments = n, .empty_segments = zero,
		.excess = extra,
	});
}

static inline void old_enc_reply_chunk_hdr(struct enc *e, uint32_t xid, uint32_t handle,
					   uint32_t room, uint64_t at)
{
	enc_reply_chunk_hdr(e, xid, &(struct segment) { handle, room, at });
}

static inline void old_enc_read_call(struct enc *e, uint32_t xid, uint32_t handle, uint32_t room,
				     uint64_t at, uint32_t count)
{
	enc_read_call(e, xid, &(struct segment) { handle, room, at }, count);
}

static inline void old_enc_write_call(struct enc *e, uint32_t xid, uint32_t handle, uint64_t at,
				      uint32_t count)
{
	enc_write_call(e, xid, &(struct segment) { handle, count, at });
}

static inline int old_rdma(struct conn *c, enum ibv_wr_opcode what, uint32_t handle,
			   uint64_t offset, unsigned int len, unsigned int at)
{
	return rdma(c, what, &(struct segment) { handle, len, offset }, at);
}

#endif

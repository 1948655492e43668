// SPDX-License-Identifier: GPL-2.0
/*
 * The Calls of the kernel's client, parsed.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "answers.h"
#include "calls.h"
#include "nfs4.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"

static struct call queue[RECVS];
static unsigned int queued;

static struct segment segment_at(const uint8_t *p, unsigned int w)
{
	return (struct segment) {
		.handle = get_word(p, w), .length = get_word(p, w + 1),
		.offset = get_dword(p, w + 2),
	};
}

/* Parses a Write chunk or the Reply chunk behind its discriminator, and moves @w behind it. */
static bool take_chunk(const uint8_t *p, unsigned int words, unsigned int *w, struct chunk *chunk)
{
	unsigned int i;

	if (*w >= words)
		return false;
	chunk->n = get_word(p, (*w)++);
	if (chunk->n > SEGMENTS || *w + SEGMENT_WORDS * chunk->n > words)
		return false;
	for (i = 0; i < chunk->n; i++, *w += SEGMENT_WORDS)
		chunk->seg[i] = segment_at(p, *w);
	return true;
}

/*
 * Parses the chunk lists. All Read segments have to have the same Position. Returns the first
 * word behind the lists, or 0 if they are malformed.
 */
static unsigned int take_lists(const uint8_t *p, unsigned int words, struct call *call)
{
	struct chunk more;
	unsigned int w = HDR_LISTS;

	for (; w < words && get_word(p, w); w += RSEGMENT_WORDS) {
		if (get_word(p, w) != 1 || call->reads.n == SEGMENTS || w + RSEGMENT_WORDS > words)
			return 0;
		if (!call->reads.n)
			call->position = get_word(p, w + 1);
		else if (get_word(p, w + 1) != call->position)
			return 0;
		call->reads.seg[call->reads.n++] = segment_at(p, w + 2);
	}
	for (w++; w < words && get_word(p, w); call->writes++) {
		if (get_word(p, w++) != 1 ||
		    !take_chunk(p, words, &w, call->writes ? &more : &call->write))
			return 0;
	}
	if (++w >= words || get_word(p, w) > 1)
		return 0;
	if (get_word(p, w++) && !take_chunk(p, words, &w, &call->reply))
		return 0;
	return w;
}

static void set_procedure(struct call *call)
{
	if (call->len < RPC_CALL_LEN)
		return;
	call->program = get_word(call->rpc, RPC_PROGRAM);
	call->version = get_word(call->rpc, RPC_PROGRAM_VERS);
	call->procedure = get_word(call->rpc, RPC_PROCEDURE);
}

/* Checks that the Read list has either all of the RPC message or one data item of it. */
static bool is_sound(const struct call *call)
{
	if (call->proc == RDMA_NOMSG && call->len)
		return fail("%u bytes behind the header of an RDMA_NOMSG", call->len);
	if (call->reads.n && !chunk_len(&call->reads))
		return fail("an empty Read chunk");
	if ((call->proc == RDMA_NOMSG) != (call->reads.n && !call->position))
		return fail("proc %u, a Read chunk of %u segments at Position %u", call->proc,
			    call->reads.n, call->position);
	if (call->proc == RDMA_MSG && (call->len < 4 || get_word(call->rpc, RPC_XID) != call->xid))
		return fail("xid %x in the header, %x in the payload", call->xid,
			    get_word(call->rpc, RPC_XID));
	return true;
}

/* NFSv3 may reduce the data of files and the paths of links, and nothing else (RFC 8267). */
static bool reduces_data_only(const struct call *call)
{
	if (call->proc == RDMA_NOMSG || call->program != NFS_PROGRAM || call->version != 3)
		return true;
	if (call->reads.n && call->procedure != NFS3_WRITE && call->procedure != NFS3_SYMLINK)
		return fail("a Read chunk in procedure %u", call->procedure);
	if (call->writes && call->procedure != NFS3_READ && call->procedure != NFS3_READLINK)
		return fail("a Write chunk in procedure %u", call->procedure);
	return true;
}

/* Parses a message. Fails if no client may send it. */
static bool parse_call(const uint8_t *p, unsigned int len, struct call *call)
{
	unsigned int w;

	*call = (struct call) {
		.xid = get_word(p, HDR_XID), .credits = get_word(p, HDR_CREDITS),
		.proc = get_word(p, HDR_PROC), .sent = len,
	};
	if (len < HDR_FIXED_LEN || get_word(p, HDR_VERS) != RPCRDMA_VERSION)
		return fail("%u bytes, vers %u", len, get_word(p, HDR_VERS));
	if (call->proc == RDMA_DONE) {
		call->rpc = calloc(1, 4);
		return true;
	}
	if (call->proc > RDMA_NOMSG)
		return fail("proc %u from a requester", call->proc);
	w = take_lists(p, len / 4, call);
	if (!w)
		return fail("malformed chunk lists in %u bytes, proc %u", len, call->proc);
	call->len = len - 4 * w;
	call->rpc = malloc(call->len + 4);
	memcpy(call->rpc, p + 4 * w, call->len);
	set_procedure(call);
	return is_sound(call) && reduces_data_only(call);
}

/* Queues all Calls that have arrived. */
static enum call_event poll_calls(struct conn *c)
{
	struct ibv_wc wc;
	const uint8_t *p;
	bool ok;

	while (queued < RECVS && ibv_poll_cq(c->rcq, 1, &wc) > 0) {
		if (wc.status)
			return CALL_CONN_LOST;
		p = c->recv + wc.wr_id * RECV_SIZE;
		ok = wc.byte_len <= c->params->recv_size;
		if (!ok)
			fail("message of %u bytes, at most %u are allowed", wc.byte_len,
			     c->params->recv_size);
		/* The reply to a message that the client took for a backchannel Call. */
		if (ok && serving.ignore_errors && wc.byte_len >= ERR_CHUNK_LEN &&
		    get_word(p, HDR_PROC) == RDMA_ERROR) {
			post_recv(c, wc.wr_id);
			continue;
		}
		ok = ok && parse_call(p, wc.byte_len, &queue[queued]);
		post_recv(c, wc.wr_id);
		if (!ok)
			return CALL_INVALID;
		queued++;
	}
	return queued ? CALL_RECEIVED : CALL_NONE;
}

/* Takes the next Call from the queue, if one arrives within @ms. */
enum call_event next_call(struct conn *c, struct call *call, int ms)
{
	const int64_t start = now_ms();
	enum call_event event = poll_calls(c);

	while (event == CALL_NONE && !disconnected(c) &&
	       now_ms() - start < ms * probe.time_factor) {
		usleep(100);
		event = poll_calls(c);
	}
	if (event != CALL_RECEIVED)
		return event;
	*call = queue[0];
	memmove(queue, queue + 1, --queued * sizeof(*queue));
	return CALL_RECEIVED;
}

/* The Call at this place of the queue, or NULL. */
struct call *queued_call(struct conn *c, unsigned int i)
{
	poll_calls(c);
	return i < queued ? &queue[i] : NULL;
}

void free_call(struct call *call)
{
	free(call->rpc);
	call->rpc = NULL;
}

void drop_queued_calls(void)
{
	while (queued)
		free_call(&queue[--queued]);
}

/* Reads the Read chunk, and inserts it at its Position. */
bool reassemble_call(struct conn *c, struct call *call)
{
	unsigned int i, n = 0, pad, position = call->position;
	uint8_t *rpc;

	if (call->complete || !call->reads.n)
		return true;
	for (i = 0; i < call->reads.n; i++) {
		const struct segment *s = &call->reads.seg[i];

		if (position > call->len || s->length > AREA - n)
			return fail("segment of %u bytes at Position %u of %u", s->length, position,
				    call->len);
		if (rdma(c, IBV_WR_RDMA_READ, s, n))
			return fail("RDMA Read of segment %u failed", i);
		n += s->length;
	}
	pad = call->proc == RDMA_NOMSG ? 0 : xdr_pad(n);
	rpc = calloc(1, call->len + n + pad + 4);
	memcpy(rpc, call->rpc, position);
	memcpy(rpc + position, c->area, n);
	memcpy(rpc + position + n + pad, call->rpc + position, call->len - position);
	free(call->rpc);
	call->rpc = rpc;
	call->len += n + pad;
	call->complete = true;
	set_procedure(call);
	return true;
}

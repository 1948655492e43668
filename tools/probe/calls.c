// SPDX-License-Identifier: GPL-2.0
/*
 * The Calls of the kernel's client, taken apart.
 */

#include "probe.h"

static struct call queue[RECVS];
static unsigned int queued;

/* What was sent may have looked like a reverse Call: RDMA_ERROR answers it. */
bool errors_may_come;

static struct segment segment_at(const uint8_t *p, unsigned int w)
{
	return (struct segment) {
		.handle = get_word(p, w), .length = get_word(p, w + 1),
		.offset = (uint64_t)get_word(p, w + 2) << 32 | get_word(p, w + 3),
	};
}

/* A Write chunk, or the Reply chunk: goes past it, behind the word that says it is there. */
static bool take_chunk(const uint8_t *p, unsigned int words, unsigned int *w, struct chunk *chunk)
{
	unsigned int i;

	if (*w >= words)
		return false;
	chunk->n = get_word(p, (*w)++);
	if (chunk->n > SEGMENTS || *w + 4 * chunk->n > words)
		return false;
	for (i = 0; i < chunk->n; i++, *w += 4)
		chunk->seg[i] = segment_at(p, *w);
	return true;
}

/* The chunk lists, of which that of Reads is one chunk; returns where they end, or 0. */
static unsigned int take_lists(const uint8_t *p, unsigned int words, struct call *call)
{
	struct chunk others;
	unsigned int w = 4;

	for (; w < words && get_word(p, w); w += 6) {
		if (get_word(p, w) != 1 || call->reads.n == SEGMENTS || w + 6 > words)
			return 0;
		if (!call->reads.n)
			call->position = get_word(p, w + 1);
		else if (get_word(p, w + 1) != call->position)
			return 0;
		call->reads.seg[call->reads.n++] = segment_at(p, w + 2);
	}
	for (w++; w < words && get_word(p, w); call->writes++) {
		if (get_word(p, w++) != 1 ||
		    !take_chunk(p, words, &w, call->writes ? &others : &call->write))
			return 0;
	}
	/* The Reply chunk, or the word that says that there is none. */
	if (++w >= words || get_word(p, w) > 1)
		return 0;
	if (get_word(p, w++) && !take_chunk(p, words, &w, &call->reply))
		return 0;
	return w;
}

static void name_procedure(struct call *call)
{
	if (call->len < 24)
		return;
	call->program = get_word(call->rpc, 3);
	call->version = get_word(call->rpc, 4);
	call->procedure = get_word(call->rpc, 5);
}

/* The octets that a chunk can hold. */
unsigned int octets_of(const struct chunk *chunk)
{
	unsigned int i, n = 0;

	for (i = 0; i < chunk->n; i++)
		n += chunk->seg[i].length;
	return n;
}

/* What is inline, and what the Read chunk is for: all of the Call, or an item of it. */
static bool is_sound(const struct call *call)
{
	if (call->proc == RDMA_NOMSG && call->len)
		return fail("%u octets behind the header of a Long Call", call->len);
	if (call->reads.n && !octets_of(&call->reads))
		return fail("an empty Read chunk");
	if ((call->proc == RDMA_NOMSG) != (call->reads.n && !call->position))
		return fail("procedure %u, a Read chunk of %u segments at %u", call->proc,
			    call->reads.n, call->position);
	if (call->proc == RDMA_MSG && (call->len < 4 || get_word(call->rpc, RPC_XID) != call->xid))
		return fail("xid %x in the header, %x in the message", call->xid,
			    get_word(call->rpc, RPC_XID));
	return true;
}

/* Of NFSv3 the data of files and the paths of links are reduced, and nothing else (RFC 8267). */
static bool reduces_data_only(const struct call *call)
{
	if (call->proc == RDMA_NOMSG || call->program != NFS || call->version != 3)
		return true;
	if (call->reads.n && call->procedure != NFS3_WRITE && call->procedure != NFS3_SYMLINK)
		return fail("a Read chunk in procedure %u", call->procedure);
	if (call->writes && call->procedure != NFS3_READ && call->procedure != NFS3_READLINK)
		return fail("a Write chunk in procedure %u", call->procedure);
	return true;
}

/* Takes a message apart that no client may send otherwise. */
static bool take(const uint8_t *p, unsigned int len, struct call *call)
{
	unsigned int w;

	*call = (struct call) {
		.xid = get_word(p, RPC_XID), .credits = get_word(p, 2), .proc = get_word(p, 3), .sent = len,
	};
	if (len < 16 || get_word(p, 1) != 1)
		return fail("%u octets, vers %u", len, get_word(p, 1));
	if (call->proc == RDMA_DONE) {
		call->rpc = calloc(1, 4);
		return true;
	}
	if (call->proc > RDMA_NOMSG)
		return fail("procedure %u from a requester", call->proc);
	w = take_lists(p, len / 4, call);
	if (!w)
		return fail("malformed lists in %u octets, proc %u", len, call->proc);
	call->len = len - 4 * w;
	call->rpc = malloc(call->len + 4);
	memcpy(call->rpc, p + 4 * w, call->len);
	name_procedure(call);
	return is_sound(call) && reduces_data_only(call);
}

static enum came look(struct conn *c)
{
	struct ibv_wc wc;
	const uint8_t *p;
	bool ok;

	while (queued < RECVS && ibv_poll_cq(c->rcq, 1, &wc) > 0) {
		if (wc.status)
			return LOST;
		p = c->recv + wc.wr_id * RECV_SIZE;
		ok = wc.byte_len <= c->terms->longest;
		if (!ok)
			fail("%u octets, of which %u were allowed", wc.byte_len, c->terms->longest);
		if (ok && errors_may_come && wc.byte_len >= 20 && get_word(p, 3) == RDMA_ERROR) {
			post_recv(c, wc.wr_id);
			continue;
		}
		ok = ok && take(p, wc.byte_len, &queue[queued]);
		post_recv(c, wc.wr_id);
		if (!ok)
			return WRONG;
		queued++;
	}
	return queued ? CALL : NONE;
}

/* The next Call, if it comes within that time. */
enum came next_call(struct conn *c, struct call *call, int ms)
{
	const int64_t start = now_ms();
	enum came came = look(c);

	while (came == NONE && !gone(c) && now_ms() - start < ms * patience) {
		usleep(100);
		came = look(c);
	}
	if (came != CALL)
		return came;
	*call = queue[0];
	memmove(queue, queue + 1, --queued * sizeof(*queue));
	return CALL;
}

/* The Calls behind it. */
struct call *waiting(struct conn *c, unsigned int i)
{
	look(c);
	return i < queued ? &queue[i] : NULL;
}

void call_done(struct call *call)
{
	free(call->rpc);
	call->rpc = NULL;
}

void forget_calls(void)
{
	while (queued)
		call_done(&queue[--queued]);
}

/* Gets what the Read chunk holds, and puts it where it belongs. */
bool assemble(struct conn *c, struct call *call)
{
	unsigned int i, n = 0, pad, position = call->position;
	uint8_t *rpc;

	if (call->complete || !call->reads.n)
		return true;
	for (i = 0; i < call->reads.n; i++) {
		const struct segment *s = &call->reads.seg[i];

		if (position > call->len || s->length > AREA - n)
			return fail("%u octets at %u of %u", s->length, position, call->len);
		if (rdma(c, IBV_WR_RDMA_READ, s->handle, s->offset, s->length, n))
			return fail("cannot read segment %u", i);
		n += s->length;
	}
	pad = call->proc == RDMA_NOMSG ? 0 : -n & 3;
	rpc = calloc(1, call->len + n + pad + 4);
	memcpy(rpc, call->rpc, position);
	memcpy(rpc + position, c->area, n);
	memcpy(rpc + position + n + pad, call->rpc + position, call->len - position);
	free(call->rpc);
	call->rpc = rpc;
	call->len += n + pad;
	call->complete = true;
	name_procedure(call);
	return true;
}

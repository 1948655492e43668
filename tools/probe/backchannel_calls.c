// SPDX-License-Identifier: GPL-2.0
/*
 * A server's backchannel Calls (RFC 8167), and the client's Replies to them.
 */

#include "backchannel_calls.h"
#include "counters.h"
#include "expect.h"
#include "probe.h"

#define READ_POSITION	40	/* the end of a NULL Call */
#define FURTHER_MS	500	/* in which Replies arrive that need not */

unsigned int backchannel_granted;

/* A NULL Call of the callback program. */
void enc_backchannel_call(struct enc *e, uint32_t xid, uint32_t vers, uint32_t credits)
{
	e->len = 0;
	enc_hdr(e, xid, vers, credits, RDMA_MSG);
	enc_no_chunks(e);
	enc_rpc_null(e, xid, CALLBACK);
}

static bool is_reply(const struct reply *r, uint32_t xid)
{
	const uint8_t *rpc = r->p + HDR_EMPTY_LEN;

	if (r->len < HDR_EMPTY_LEN + RPC_REPLY_LEN || get_word(r->p, HDR_XID) != xid ||
	    get_word(r->p, HDR_VERS) != RPCRDMA_VERSION || get_word(r->p, HDR_PROC) != RDMA_MSG)
		return fail("%u bytes, xid %x (expected %x), vers %u, proc %u", r->len,
			    get_word(r->p, HDR_XID), xid, get_word(r->p, HDR_VERS),
			    get_word(r->p, HDR_PROC));
	if (get_word(r->p, HDR_READ_LIST) || get_word(r->p, HDR_WRITE_LIST) ||
	    get_word(r->p, HDR_REPLY_CHUNK))
		return fail("chunks in a backchannel Reply");
	if (get_word(rpc, RPC_XID) != xid || get_word(rpc, RPC_TYPE) != RPC_REPLY ||
	    get_word(rpc, RPC_REPLY_STAT) || get_word(rpc, RPC_ACCEPT_STAT))
		return fail("payload: xid %x, msg_type %u, reply_stat %u, accept_stat %u",
			    get_word(rpc, RPC_XID), get_word(rpc, RPC_TYPE),
			    get_word(rpc, RPC_REPLY_STAT), get_word(rpc, RPC_ACCEPT_STAT));
	if (!get_word(r->p, HDR_CREDITS))
		return fail("the backchannel Reply grants no credits");
	backchannel_granted = get_word(r->p, HDR_CREDITS);
	return true;
}

/* The Calls of the last burst. Replies to those beyond the grant may be late. */
static uint32_t burst_first;
static unsigned int burst_n;

/* Gets the next message. Skips Replies to the last burst. */
static bool next_message(struct conn *c, struct reply *r, int ms)
{
	do {
		if (!get_reply(c, r, ms))
			return false;
	} while (r->any && get_word(r->p, HDR_XID) - burst_first < burst_n);
	return true;
}

/* Sends a Call, and gets the Reply. */
static bool call_back(struct conn *c, const struct enc *e, struct reply *r)
{
	if (!send_msg(c, e) || !next_message(c, r, PATIENCE_MS))
		return false;
	return r->any ? true : fail("no Reply");
}

/* Checks that a NULL Call that requests these credits succeeds. */
bool is_served(struct conn *c, uint32_t xid, uint32_t credits)
{
	struct reply r;
	struct enc e;

	enc_backchannel_call(&e, xid, RPCRDMA_VERSION, credits);
	return call_back(c, &e, &r) && is_reply(&r, xid);
}

static bool is_refused(struct conn *c, const struct enc *e, uint32_t xid)
{
	struct reply r;

	if (!call_back(c, e, &r) || !is_error(&r, xid, ERR_CHUNK))
		return false;
	backchannel_granted = get_word(r.p, HDR_CREDITS);
	return true;
}

/* Checks that Calls with a chunk of any kind are refused. */
bool chunks_refused(struct conn *c, uint32_t xid)
{
	enum { READ_CHUNK, WRITE_CHUNK, REPLY_CHUNK, POSITION_ZERO_CHUNK, KINDS };
	const uint32_t handle = c->area_mr->rkey;
	struct enc e;
	int kind;

	for (kind = 0; kind < KINDS; kind++) {
		e.len = 0;
		enc_hdr(&e, xid, RPCRDMA_VERSION, BACKCHANNEL_CREDITS,
			kind == POSITION_ZERO_CHUNK ? RDMA_NOMSG : RDMA_MSG);
		if (kind == READ_CHUNK)
			enc_rseg(&e, READ_POSITION, handle, 4096, area_addr(c, 0));
		if (kind == POSITION_ZERO_CHUNK)
			enc_rseg(&e, 0, handle, 4096, area_addr(c, 0));
		enc_list_end(&e);
		if (kind == WRITE_CHUNK)
			enc_wchunk(&e, handle, 4096, area_addr(c, 0));
		enc_list_end(&e);
		if (kind == REPLY_CHUNK)
			enc_wchunk(&e, handle, 4096, area_addr(c, 0));
		else
			enc_no_reply_chunk(&e);
		if (kind != POSITION_ZERO_CHUNK)
			enc_rpc_null(&e, xid, CALLBACK);
		if (!is_refused(c, &e, xid))
			return false;
	}
	return true;
}

/* The client sends RDMA_ERROR at once: it has processed all earlier messages by then. */
bool has_processed(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };

	enc_hdr(&e, xid, RPCRDMA_VERSION, BACKCHANNEL_CREDITS, RDMA_NOMSG);
	enc_rseg(&e, 0, c->area_mr->rkey, 4096, area_addr(c, 0));
	enc_no_chunks(&e);
	return is_refused(c, &e, xid);
}

/* The granted number of Calls, or as many as the probe has Receives for. */
unsigned int backchannel_window(void)
{
	return backchannel_granted < RECVS - FORWARD_GRANT ? backchannel_granted :
							     RECVS - FORWARD_GRANT;
}

/*
 * Sends @n Calls at once. Returns how many Replies arrived, or -1 if one was wrong. There may be no
 * others than the first @least.
 */
int burst_beyond(struct conn *c, unsigned int n, unsigned int least)
{
	const unsigned long rnr = rnr_count(c);
	const uint32_t first = probe.next_xid;
	bool seen[RECVS] = { false };
	struct reply r;
	struct ibv_wc wc;
	unsigned int i, answered = 0;
	struct enc e;

	probe.next_xid += n;
	for (i = 0; i < n; i++) {
		enc_backchannel_call(&e, first + i, RPCRDMA_VERSION, BACKCHANNEL_CREDITS);
		if (!post_msg(c, &e))
			return -1;
	}
	for (i = 0; i < n; i++)
		if (!wait_cq(c->scq, &wc, PATIENCE_MS) || wc.status) {
			fail("Send %u: %s", i, ibv_wc_status_str(wc.status));
			return -1;
		}
	while (answered < n) {
		if (!next_message(c, &r, answered < least ? PATIENCE_MS : FURTHER_MS))
			return -1;
		if (!r.any)
			break;
		i = get_word(r.p, HDR_XID) - first;
		if (i >= n || seen[i] || !is_reply(&r, first + i)) {
			fail("unexpected message with xid %x", get_word(r.p, HDR_XID));
			return -1;
		}
		seen[i] = true;
		answered++;
	}
	burst_first = first;
	burst_n = n;
	return no_rnr_since(c, rnr) ? (int)answered : -1;
}

int burst(struct conn *c, unsigned int n)
{
	return burst_beyond(c, n, n);
}

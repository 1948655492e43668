// SPDX-License-Identifier: GPL-2.0
/*
 * A client's NFSv4.1 session with a backchannel, and what makes the server recall a delegation.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "expect.h"
#include "nfs4.h"
#include "probe.h"
#include "session.h"

enum {
	OPEN = 18, BACKCHANNEL_CTL = 40, EXCHANGE_ID = 42, CREATE_SESSION = 43, SEQUENCE = 53,
	RECLAIM_COMPLETE = 58,
};
enum { CB_RECALL = 4, CB_SEQUENCE = 11 };

#define CONN_BACK_CHAN		2	/* CREATE_SESSION4_FLAG_CONN_BACK_CHAN */
#define SHARE_READ_WANT_READ	0x101	/* OPEN to read, with a read delegation */
#define OPEN4_CREATE		1
#define READ_DELEGATION		1
#define SESSION_ID_LEN		16

/* Words of a result behind its operation and status. */
enum { CREATE_SESSION_FLAGS = 5, SEQUENCE_FLAGS = 8 };
/* Words of the result of OPEN: operation, status, stateid, change_info4, rflags. */
enum { OPEN_ATTRSET = 2 + 4 + 5 + 1 };
/* Bytes of the result of SEQUENCE behind its operation and status. */
#define SEQUENCE_RESULT_LEN	36
/* Bytes of the arguments of CB_SEQUENCE up to its slots: session, sequence, slot, highest slot. */
#define CB_SEQUENCE_ARGS_LEN	28
/* Bytes of the arguments of a CB_COMPOUND behind its tag: minor version, ident, operations. */
#define CB_COMPOUND_ARGS_LEN	12

static uint8_t session[SESSION_ID_LEN];
static uint32_t sequence;
static uint64_t client;
static char owner[64];

/* The last Calls of the server on this connection. */
static struct {
	uint32_t xid, len;
	uint8_t rpc[1024];
} callbacks[64];
static unsigned int n_callbacks;

/* An NFSv4.1 compound up to the arguments of its first operation. Returns the XID. */
static uint32_t begin(struct enc *e, uint32_t op, uint32_t ops)
{
	const uint32_t xid = new_xid();

	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_no_chunks(e);
	enc_nfs4_call(e, xid, NFSPROC4_COMPOUND);
	enc_string(e, "");
	enc_u32(e, 1);
	enc_u32(e, ops);
	enc_u32(e, op);
	return xid;
}

/* A compound in the session: SEQUENCE, and @more operations that follow. */
static uint32_t begin_in_session(struct enc *e, uint32_t more)
{
	const uint32_t xid = begin(e, SEQUENCE, 1 + more);

	enc_bytes(e, session, sizeof(session));
	enc_u32(e, sequence++);
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 0);
	return xid;
}

/* The result of the first operation behind its status; NULL if it has failed. */
static const uint8_t *first_result(const struct reply *r, uint32_t xid, uint32_t op)
{
	const uint8_t *p;
	unsigned int at;

	if (!reply_body(r, xid, &at) || !at)
		return NULL;
	p = r->p + at;
	if (get_word(p, RPC_TYPE) != RPC_REPLY || get_word(p, RPC_ACCEPT_STAT) ||
	    get_word(p, NFS_STATUS) || get_word(p, COMPOUND_RESULT) != op ||
	    get_word(p, COMPOUND_RESULT + 1)) {
		fail("operation %u: accept_stat %u, NFS4 status %u", op,
		     get_word(p, RPC_ACCEPT_STAT), get_word(p, NFS_STATUS));
		return NULL;
	}
	return p + COMPOUND_RESULTS_AT + OP_RESULT_LEN;
}

/* channel_attrs4. */
static void enc_channel(struct enc *e)
{
	enc_u32(e, 0);		/* header padding */
	enc_u32(e, 4096);	/* request, reply, cached reply */
	enc_u32(e, 4096);
	enc_u32(e, 2048);
	enc_u32(e, 16);		/* operations */
	enc_u32(e, 8);		/* requests */
	enc_u32(e, 0);
}

static bool exchange_id(struct conn *c, uint32_t *seqid)
{
	static unsigned int owners;
	const uint8_t *p;
	struct reply r;
	struct enc e;
	uint32_t xid;

	snprintf(owner, sizeof(owner), "probe %d %u", getpid(), owners++);
	xid = begin(&e, EXCHANGE_ID, 1);
	enc_u64(&e, time(NULL));
	enc_string(&e, owner);
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	if (!exchange(c, &e, &r))
		return false;
	p = first_result(&r, xid, EXCHANGE_ID);
	if (!p)
		return false;
	client = get_dword(p, 0);
	*seqid = get_word(p, 2);
	return true;
}

static bool make_session(struct conn *c)
{
	const uint8_t *p;
	uint32_t xid, seqid;
	struct reply r;
	struct enc e;

	n_callbacks = 0;
	if (!exchange_id(c, &seqid))
		return false;
	xid = begin(&e, CREATE_SESSION, 1);
	enc_u64(&e, client);
	enc_u32(&e, seqid);
	enc_u32(&e, CONN_BACK_CHAN);
	enc_channel(&e);
	enc_channel(&e);
	enc_u32(&e, CALLBACK);
	enc_u32(&e, 1);		/* security: AUTH_NONE */
	enc_u32(&e, 0);
	if (!exchange(c, &e, &r))
		return false;
	p = first_result(&r, xid, CREATE_SESSION);
	if (!p)
		return false;
	memcpy(session, p, sizeof(session));
	sequence = 1;
	if (!(get_word(p, CREATE_SESSION_FLAGS) & CONN_BACK_CHAN))
		return fail("CREATE_SESSION: no backchannel");
	xid = begin_in_session(&e, 1);
	enc_u32(&e, RECLAIM_COMPLETE);
	enc_u32(&e, 0);
	return exchange(c, &e, &r) && first_result(&r, xid, SEQUENCE);
}

/* OPENs the file to read it, and creates it if necessary. */
static bool open_file(struct conn *c, const char *file, bool *delegated)
{
	struct reply r;
	struct enc e;
	const uint8_t *p;
	uint32_t xid = begin_in_session(&e, 3);
	unsigned int bitmap;

	enc_u32(&e, PUTROOTFH);
	enc_lookup(&e, probe.dir);
	enc_u32(&e, OPEN);
	enc_u32(&e, 0);			/* seqid */
	enc_u32(&e, SHARE_READ_WANT_READ);
	enc_u32(&e, 0);			/* deny nothing */
	enc_u64(&e, client);
	enc_string(&e, owner);
	enc_u32(&e, OPEN4_CREATE);
	enc_u32(&e, 0);			/* UNCHECKED4, no attributes */
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	enc_u32(&e, 0);			/* CLAIM_NULL */
	enc_string(&e, file);
	if (!exchange(c, &e, &r))
		return false;
	p = first_result(&r, xid, SEQUENCE);
	if (!p)
		return false;
	/* Skip the results of SEQUENCE, PUTROOTFH and LOOKUP. */
	p += SEQUENCE_RESULT_LEN + 2 * OP_RESULT_LEN;
	if (get_word(p, 0) != OPEN || get_word(p, 1))
		return fail("OPEN: operation %u, status %u", get_word(p, 0), get_word(p, 1));
	bitmap = get_word(p, OPEN_ATTRSET);
	if (bitmap > r.len / 4)
		return fail("OPEN: attrset of %u words", bitmap);
	*delegated = get_word(p, OPEN_ATTRSET + 1 + bitmap) == READ_DELEGATION;
	return true;
}

/* A WRITE with another stateid: the server replies NFS4ERR_DELAY. Does not wait for that. */
bool write_as_other_client(struct conn *c, const char *file)
{
	struct enc e;

	enc_compound_call(&e, new_xid(), 2);
	enc_lookup(&e, file);
	enc_write(&e, 0, 4);
	enc_u32(&e, 0);
	return send_msg(c, &e);
}

/* Gets a delegation of a new file. The server may have reasons to give none yet. */
bool get_delegation(struct conn *c, char file[FILE_NAME_LEN])
{
	static unsigned int files;
	bool delegated = false;
	int i;

	snprintf(file, FILE_NAME_LEN, "probe-%d-%u", getpid(), files++);
	for (i = 0; i < 60 && !delegated; i++) {
		if (!open_file(c, file, &delegated))
			return false;
		if (!delegated)
			sleep(1);
	}
	return delegated ? true : fail("no delegation within 60 s");
}

/* A Call that repeats an XID is a retransmission by SUNRPC, and has the same contents. */
bool new_or_retransmitted(const struct reply *r)
{
	const uint32_t xid = get_word(r->p, HDR_XID);
	const unsigned int len = r->len - HDR_EMPTY_LEN;
	const uint8_t *rpc = r->p + HDR_EMPTY_LEN;
	unsigned int i = n_callbacks < COUNT(callbacks) ? n_callbacks : COUNT(callbacks);

	if (r->len < HDR_EMPTY_LEN || len > sizeof(callbacks[0].rpc))
		return fail("a backchannel Call of %u bytes", r->len);
	while (i--) {
		if (callbacks[i].xid != xid)
			continue;
		if (callbacks[i].len == len && !memcmp(callbacks[i].rpc, rpc, len))
			return true;
		return fail("backchannel xid %x is used for two Calls", xid);
	}
	i = n_callbacks++ % COUNT(callbacks);
	callbacks[i].xid = xid;
	callbacks[i].len = len;
	memcpy(callbacks[i].rpc, rpc, len);
	return true;
}

static uint32_t rpc_type(const struct reply *r)
{
	return get_word(r->p + HDR_EMPTY_LEN, RPC_TYPE);
}

/* Makes a session, gets a delegation, and makes the server recall it: returns that Call. */
bool get_recall(struct conn *c, struct reply *back)
{
	static uint8_t copy[RECV_SIZE];
	char file[FILE_NAME_LEN];
	struct reply r;
	int i;

	if (!make_session(c) || !get_delegation(c, file))
		return false;
	if (!get_reply(c, &r, 500))
		return false;
	if (r.any)
		return fail("a backchannel Call before there is a reason");
	if (!write_as_other_client(c, file))
		return false;
	/* The Reply to the WRITE, and the recall. */
	for (i = 0; i < 2; i++) {
		if (!get_reply(c, &r, PATIENCE_MS) || !r.any)
			return fail("no recall");
		if (rpc_type(&r) != RPC_CALL)
			continue;
		if (!new_or_retransmitted(&r))
			return false;
		*back = r;
		memcpy(copy, r.p, r.len);
		back->p = copy;
	}
	return back->p ? true : fail("no recall");
}

/* Makes the server recall several delegations. */
bool cause_recalls(struct conn *c, unsigned int n)
{
	char files[MAX_RECALLS][FILE_NAME_LEN];
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!get_delegation(c, files[i]))
			return false;
	for (i = 0; i < n; i++)
		if (!write_as_other_client(c, files[i]))
			return false;
	return true;
}

/* Gets the next backchannel Call, and skips Replies. False if there is none within @ms. */
bool next_callback(struct conn *c, struct reply *back, int ms)
{
	do {
		if (!get_reply(c, back, ms) || !back->any)
			return false;
	} while (rpc_type(back) != RPC_CALL);
	return true;
}

/* Gets the server's next Reply, and skips its Calls. */
bool next_forward_reply(struct conn *c, struct reply *r)
{
	int i;

	for (i = 0; i <= MAX_CALLBACKS; i++) {
		if (!get_reply(c, r, PATIENCE_MS))
			return false;
		if (!r->any)
			return fail("no Reply");
		if (get_word(r->p, HDR_PROC) != RDMA_MSG || rpc_type(r) != RPC_CALL)
			return true;
		if (!new_or_retransmitted(r))
			return false;
	}
	return fail("more than %u backchannel Calls", MAX_CALLBACKS);
}

/*
 * A SEQUENCE: the state of the backchannel according to the server, and the credits that its
 * Reply grants. A recall may arrive before the Reply to the WRITE that caused it: such a Reply is
 * skipped.
 */
bool sequence_status(struct conn *c, uint32_t *flags, uint32_t *credits)
{
	const uint8_t *p;
	struct enc e;
	struct reply r;
	const uint32_t xid = begin_in_session(&e, 0);
	int i = 0;

	if (!send_msg(c, &e))
		return false;
	do {
		if (!next_forward_reply(c, &r))
			return false;
	} while (get_word(r.p, HDR_XID) != xid && i++ < MAX_RECALLS);
	p = first_result(&r, xid, SEQUENCE);
	if (p)
		*flags = get_word(p, SEQUENCE_FLAGS);
	if (credits)
		*credits = get_word(r.p, HDR_CREDITS);
	return p;
}

/* Makes the server give up its pending backchannel Calls, and start over. */
bool post_backchannel_ctl(struct conn *c)
{
	struct enc e;

	begin_in_session(&e, 1);
	enc_u32(&e, BACKCHANNEL_CTL);
	enc_u32(&e, CALLBACK);
	enc_u32(&e, 1);
	enc_u32(&e, 0);
	return post_msg(c, &e);
}

/* Checks the header of a backchannel Call. */
bool is_callback(const struct reply *r)
{
	const uint8_t *rpc = r->p + HDR_EMPTY_LEN;

	if (get_word(r->p, HDR_VERS) != RPCRDMA_VERSION || get_word(r->p, HDR_PROC) != RDMA_MSG ||
	    get_word(r->p, HDR_READ_LIST) || get_word(r->p, HDR_WRITE_LIST) ||
	    get_word(r->p, HDR_REPLY_CHUNK))
		return fail("vers %u, proc %u, or chunks", get_word(r->p, HDR_VERS),
			    get_word(r->p, HDR_PROC));
	if (!get_word(r->p, HDR_CREDITS))
		return fail("the Call requests no credits");
	if (get_word(rpc, RPC_XID) != get_word(r->p, HDR_XID) ||
	    get_word(rpc, RPC_TYPE) != RPC_CALL || get_word(rpc, RPC_PROGRAM) != CALLBACK)
		return fail("xid %x in the header, %x in the payload, msg_type %u, program %x",
			    get_word(r->p, HDR_XID), get_word(rpc, RPC_XID),
			    get_word(rpc, RPC_TYPE), get_word(rpc, RPC_PROGRAM));
	return true;
}

/* Skips an opaque item. Stays within the message if its length is bogus. */
static unsigned int skip_opaque(const struct reply *r, unsigned int at)
{
	const uint32_t n = get_word(r->p + at, 0);

	return at + 4 + (n < r->len ? xdr_align(n) : 0);
}

/* The Reply to a recall: success, and a grant of credits. */
void enc_recall_reply(struct enc *e, const struct reply *back, uint32_t credits)
{
	const uint32_t xid = get_word(back->p, HDR_XID);
	unsigned int at = HDR_EMPTY_LEN + RPC_CALL_LEN;

	/* Credential and verifier have a flavor; the tag does not. */
	at = skip_opaque(back, at + 4);
	at = skip_opaque(back, at + 4);
	at = skip_opaque(back, at);
	at += CB_COMPOUND_ARGS_LEN;
	e->len = 0;
	enc_hdr(e, xid, RPCRDMA_VERSION, credits, RDMA_MSG);
	enc_no_chunks(e);
	enc_rpc_reply(e, xid, ACCEPT_SUCCESS);
	enc_u32(e, 0);		/* status */
	enc_u32(e, 0);		/* tag */
	enc_u32(e, 2);		/* results */
	enc_u32(e, CB_SEQUENCE);
	enc_u32(e, 0);
	/* As in the Call, and the target highest slot, which is the same. */
	at += 4;
	enc_bytes(e, back->p + at, CB_SEQUENCE_ARGS_LEN);
	enc_u32(e, get_word(back->p + at, CB_SEQUENCE_ARGS_LEN / 4 - 1));
	enc_u32(e, CB_RECALL);
	enc_u32(e, 0);
}

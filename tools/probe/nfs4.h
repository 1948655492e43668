/* SPDX-License-Identifier: GPL-2.0 */
/*
 * NFSv4.0 Calls.
 */

#ifndef NFS4_H
#define NFS4_H

#include "encode.h"

enum { NFS_PROGRAM = 100003 };
enum { NFSPROC4_NULL, NFSPROC4_COMPOUND };
enum {
	GETFH = 10, LOOKUP = 15, PUTFH = 22, PUTROOTFH = 24, READ = 25, READDIR = 26, READLINK = 27,
	REMOVE = 28, WRITE = 38,
};

#define COMPOUND_PREFIX_OPS	2	/* PUTROOTFH and LOOKUP of probe.dir */

/* Words of the Reply to enc_compound(). */
enum {
	COMPOUND_NUMRES = NFS_STATUS + 2,
	COMPOUND_RESULT,		/* the first one: operation, status */
	/* Behind the results of PUTROOTFH, LOOKUP and LOOKUP: operation, status, eof, count. */
	READ_COUNT = COMPOUND_RESULT + 3 * 2 + 3,
	READ_NEXT_RESULT,		/* if the data is in a Write chunk */
};

/* Bytes of that Reply. */
#define COMPOUND_RESULTS_AT	36	/* the first result */
#define OP_RESULT_LEN		8	/* operation and status */
#define READ_RESULT_LEN		16	/* of READ, but for the data */
#define WRITE_RESULT_LEN	24
#define READLINK_RESULT_LEN	12	/* of READLINK, but for the path */

/* Replies to LOOKUP and READ, and to LOOKUP and READLINK, but for data and path. */
#define READ_REPLY_LEN		(COMPOUND_RESULTS_AT + 3 * OP_RESULT_LEN + READ_RESULT_LEN)
#define READLINK_REPLY_LEN	(COMPOUND_RESULTS_AT + 3 * OP_RESULT_LEN + READLINK_RESULT_LEN)

/* The RPC Call. */
void enc_rpc_call(struct enc *e, uint32_t xid, uint32_t version, uint32_t proc);
void enc_nfs4_call(struct enc *e, uint32_t xid, uint32_t proc);
void enc_compound(struct enc *e, uint32_t xid, unsigned int ops);

/* Operations of a compound. */
void enc_lookup(struct enc *e, const char *name);
void enc_read(struct enc *e, uint64_t offset, uint32_t count);
unsigned int enc_write(struct enc *e, uint64_t offset, uint32_t count);

/* Transport header and RPC Call. */
void enc_null_call(struct enc *e, uint32_t xid);
void enc_compound_call(struct enc *e, uint32_t xid, unsigned int ops);
void enc_inline_read_call(struct enc *e, uint32_t xid, uint32_t count);
void enc_reply_chunk_hdr(struct enc *e, uint32_t xid, const struct segment *reply);
void enc_read_call(struct enc *e, uint32_t xid, const struct segment *data, uint32_t count);
void enc_write_call(struct enc *e, uint32_t xid, const struct segment *data);

#endif

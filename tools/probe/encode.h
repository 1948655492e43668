/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages, word by word: the transport header (RFC 8166 Section 4) and RPC (RFC 5531).
 */

#ifndef ENCODE_H
#define ENCODE_H

#include <stdint.h>

#define RPCRDMA_VERSION	1
#define CREDITS		32	/* that Calls request */

/* rdma_proc and rdma_err (RFC 8166 Section 4.1). */
enum { RDMA_MSG, RDMA_NOMSG, RDMA_MSGP, RDMA_DONE, RDMA_ERROR };
enum { ERR_VERS = 1, ERR_CHUNK = 2 };

/* Words of the transport header. */
enum {
	HDR_XID, HDR_VERS, HDR_CREDITS, HDR_PROC,
	HDR_LISTS,			/* the chunk lists start here */
	/* If all lists are empty: */
	HDR_READ_LIST = HDR_LISTS, HDR_WRITE_LIST, HDR_REPLY_CHUNK,
	/* In RDMA_ERROR: */
	HDR_ERR = HDR_LISTS, HDR_VERS_LOW, HDR_VERS_HIGH,
};

/* Words of the only Read segment, and of the first Write chunk behind an empty Read list. */
enum {
	RSEG_POSITION = HDR_LISTS + 1, RSEG_HANDLE, RSEG_LENGTH, RSEG_OFFSET,
	WCHUNK_SEGMENTS = HDR_WRITE_LIST + 1, WCHUNK_HANDLE, WCHUNK_LENGTH, WCHUNK_OFFSET,
};

/* Bytes of the transport header, and of the parts of its lists. */
#define HDR_FIXED_LEN	16	/* up to the lists */
#define HDR_EMPTY_LEN	28	/* with three empty lists */
#define ERR_CHUNK_LEN	20	/* of an RDMA_ERROR */
#define ERR_VERS_LEN	28
#define CHUNK_HEAD_LEN	8	/* presence, number of segments */
#define SEGMENT_LEN	16	/* handle, length, offset */
#define SEGMENT_WORDS	4
#define RSEGMENT_LEN	24	/* presence, Position, segment */
#define RSEGMENT_WORDS	6

/* Words of an RPC message. */
enum {
	RPC_XID, RPC_TYPE,
	/* In a Call: */
	RPC_VERS, RPC_PROGRAM, RPC_PROGRAM_VERS, RPC_PROCEDURE,
	/* In a Reply: */
	RPC_REPLY_STAT = RPC_TYPE + 1, RPC_VERF_FLAVOR, RPC_VERF_LEN, RPC_ACCEPT_STAT,
	RPC_RESULTS,
	NFS_STATUS = RPC_RESULTS,	/* the first result of each NFS procedure but NULL */
};

enum { RPC_CALL, RPC_REPLY };		/* msg_type */
enum { ACCEPT_SUCCESS, PROG_UNAVAIL, GARBAGE_ARGS = 4 };	/* accept_stat */

#define RPC_CALL_LEN	24	/* bytes of a Call in front of its credential */
#define RPC_REPLY_LEN	24	/* bytes of an accepted Reply in front of its results */

#define CALLBACK	0x40000000	/* the program number of Linux's NFSv4 callback service */

/* A message under construction. */
struct enc {
	uint8_t buf[65536];
	unsigned int len;
};

/* A chunk, but for the Position of its segments. */
#define SEGMENTS	64
struct segment {
	uint32_t handle, length;
	uint64_t offset;
};

struct chunk {
	unsigned int n;
	struct segment seg[SEGMENTS];
};

uint32_t get_word(const uint8_t *p, unsigned int word);
uint64_t get_dword(const uint8_t *p, unsigned int word);
void put_word(struct enc *e, unsigned int word, uint32_t value);

void enc_u32(struct enc *e, uint32_t value);
void enc_u64(struct enc *e, uint64_t value);
void enc_bytes(struct enc *e, const void *p, unsigned int n);
void enc_opaque(struct enc *e, const void *p, unsigned int n);
void enc_string(struct enc *e, const char *s);

void enc_hdr(struct enc *e, uint32_t xid, uint32_t vers, uint32_t credits, uint32_t proc);
void enc_call_hdr(struct enc *e, uint32_t xid, uint32_t proc);
void enc_seg(struct enc *e, uint32_t handle, uint32_t length, uint64_t offset);
void enc_rseg(struct enc *e, uint32_t position, uint32_t handle, uint32_t length,
	      uint64_t offset);
void enc_chunk_head(struct enc *e, unsigned int segments);
void enc_wchunk(struct enc *e, uint32_t handle, uint32_t length, uint64_t offset);
void enc_list_end(struct enc *e);
void enc_no_reply_chunk(struct enc *e);
void enc_no_chunks(struct enc *e);
void enc_error(struct enc *e, uint32_t xid, uint32_t err);

void enc_rpc_null(struct enc *e, uint32_t xid, uint32_t program);
void enc_rpc_reply(struct enc *e, uint32_t xid, uint32_t accept_stat);

unsigned int chunk_len(const struct chunk *chunk);
unsigned int xdr_pad(unsigned int len);
unsigned int xdr_align(unsigned int len);

#endif

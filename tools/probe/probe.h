/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the probe share.
 */

#ifndef PROBE_H
#define PROBE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define RECVS		160	/* more than most servers grant, and a few */
#define RECV_SIZE	8192
#define SEND_SIZE	(256 << 10)
#define AREA		(4 << 20)
#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

#define RPCRDMA_VERSION	1
#define CREDITS		32	/* that Calls request */

/* rdma_proc and rdma_err (RFC 8166 Section 4.1). */
enum { RDMA_MSG, RDMA_NOMSG, RDMA_MSGP, RDMA_DONE, RDMA_ERROR };
enum { ERR_VERS = 1, ERR_CHUNK = 2 };

/* Words of the transport header. */
enum {
	HDR_XID, HDR_VERS, HDR_CREDITS, HDR_PROC,
	HDR_LISTS,			/* the chunk lists start here */
	HDR_ERR = HDR_LISTS,		/* of RDMA_ERROR */
	HDR_VERS_LOW, HDR_VERS_HIGH,	/* of ERR_VERS */
	/* If all lists are empty: */
	HDR_READ_LIST = HDR_LISTS, HDR_WRITE_LIST, HDR_REPLY_CHUNK,
};

/* Bytes of the transport header, and of what its lists consist of. */
#define HDR_FIXED_LEN	16	/* up to the lists */
#define HDR_EMPTY_LEN	28	/* with three empty lists */
#define ERR_CHUNK_LEN	20	/* an RDMA_ERROR */
#define ERR_VERS_LEN	28
#define CHUNK_HEAD_LEN	8	/* presence, number of segments */
#define SEGMENT_LEN	16
#define SEGMENT_WORDS	4
#define RSEGMENT_LEN	24	/* presence, Position, segment */
#define RSEGMENT_WORDS	6

/* Words of an RPC message (RFC 5531). */
enum {
	RPC_XID, RPC_TYPE,
	RPC_PROGRAM = 3, RPC_VERSION, RPC_PROCEDURE,			/* of a Call */
	RPC_REPLY_STAT = 2, RPC_VERF_FLAVOR, RPC_VERF_LEN, RPC_ACCEPT_STAT, /* of a Reply */
	RPC_RESULTS,
	NFS_STATUS = RPC_RESULTS,	/* what each result of NFS starts with */
};

#define RPC_REPLY_LEN	24	/* bytes of a Reply in front of the results */
#define RPC_CALL_LEN	24	/* bytes of a Call in front of the credential */

/* What this end of a connection tells the other, and keeps to. */
struct terms {
	uint8_t octets[256];		/* private data */
	int len;
	int responder, initiator;	/* RDMA Reads that it answers, and as a client asks for */
	unsigned int longest;		/* messages that it receives */
	bool slow;			/* the other end is to wait for Receives as long as it takes */
	uint8_t answers_in;		/* and for answers: 4 us * 2^n, or by default the device's */
};

struct conn {
	const struct terms *terms;
	struct rdma_event_channel *ec;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_mr *recv_mr, *send_mr, *area_mr;
	uint8_t *recv, *send, *area;
	uint8_t peer_private[256];
	int peer_private_len;
	unsigned int send_used;
	bool left;			/* the other end has */
};

/* What came back. */
struct reply {
	bool any;
	uint32_t len;
	bool invalidated;
	uint32_t invalidated_rkey;
	const uint8_t *p;
};

struct enc {
	uint8_t b[65536];
	unsigned int n;
};

/* A chunk of the client's, and a Call with its chunks. */
#define SEGMENTS	64
struct segment {
	uint32_t handle, length;
	uint64_t offset;
};

struct chunk {
	unsigned int n;
	struct segment seg[SEGMENTS];
};

struct call {
	uint32_t xid, credits, proc;
	unsigned int sent;		/* octets of the Send */
	uint32_t position;		/* of the Read list's first segment */
	struct chunk reads, write, reply;
	unsigned int writes;		/* Write chunks; of more than one the first is kept */
	uint8_t *rpc;			/* the RPC message, or what there is of it inline */
	unsigned int len;
	bool complete;			/* its Read chunks are in place */
	uint32_t program, version, procedure;
};

/*
 * A case. As a client, or as a server that calls, it is a function that is given a
 * connection. As a server that answers it is a function that is given each Call of
 * the kernel's client while that client has some work to do, by default by
 * answer_honestly(). It says with seen that the Call was among them that it is about.
 * The work ends with an errno.
 */
struct test {
	const char *ids;		/* the requirements that it shows, or "-" */
	const char *name;
	bool (*run)(struct conn *c);
	bool (*answer)(struct conn *c, struct call *call);
	int (*work)(void);
	int expected;
	const struct terms *terms;	/* those of the group by default, or terms_plain */
	const struct terms *(*terms_of)(unsigned int number);	/* other ones for each connection */
	const char *options;		/* of the mount */
	int connections;		/* at most 1 by default; at least -n if negative */
};

struct group {
	const char *name, *about;
	const struct test *tests;
	unsigned int n;
	const struct terms *terms;
	/* Makes the connection for a case; there is none where the kernel's client works. */
	struct conn *(*open)(const struct terms *terms);
	/* Answers a Call that none of its cases is about, and says so. */
	bool (*others)(struct conn *c, struct call *call, bool *ok);
	bool kept;			/* until a case fails */
	/* Whether a client that has mounted can do what the cases are about; if not, it skips. */
	bool (*fits)(const struct conn *c);
	void (*leave)(void);		/* before the connection is closed */
};

extern const struct group group_headers, group_chunks, group_peers, group_session,
	group_pulled, group_backchannel_early, group_backchannel, group_replies, group_exposed,
	group_credits, group_wrong_invalidate, group_lists, group_agreement,
	group_exposer, group_memory_windows, group_split_items, group_no_receives, group_no_read_response, group_read_throttle;

extern const char *server, *port, *dir;
extern uint32_t next_xid;
extern char why[512];
extern const struct terms terms_plain, terms_slow, terms_none, terms_inv, terms_1k, terms_no_reads, terms_pulled,
	terms_reserved, terms_behind, terms_patient;

/* runner.c */
bool skip(const char *reason);
int run_group(const struct group *g, unsigned int from);

/* mutate.c */
void seed_with(uint64_t seed, uint64_t batch);
uint32_t chance(uint32_t n);
void mutate(struct conn *c, struct enc *e, unsigned int header);

/* fuzz.c */
int fuzz(bool server_end, uint64_t seed, unsigned int batches, unsigned int from);

/* encode.c: messages */
#define CALLBACK	0x40000000	/* the program, of which Linux has version 1 */
void enc_u32(struct enc *e, uint32_t v);
void enc_u64(struct enc *e, uint64_t v);
void enc_bytes(struct enc *e, const void *p, unsigned int n);
void enc_opaque(struct enc *e, const void *p, unsigned int n);
void enc_string(struct enc *e, const char *s);
uint32_t get_word(const uint8_t *p, unsigned int word);
void put_word(struct enc *e, unsigned int word, uint32_t v);
void enc_hdr(struct enc *e, uint32_t xid, uint32_t vers, uint32_t credits, uint32_t proc);
void enc_call_hdr(struct enc *e, uint32_t xid, uint32_t proc);
void enc_seg(struct enc *e, uint32_t handle, uint32_t len, uint64_t off);
void enc_rseg(struct enc *e, uint32_t pos, uint32_t handle, uint32_t len, uint64_t off);
void enc_no_chunks(struct enc *e);
void enc_error(struct enc *e, uint32_t xid, uint32_t err);
void enc_null(struct enc *e, uint32_t xid, uint32_t program);
void enc_accepted(struct enc *e, uint32_t xid, uint32_t accept_stat);

/* nfs4.c: Calls of NFSv4 */
enum { GETFH = 10, LOOKUP = 15, PUTROOTFH = 24, READ = 25, READDIR = 26, READLINK = 27, REMOVE = 28,
       WRITE = 38 };
#define READ_REPLY	76	/* octets of a Reply to LOOKUP and READ, but for the data */
#define READLINK_REPLY	72	/* and of one to LOOKUP and READLINK, but for the path */
#define READ_RESULT	16	/* what another READ adds to it */
#define WRITE_RESULT	24	/* and what a WRITE does */
void enc_rpc_call(struct enc *e, uint32_t xid, uint32_t version, uint32_t proc);
void enc_nfs4_call(struct enc *e, uint32_t xid, uint32_t proc);
void enc_compound(struct enc *e, uint32_t xid, unsigned int ops);
void enc_lookup(struct enc *e, const char *name);
void enc_anonymous(struct enc *e);
void enc_read(struct enc *e, uint64_t off, uint32_t count);
unsigned int enc_write(struct enc *e, uint64_t off, uint32_t count);
void enc_null_call(struct enc *e, uint32_t xid);
void enc_reply_chunk_hdr(struct enc *e, uint32_t xid, uint32_t handle, uint32_t room, uint64_t at);
void enc_read_call(struct enc *e, uint32_t xid, uint32_t handle, uint32_t room, uint64_t at,
		   uint32_t count);
void enc_write_call(struct enc *e, uint32_t xid, uint32_t handle, uint64_t at, uint32_t count);

/* pulling.c: a Reply that is exposed */
#define ASKED	8001		/* octets of data in it */
struct exposed {
	uint32_t xid, length;
	unsigned int n;
	struct segment seg[SEGMENTS];
};

bool ask_much(struct conn *c, uint32_t xid);
bool is_exposed_beside(const struct reply *r, uint32_t xid, struct exposed *x, unsigned int *at);
bool have_exposed(struct conn *c, struct exposed *x);
int read_exposed(struct conn *c, const struct exposed *x);
bool pull_exposed(struct conn *c, const struct exposed *x);
bool say_done(struct conn *c, uint32_t xid);
bool say_done_with(struct conn *c, uint32_t xid, uint32_t handle);

/* no_read_response.c: RDMA Reads of the server that are not answered, Replies that find no Receive */
#define PULLED		(256 << 10)	/* octets that each WRITE has it read */
bool post_writes(struct conn *c, unsigned int n);
bool leave_unanswered(struct conn *c);
bool hold_replies(struct conn *c);

/* session.c: sessions of NFSv4.1 */
#define FILE_NAME	64
bool delegation(struct conn *c, char file[FILE_NAME]);
bool write_as_another(struct conn *c, const char *file);
bool called(struct conn *c, struct reply *back);
bool status(struct conn *c, uint32_t *flags, uint32_t *credits);
bool post_give_up(struct conn *c);
#define REVERSE_CALLS	16	/* of the server, which may come among Replies */
bool is_fresh_or_again(const struct reply *r);
bool next_answer(struct conn *c, struct reply *r);
bool is_call(const struct reply *r);
void understood(struct enc *e, const struct reply *back, uint32_t credits);

/* connection.c: a connection */
bool fail(const char *fmt, ...);
bool event(struct conn *c, enum rdma_cm_event_type want, int ms);
bool gone(struct conn *c);
struct conn *conn_start(const struct terms *terms);
bool conn_settled(struct conn *c, bool *taken);
struct conn *conn_open(const struct terms *terms);
bool conn_listen(void);
struct conn *conn_accept(const struct terms *terms, int ms);
void conn_close(struct conn *c);
bool is_iwarp(const struct conn *c);
bool peer_invalidates(const struct conn *c);
bool peer_pulls(const struct conn *c);
unsigned int peer_sends(const struct conn *c);
unsigned int peer_longest(const struct conn *c);

/* transfer.c: what is sent and received on it */
void post_recv(struct conn *c, unsigned int i);
int64_t now_ms(void);
bool wait_cq(struct ibv_cq *cq, struct ibv_wc *wc, int ms);
bool post_msg(struct conn *c, const struct enc *e);
bool post_invalidating(struct conn *c, const struct enc *e, uint32_t handle);
bool sent(struct conn *c);
bool send_msg(struct conn *c, const struct enc *e);
bool send_invalidating(struct conn *c, const struct enc *e, uint32_t handle);
bool get_reply(struct conn *c, struct reply *r, int ms);
bool exchange(struct conn *c, const struct enc *e, struct reply *r);
int rdma(struct conn *c, enum ibv_wr_opcode what, uint32_t handle, uint64_t offset,
	 unsigned int len, unsigned int at);
bool kept_off(struct conn *c, enum ibv_wr_opcode what, const struct segment *s, int64_t by,
	      unsigned int len);

/* expect.c: what is expected */
bool is_error(const struct reply *r, uint32_t xid, uint32_t err);
bool is_err_vers(const struct reply *r, uint32_t xid, uint32_t vers);
bool body_at(const struct reply *r, uint32_t xid, unsigned int *at);
bool compound_ok(const uint8_t *p, unsigned int ops);
bool answers_one(const struct reply *r, uint32_t first, unsigned int n, bool *seen,
		 unsigned int *at);
bool compound_of(const uint8_t *p, uint32_t xid, unsigned int ops);
bool came_back(const struct reply *r, unsigned int *w, const uint8_t *offered, uint32_t octets);
bool no_more_returned(const struct reply *r, unsigned int w);
bool is_left(const struct reply *r, unsigned int at, unsigned int octets);
bool alive(struct conn *c);
unsigned long early_sends(const struct conn *c);
bool none_early(const struct conn *c, unsigned long before);
bool refused(struct conn *c, const struct enc *e, uint32_t xid, uint32_t err);
bool silent(struct conn *c, const struct enc *e);
bool ignored(struct conn *c, const struct enc *e);
void renew(void);
uint8_t pattern(unsigned int i);
void fill(uint8_t *p, unsigned int from, unsigned int n);
bool same(const char *what, const uint8_t *p, unsigned int from, unsigned int n);
uint64_t at_area(struct conn *c, unsigned int off);
#define SERVER_GAUGE	"/proc/sys/sunrpc/svc_rdma/message_octets"
#define CLIENT_GAUGE	"/proc/sys/sunrpc/rdma_message_octets"
bool nothing_left(const char *gauge);

/* chunks.c: what is written comes back */
bool write_item(struct conn *c, unsigned int off, unsigned int count, unsigned int n, bool zero,
		bool pzrc, bool both);
bool read_item(struct conn *c, unsigned int off, unsigned int count, unsigned int n, bool zero,
	       unsigned int extra);

/* peers.c: peers that are gone before they are accepted */
bool ask_and_leave(void);

/* work.c: what the kernel's client is given to do */
#define MOUNTPOINT	"/mnt/probe"
#define SHORT_FILE	3001	/* octets of the file "short" */
extern int patience;
extern int settling;		/* ms, before the first message of a connection */
pid_t start_work(int (*work)(void));
int mount_here(void);
int unmount(void);
int mount_session(void);
int read_file(void);
int read_large(void);
int read_odd(void);
int write_file(void);
int write_odd(void);
int write_and_read(const char *path, unsigned int turns, unsigned int least, unsigned int most);
int stat_file(void);
int list_directory(void);
int list_empty(void);
int read_tail(void);
unsigned long xprt_stat(unsigned int column);
extern const char *mount_options;

/* acl.c: work that takes a Long Call */
int set_acl(void);

/* calls.c: the Calls of the kernel's client */
enum came { NONE, CALL, LOST, WRONG };
enum came next_call(struct conn *c, struct call *call, int ms);
struct call *waiting(struct conn *c, unsigned int i);
void forget_calls(void);
extern bool errors_may_come;
void call_done(struct call *call);
bool assemble(struct conn *c, struct call *call);
unsigned int octets_of(const struct chunk *chunk);

/* answers.c: their answers, from an honest server over TCP */
enum { NFS = 100003, NFS3_READLINK = 5, NFS3_READ = 6, NFS3_WRITE = 7, NFS3_SYMLINK = 10,
       NFS3_READDIR = 16, NFS3_READDIRPLUS = 17 };
extern uint32_t grant;
bool is_read(const struct call *call);
bool is_write(const struct call *call);
unsigned int header_of(const struct call *call);
const uint8_t *honest_reply(struct conn *c, struct call *call, unsigned int *len);
bool make_reply(struct conn *c, struct call *call, struct enc *e);
unsigned int octets_read(const struct enc *e, const struct call *call);
void say_read(struct enc *e, const struct call *call, unsigned int written, unsigned int octets);
bool make_inline_reply(struct conn *c, struct call *call, struct enc *e);
bool answer_honestly(struct conn *c, struct call *call);
bool refuse_for_good(struct conn *c, const struct call *call, uint32_t err);

/* serve.c: a case in which the kernel's client works */
extern int connections;
extern bool seen;			/* the Call that the case is about */
extern unsigned int serial;		/* of the case */
void hang_up(void);
void end_work(pid_t work);
bool attend(pid_t work, bool (*answer)(struct conn *c, struct call *call), int *status);
bool serve(const struct group *g, const struct test *t);

#endif

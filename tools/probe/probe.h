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
#include <time.h>
#include <unistd.h>

#define RECVS		64
#define RECV_SIZE	4096
#define AREA		(4 << 20)

enum { MSG, NOMSG, MSGP, DONE, ERROR };
enum { ERR_VERS = 1, ERR_CHUNK = 2 };
enum { GETFH = 10, LOOKUP = 15, PUTROOTFH = 24, READ = 25, READDIR = 26, WRITE = 38 };

struct conn {
	struct rdma_event_channel *ec;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_mr *recv_mr, *send_mr, *area_mr;
	uint8_t *recv, *send, *area;
	uint8_t peer_private[64];
	int peer_private_len;
	unsigned int send_used;
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

extern const char *server, *port, *dir;
extern uint32_t next_xid;
extern char why[512];
extern const uint8_t private_plain[8];
extern const uint8_t private_inv[8];
extern const uint8_t private_1k[8];

/* encode.c: messages */
void u32(struct enc *e, uint32_t v);
void u64(struct enc *e, uint64_t v);
void bytes(struct enc *e, const void *p, unsigned int n);
void opaque(struct enc *e, const void *p, unsigned int n);
void string(struct enc *e, const char *s);
uint32_t get(const uint8_t *p, unsigned int word);
void hdr(struct enc *e, uint32_t xid, uint32_t vers, uint32_t credits, uint32_t proc);
void seg(struct enc *e, uint32_t handle, uint32_t len, uint64_t off);
void rseg(struct enc *e, uint32_t pos, uint32_t handle, uint32_t len, uint64_t off);
void lists_none(struct enc *e);
void call(struct enc *e, uint32_t xid, uint32_t proc);
void null(struct enc *e, uint32_t xid, uint32_t program);
void compound(struct enc *e, uint32_t xid, unsigned int ops);
void op_lookup(struct enc *e, const char *name);
void anonymous(struct enc *e);
void op_read(struct enc *e, uint64_t off, uint32_t count);
unsigned int op_write(struct enc *e, uint64_t off, uint32_t count);

/* connection.c: a connection */
bool fail(const char *fmt, ...);
bool event(struct conn *c, enum rdma_cm_event_type want, int ms);
void post_recv(struct conn *c, unsigned int i);
struct conn *conn_start(const void *priv, int priv_len, int depth);
struct conn *conn_accept(void);
struct conn *conn_open(const void *priv, int priv_len, int depth);
void conn_close(struct conn *c);
bool wait_cq(struct ibv_cq *cq, struct ibv_wc *wc, int ms);
bool post_msg(struct conn *c, const struct enc *e);
bool send_msg(struct conn *c, const struct enc *e);
bool get_reply(struct conn *c, struct reply *r, int ms);
bool exchange(struct conn *c, const struct enc *e, struct reply *r);

/* expect.c: what is expected */
bool is_error(const struct reply *r, uint32_t xid, uint32_t err);
bool body_at(const struct reply *r, uint32_t xid, unsigned int *at);
bool compound_ok(const uint8_t *p, unsigned int ops);
bool alive(struct conn *c);
bool refused(struct conn *c, const struct enc *e, uint32_t xid, uint32_t err);
bool ignored(struct conn *c, const struct enc *e);
uint8_t pattern(unsigned int i);
void fill(uint8_t *p, unsigned int from, unsigned int n);
bool same(const char *what, const uint8_t *p, unsigned int from, unsigned int n);
uint64_t at_area(struct conn *c, unsigned int off);

/* headers.c: headers, right and wrong */
bool t_null(struct conn *c);
bool t_private(struct conn *c);
bool t_credits(struct conn *c);
bool t_version(struct conn *c);
bool t_short(struct conn *c);
bool t_procs(struct conn *c);
bool t_nomsg_empty(struct conn *c);
bool t_xid(struct conn *c);
bool t_bad_lists(struct conn *c);
bool t_positions(struct conn *c);
bool t_read_lengths(struct conn *c);

/* chunks.c: what chunks carry */
bool t_file(struct conn *c);
bool t_write_read(struct conn *c);
bool t_pzrc(struct conn *c);
bool t_several(struct conn *c);
bool t_two_results(struct conn *c);
bool t_too_small(struct conn *c);
bool t_reply_chunk(struct conn *c);
bool t_both(struct conn *c);

/* peers.c: peers, willing and not */
bool t_bad_handle(struct conn *c);
bool t_threshold(struct conn *c);
bool t_flood(struct conn *c);
bool t_invalidate(struct conn *c);
bool t_no_invalidate(struct conn *c);
bool t_no_reads(struct conn *c);
bool t_leave(struct conn *unused);
bool t_shy(struct conn *unused);

/* session.c: the server calls */
bool t_reverse_call(struct conn *c);
bool t_reverse_refused(struct conn *c);

#endif

// SPDX-License-Identifier: GPL-2.0
/*
 * A server that lies about invalidation. It takes Calls over RDMA, has them
 * answered by an honest server over TCP, and sends the Replies with a lie.
 *
 * Usage: liar ADDRESS PORT LIE
 *
 * The honest server is at port 2049 of this machine. Each connection is served
 * one Call at a time, until the client goes; then the next one is. Replies travel
 * inline, so the client must be able to receive long messages. Lies, told in every
 * twentieth Reply to a Call with tags (the others invalidate a tag of their Call):
 *
 *	none		none: all of them do
 *	silent		none: nothing is invalidated, although both ends are willing
 *	unasked		tags are invalidated although this end has said that it will not
 *	last		the Call's last tag instead of its first: no lie, but unusual
 *	never		a tag that was never given out
 *	other		a tag of another Call that still waits
 *	stale		a tag of a Call that was answered before
 *	private		the private data is no message, or a broken one: of each length from 0 to
 *			196, one connection after another, which ends after ten Calls
 */

#include <arpa/inet.h>
#include <err.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECVS		64
#define RECV_SIZE	8192
#define LONGEST		(2 << 20)
#define MAX_TAGS	64
#define LONGEST_PRIVATE	196
#define LIE_EVERY	20
#define CALLS_EACH	10

enum { MSG = 0, NOMSG = 1 };

static const uint8_t willing[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 1, 63, 3 };
static const uint8_t unwilling[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 0, 63, 3 };

/* A Call that was received. */
struct call {
	unsigned int recv, len, tags;
	uint32_t tag[MAX_TAGS];
};

struct link {
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *recv_mr, *send_mr, *pull_mr;
	struct call waiting[RECVS];
	unsigned int n_waiting;
	int tcp;
	bool sent, pulled, over;
};

static uint8_t recv_memory[RECVS * RECV_SIZE] __attribute__((aligned(4096)));
static uint8_t send_memory[LONGEST] __attribute__((aligned(4096)));
static uint8_t pull_memory[LONGEST] __attribute__((aligned(4096)));
static uint8_t message[LONGEST], answer[LONGEST];
static const char *lie;
static unsigned long lies;

static uint32_t get(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return ntohl(v);
}

static void put(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, 4);
}

static void post_recv(struct link *l, unsigned int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)recv_memory + i * RECV_SIZE,
		.length = RECV_SIZE,
		.lkey = l->recv_mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	ibv_post_recv(l->id->qp, &wr, &bad);
}

/* The tags of a Call: those of its Read list, which is all that is looked at. */
static void find_tags(struct call *c)
{
	const uint8_t *p = recv_memory + c->recv * RECV_SIZE;
	unsigned int at = 16;

	c->tags = 0;
	while (at + 28 <= c->len && get(p + at) && c->tags < MAX_TAGS) {
		c->tag[c->tags++] = get(p + at + 8);
		at += 24;
	}
}

/* Looks at what has completed. */
static void drain(struct link *l)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(l->cq, 1, &wc) > 0) {
		if (wc.status) {
			l->over = true;
		} else if (wc.opcode == IBV_WC_RECV) {
			struct call *c = &l->waiting[l->n_waiting++];

			c->recv = wc.wr_id;
			c->len = wc.byte_len;
			find_tags(c);
		} else if (wc.opcode == IBV_WC_RDMA_READ) {
			l->pulled = true;
		} else {
			l->sent = true;
		}
	}
}

static bool wait_for(struct link *l, const bool *what)
{
	for (int i = 0; i < 100000 && !l->over && !*what; i++) {
		drain(l);
		usleep(20);
	}
	return *what;
}

/* Reads a segment of the client's memory. */
static bool pull(struct link *l, uint32_t tag, uint32_t len, uint64_t from, uint8_t *to)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)pull_memory, .length = len, .lkey = l->pull_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = from, .rkey = tag },
	}, *bad;

	l->pulled = false;
	if (len > LONGEST || ibv_post_send(l->id->qp, &wr, &bad) || !wait_for(l, &l->pulled))
		return false;
	memcpy(to, pull_memory, len);
	return true;
}

/* Puts the RPC message together; its length, or 0. */
static unsigned int assemble(struct link *l, const struct call *c)
{
	const uint8_t *p = recv_memory + c->recv * RECV_SIZE;
	unsigned int at = 16, payload, position = 0, n = 0, data;
	unsigned int after = 16 + 24 * c->tags + 4;

	/* The Write list and the Reply chunk are passed over. */
	while (get(p + after))
		after += 8 + 16 * get(p + after + 4);
	after += 4;
	after += get(p + after) ? 8 + 16 * get(p + after + 4) : 4;
	payload = after;
	if (c->tags)
		position = get(p + at + 4);
	if (payload + position > c->len)
		return 0;
	memcpy(message, p + payload, position);
	n = position;
	for (unsigned int i = 0; i < c->tags; i++, at += 24) {
		const uint64_t from = (uint64_t)get(p + at + 16) << 32 | get(p + at + 20);
		const uint32_t len = get(p + at + 12);

		if (n + len > LONGEST / 2 || !pull(l, get(p + at + 8), len, from, message + n))
			return 0;
		n += len;
	}
	data = n - position;
	if (get(p + 12) == MSG) {
		memset(message + n, 0, 4);
		n += -data & 3;
		memcpy(message + n, p + payload + position, c->len - payload - position);
		n += c->len - payload - position;
	}
	return n;
}

static bool transfer(int fd, uint8_t *p, size_t len, bool out)
{
	while (len) {
		const ssize_t n = out ? write(fd, p, len) : read(fd, p, len);

		if (n <= 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

/* Asks the honest server; the length of its Reply, or 0. */
static unsigned int ask(int fd, unsigned int len)
{
	uint8_t mark[4];
	unsigned int n = 0;

	put(mark, 0x80000000 | len);
	if (!transfer(fd, mark, 4, true) || !transfer(fd, message, len, true))
		return 0;
	do {
		const uint32_t part = transfer(fd, mark, 4, false) ? get(mark) & 0x7fffffff : 0;

		if (!part || n + part > LONGEST || !transfer(fd, answer + n, part, false))
			return 0;
		n += part;
	} while (!(mark[0] & 0x80));
	return n;
}

/* The tag to invalidate with the Reply to @c, if any. */
static bool choose(struct link *l, const struct call *c, uint32_t *tag)
{
	static uint32_t stale, before;
	static unsigned long turn;
	bool now;

	if (!c->tags || !strcmp(lie, "silent"))
		return false;
	*tag = c->tag[0];
	now = ++turn % LIE_EVERY == 0;
	if (!strcmp(lie, "last"))
		*tag = c->tag[c->tags - 1];
	if (now && !strcmp(lie, "never")) {
		*tag ^= 0x5a5a00;
		lies++;
	} else if (now && !strcmp(lie, "stale") && stale) {
		*tag = stale;
		lies++;
	} else if (!strcmp(lie, "other") && turn >= LIE_EVERY) {
		for (unsigned int i = 0; i < l->n_waiting; i++) {
			if (!l->waiting[i].tags)
				continue;
			*tag = l->waiting[i].tag[0];
			turn = 0;
			lies++;
			break;
		}
	}
	stale = before;
	before = c->tag[0];
	return true;
}

/* Answers the Call that has waited longest. */
static bool serve(struct link *l)
{
	struct ibv_sge sge = { .addr = (uintptr_t)send_memory, .lkey = l->send_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	const struct call c = l->waiting[0];
	const uint8_t *p = recv_memory + c.recv * RECV_SIZE;
	unsigned int len = assemble(l, &c), header = 28;

	len = len ? ask(l->tcp, len) : 0;
	if (!len || len + header > 65536)
		return false;
	memcpy(send_memory, p, 8);
	put(send_memory + 8, 32);
	memset(send_memory + 12, 0, 16);
	memcpy(send_memory + header, answer, len);
	sge.length = header + len;
	memmove(l->waiting, l->waiting + 1, --l->n_waiting * sizeof(c));
	drain(l);
	if (choose(l, &c, &wr.invalidate_rkey))
		wr.opcode = IBV_WR_SEND_WITH_INV;
	post_recv(l, c.recv);
	l->sent = false;
	return !ibv_post_send(l->id->qp, &wr, &bad) && wait_for(l, &l->sent);
}

static int honest(void)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(2049),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (void *)&sin, sizeof(sin)))
		err(1, "the honest server");
	return fd;
}

/* Private data for the connection with this number; its length. */
static unsigned int private_data(unsigned int number, uint8_t *to)
{
	const unsigned int len = number % (LONGEST_PRIVATE + 1);

	if (strcmp(lie, "private")) {
		memcpy(to, strcmp(lie, "unasked") ? willing : unwilling, 8);
		return 8;
	}
	for (unsigned int i = 0; i < len; i++)
		to[i] = number % 2 ? 0xf6 : random();
	/* The message ends where the data does: all of it is there, or only its start. */
	for (unsigned int i = 0; i < 8 && number % 3; i++)
		if (len >= 8)
			to[len - 8 + i] = willing[i];
		else if (i < len)
			to[i] = willing[i];
	if (number % 3 == 2 && len >= 8)
		to[len - 4] = 2;	/* another version */
	return len;
}

/* Serves a client until it goes; returns the next one, if it has come already. */
static struct rdma_cm_id *connection(struct rdma_event_channel *ec, struct rdma_cm_id *id,
				     unsigned int number)
{
	struct link l = { .id = id, .tcp = honest() };
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = RECVS, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	uint8_t private[LONGEST_PRIVATE];
	struct rdma_conn_param param = {
		.initiator_depth = 4, .rnr_retry_count = 7, .private_data = private,
		.private_data_len = private_data(number, private),
	};
	struct pollfd pfd = { .fd = ec->fd, .events = POLLIN };
	struct rdma_cm_id *next = NULL;
	unsigned int served = 0;

	l.pd = ibv_alloc_pd(id->verbs);
	l.cq = ibv_create_cq(id->verbs, 2 * RECVS, NULL, NULL, 0);
	attr.send_cq = l.cq;
	attr.recv_cq = l.cq;
	if (!l.pd || !l.cq || rdma_create_qp(id, l.pd, &attr))
		err(1, "resources");
	l.recv_mr = ibv_reg_mr(l.pd, recv_memory, sizeof(recv_memory), IBV_ACCESS_LOCAL_WRITE);
	l.send_mr = ibv_reg_mr(l.pd, send_memory, sizeof(send_memory), 0);
	l.pull_mr = ibv_reg_mr(l.pd, pull_memory, sizeof(pull_memory), IBV_ACCESS_LOCAL_WRITE);
	if (!l.recv_mr || !l.send_mr || !l.pull_mr)
		err(1, "memory");
	for (unsigned int i = 0; i < RECVS; i++)
		post_recv(&l, i);
	if (rdma_accept(id, &param))
		err(1, "accept");
	while (!l.over) {
		struct rdma_cm_event *event;

		drain(&l);
		if (l.n_waiting && (!serve(&l) || (!strcmp(lie, "private") &&
						   ++served == CALLS_EACH)))
			break;
		if (l.n_waiting || !poll(&pfd, 1, 1) || rdma_get_cm_event(ec, &event))
			continue;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			next = event->id;
		l.over = next || event->event == RDMA_CM_EVENT_DISCONNECTED;
		rdma_ack_cm_event(event);
	}
	printf("connection %u: %u octets of private data, %lu lies so far\n", number,
	       param.private_data_len, lies);
	fflush(stdout);
	rdma_disconnect(id);
	rdma_destroy_qp(id);
	ibv_dereg_mr(l.recv_mr);
	ibv_dereg_mr(l.send_mr);
	ibv_dereg_mr(l.pull_mr);
	ibv_destroy_cq(l.cq);
	ibv_dealloc_pd(l.pd);
	close(l.tcp);
	rdma_destroy_id(id);
	return next;
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *ec = rdma_create_event_channel();
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct rdma_cm_id *listener, *client;
	unsigned int number = 0;

	if (argc != 4 || inet_pton(AF_INET, argv[1], &sin.sin_addr) != 1)
		errx(2, "usage: liar ADDRESS PORT LIE");
	sin.sin_port = htons(atoi(argv[2]));
	lie = argv[3];
	if (!ec || rdma_create_id(ec, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (void *)&sin) || rdma_listen(listener, 8))
		err(1, "listen");
	printf("listening\n");
	fflush(stdout);
	for (;;) {
		struct rdma_cm_event *event;

		if (rdma_get_cm_event(ec, &event))
			err(1, "event");
		client = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
		rdma_ack_cm_event(event);
		while (client)
			client = connection(ec, client, number++);
	}
}

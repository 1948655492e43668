// SPDX-License-Identifier: GPL-2.0
/*
 * Answers to the kernel's client: those of an honest NFSv3 server over TCP, in the
 * form that the chunks of the Call ask for.
 */

#include <netinet/tcp.h>
#include "probe.h"

#define LONGEST	(2 << 20)

uint32_t grant = 32;
static uint8_t answer[LONGEST];

bool is_read(const struct call *call)
{
	return call->program == NFS && call->procedure == NFS3_READ;
}

bool is_write(const struct call *call)
{
	return call->program == NFS && call->procedure == NFS3_WRITE;
}

static int honest_server(void)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(2049),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	static int fd = -1;
	const int at_once = 1;

	if (fd < 0) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (void *)&sin, sizeof(sin)))
			fd = -1;
		/* A mark and its record are two writes. */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
	}
	return fd;
}

static bool all(int fd, uint8_t *p, size_t len, bool out)
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

/* The length of the Reply, or 0. */
static unsigned int ask(const struct call *call)
{
	const int fd = honest_server();
	uint32_t mark = htonl(0x80000000 | call->len);
	unsigned int n = 0, part;

	if (fd < 0 || !all(fd, (void *)&mark, 4, true) || !all(fd, call->rpc, call->len, true))
		return 0;
	do {
		part = all(fd, (void *)&mark, 4, false) ? ntohl(mark) & 0x7fffffff : 0;
		if (!part || part > LONGEST - n || !all(fd, answer + n, part, false))
			return 0;
		n += part;
	} while (!(ntohl(mark) & 0x80000000));
	return n;
}

/* Where in the Reply the data is that a Write chunk may take; its length, or 0. */
static unsigned int find_data(const struct call *call, unsigned int *at)
{
	unsigned int w = 8;

	if (call->program != NFS || get_word(answer, RPC_ACCEPT_STAT) || get_word(answer, NFS_STATUS) ||
	    (call->procedure != NFS3_READ && call->procedure != NFS3_READLINK))
		return 0;
	w += get_word(answer, 7) ? 21 : 0;
	w += call->procedure == NFS3_READ ? 2 : 0;
	*at = 4 * (w + 1);
	return get_word(answer, w);
}

/* Writes to a chunk; false if it does not fit. */
static bool push(struct conn *c, const struct chunk *chunk, const uint8_t *p, unsigned int len)
{
	unsigned int i, n;

	for (i = 0; i < chunk->n && len; i++, p += n, len -= n) {
		n = len < chunk->seg[i].length ? len : chunk->seg[i].length;
		memcpy(c->area, p, n);
		if (rdma(c, IBV_WR_RDMA_WRITE, chunk->seg[i].handle, chunk->seg[i].offset, n, 0))
			return fail("cannot write to segment %u", i);
	}
	return len ? fail("the chunk is too short by %u", len) : true;
}

/* A chunk as it is returned. */
static void returned(struct enc *e, const struct chunk *chunk, unsigned int len)
{
	unsigned int i, n;

	enc_u32(e, 1);
	enc_u32(e, chunk->n);
	for (i = 0; i < chunk->n; i++, len -= n) {
		n = len < chunk->seg[i].length ? len : chunk->seg[i].length;
		enc_seg(e, chunk->seg[i].handle, n, chunk->seg[i].offset);
	}
}

static void lists(struct enc *e, const struct call *call, uint32_t proc, unsigned int data,
		  unsigned int reply)
{
	e->n = 0;
	enc_hdr(e, call->xid, 1, grant, proc);
	enc_u32(e, 0);
	if (call->writes)
		returned(e, &call->write, data);
	enc_u32(e, 0);
	if (call->reply.n)
		returned(e, &call->reply, reply);
	else
		enc_u32(e, 0);
}

/* Where the lists of its Reply end. */
unsigned int header_of(const struct call *call)
{
	return 28 + (call->writes ? 8 + 16 * call->write.n : 0) +
	       (call->reply.n ? 4 + 16 * call->reply.n : 0);
}

/* Has the Call answered: the RPC message of the Reply. */
const uint8_t *honest_reply(struct conn *c, struct call *call, unsigned int *len)
{
	if (!assemble(c, call))
		return NULL;
	*len = ask(call);
	if (*len)
		return answer;
	fail("the honest server does not answer");
	return NULL;
}

/* Has the Call answered, and does all of the Reply but its Send. */
bool make_reply(struct conn *c, struct call *call, struct enc *e)
{
	unsigned int len, data = 0, at = 0, pad;

	if (!honest_reply(c, call, &len))
		return false;
	if (call->writes == 1)
		data = find_data(call, &at);
	if (data) {
		pad = -data & 3;
		if (!push(c, &call->write, answer + at, data))
			return false;
		memmove(answer + at, answer + at + data + pad, len - at - data - pad);
		len -= data + pad;
	}
	lists(e, call, RDMA_MSG, data, 0);
	if (e->n + len <= peer_longest(c) && e->n + len <= sizeof(e->b)) {
		enc_bytes(e, answer, len);
		return true;
	}
	if (!call->reply.n)
		return fail("no Reply chunk for %u octets", len);
	lists(e, call, RDMA_NOMSG, data, len);
	return push(c, &call->reply, answer, len);
}

/* Where a Reply says how many octets were READ to its Write chunk; 0 if it does not. */
static unsigned int count_of_read(const struct enc *e, const struct call *call)
{
	/* The RPC Reply has six words; NFS's status, and attributes perhaps, are behind them. */
	unsigned int w = header_of(call) / 4 + 6;

	if (!is_read(call) || !call->write.n || get_word(e->b, HDR_PROC) != RDMA_MSG || e->n < 4 * (w + 5) ||
	    get_word(e->b, w))
		return 0;
	w += get_word(e->b, w + 1) ? 23 : 2;
	return e->n < 4 * (w + 3) ? 0 : w;
}

unsigned int octets_read(const struct enc *e, const struct call *call)
{
	const unsigned int w = count_of_read(e, call);

	return w ? get_word(e->b, w) : 0;
}

/* Says that so many octets were written, and that so many are the data, which has not ended. */
void say_read(struct enc *e, const struct call *call, unsigned int written, unsigned int octets)
{
	const unsigned int w = count_of_read(e, call);
	unsigned int i, n;

	put_word(e, w, octets);
	put_word(e, w + 1, 0);
	put_word(e, w + 2, octets);
	for (i = 0; i < call->write.n; i++, written -= n) {
		n = call->write.seg[i].length;
		n = written < n ? written : n;
		put_word(e, 8 + 4 * i, n);
	}
}

/* The same, but all of the RPC message is inline, and the chunks are returned unused. */
bool make_inline_reply(struct conn *c, struct call *call, struct enc *e)
{
	unsigned int len;

	if (!honest_reply(c, call, &len))
		return false;
	lists(e, call, RDMA_MSG, 0, 0);
	if (e->n + len > peer_longest(c) || e->n + len > sizeof(e->b))
		return fail("%u octets are too many for a Send", len);
	enc_bytes(e, answer, len);
	return true;
}

bool answer_honestly(struct conn *c, struct call *call)
{
	struct enc e;

	return make_reply(c, call, &e) && send_msg(c, &e);
}

/* An error ends its Call, which does not come again. */
bool refuse_for_good(struct conn *c, const struct call *call, uint32_t err)
{
	static uint32_t refused;
	struct enc e = { .n = 0 };

	if (seen && call->xid == refused)
		return fail("asked again");
	seen = true;
	refused = call->xid;
	enc_error(&e, call->xid, err);
	return send_msg(c, &e);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Replies to the kernel's client. The results are those of an NFSv3 server over TCP on this
 * machine, the reference server; they are sent in the chunks that the Call offers.
 */

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>
#include "answers.h"
#include "nfs4.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"

#define LONGEST		(2 << 20)
#define LAST_FRAGMENT	0x80000000	/* of a record mark (RFC 5531 Section 11) */

/* Words of NFSv3 results. */
#define POST_OP_ATTR	(NFS_STATUS + 1)	/* whether attributes follow */
#define FATTR3_WORDS	21
#define ERROR_RESULT_WORDS	5	/* more than an NFS error has */

/*
 * Words of NFSv4.0 results behind the tag, up to the data: number of results, operation and status
 * of PUTFH and of READ, eof, count.
 */
#define READ4_WORDS	7

static uint8_t answer[LONGEST];

bool is_nfs3(const struct call *call, uint32_t procedure)
{
	return call->program == NFS_PROGRAM && call->version == 3 && call->procedure == procedure;
}

bool is_read(const struct call *call)
{
	return is_nfs3(call, NFS3_READ);
}

bool is_write(const struct call *call)
{
	return is_nfs3(call, NFS3_WRITE);
}

bool is_listing(const struct call *call)
{
	return is_nfs3(call, NFS3_READDIR) || is_nfs3(call, NFS3_READDIRPLUS);
}

static int reference_server(void)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(2049),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	static int fd = -1;
	const int nodelay = 1;

	if (fd < 0) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (void *)&sin, sizeof(sin)))
			fd = -1;
		/* Record mark and record are two writes. */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay));
	}
	return fd;
}

static bool write_all(int fd, const void *from, size_t len)
{
	const uint8_t *p = from;
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = write(fd, p, len);
		if (n <= 0)
			return false;
	}
	return true;
}

static bool read_all(int fd, void *to, size_t len)
{
	uint8_t *p = to;
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = read(fd, p, len);
		if (n <= 0)
			return false;
	}
	return true;
}

/* Calls the reference server. Returns the length of its Reply, or 0. */
static unsigned int ask(const struct call *call)
{
	const int fd = reference_server();
	uint32_t mark = htonl(LAST_FRAGMENT | call->len);
	unsigned int n = 0, part;

	if (fd < 0 || !write_all(fd, &mark, 4) || !write_all(fd, call->rpc, call->len))
		return 0;
	do {
		part = read_all(fd, &mark, 4) ? ntohl(mark) & ~LAST_FRAGMENT : 0;
		if (!part || part > LONGEST - n || !read_all(fd, answer + n, part))
			return 0;
		n += part;
	} while (!(ntohl(mark) & LAST_FRAGMENT));
	return n;
}

/* Finds the data of the READ in an NFSv4.0 compound of PUTFH and READ. */
static unsigned int find_data4(unsigned int len, unsigned int *at)
{
	unsigned int w = NFS_STATUS + 1;

	w += 1 + xdr_align(get_word(answer, w)) / 4;	/* the tag */
	if (4 * (w + READ4_WORDS) > len || get_word(answer, w + 1) != PUTFH ||
	    get_word(answer, w + 3) != READ)
		return 0;
	w += READ4_WORDS - 1;
	*at = 4 * (w + 1);
	return get_word(answer, w);
}

/*
 * Finds the result that a Write chunk may take: the data of READ, or the path of READLINK.
 * @len is the length of the Reply. Returns the length of the result, or 0.
 */
static unsigned int find_data(const struct call *call, unsigned int len, unsigned int *at)
{
	unsigned int w = POST_OP_ATTR;

	if (get_word(answer, RPC_ACCEPT_STAT) || get_word(answer, NFS_STATUS))
		return 0;
	if (call->program == NFS_PROGRAM && call->version == 4)
		return find_data4(len, at);
	if (!is_read(call) && !is_nfs3(call, NFS3_READLINK))
		return 0;
	w += get_word(answer, w) ? 1 + FATTR3_WORDS : 1;
	if (is_read(call))
		w += 2;		/* count, eof */
	*at = 4 * (w + 1);
	return get_word(answer, w);
}

/* Fills a chunk by RDMA Writes. */
static bool push(struct conn *c, const struct chunk *chunk, const uint8_t *p, unsigned int len)
{
	unsigned int i;

	for (i = 0; i < chunk->n && len; i++) {
		struct segment s = chunk->seg[i];

		if (len < s.length)
			s.length = len;
		memcpy(c->area, p, s.length);
		if (rdma(c, IBV_WR_RDMA_WRITE, &s, 0))
			return fail("RDMA Write to segment %u failed", i);
		p += s.length;
		len -= s.length;
	}
	return len ? fail("the chunk is %u bytes too short", len) : true;
}

/* A chunk as it is returned, with @len bytes in it. */
static void enc_returned_chunk(struct enc *e, const struct chunk *chunk, unsigned int len)
{
	unsigned int i, n;

	enc_chunk_head(e, chunk->n);
	for (i = 0; i < chunk->n; i++, len -= n) {
		n = len < chunk->seg[i].length ? len : chunk->seg[i].length;
		enc_seg(e, chunk->seg[i].handle, n, chunk->seg[i].offset);
	}
}

/* A Reply's header; @data and @reply are the bytes in the Write chunk and the Reply chunk. */
static void enc_reply_hdr(struct enc *e, const struct call *call, uint32_t proc,
			  unsigned int data, unsigned int reply)
{
	e->len = 0;
	enc_hdr(e, call->xid, RPCRDMA_VERSION, serving.grant, proc);
	enc_list_end(e);
	if (call->writes)
		enc_returned_chunk(e, &call->write, data);
	enc_list_end(e);
	if (call->reply.n)
		enc_returned_chunk(e, &call->reply, reply);
	else
		enc_no_reply_chunk(e);
}

/* The length of that header. */
unsigned int reply_hdr_len(const struct call *call)
{
	return HDR_EMPTY_LEN +
	       (call->writes ? CHUNK_HEAD_LEN + SEGMENT_LEN * call->write.n : 0) +
	       (call->reply.n ? CHUNK_HEAD_LEN - 4 + SEGMENT_LEN * call->reply.n : 0);
}

/* Gets the reference server's RPC Reply to the Call. */
const uint8_t *reference_reply(struct conn *c, struct call *call, unsigned int *len)
{
	if (!reassemble_call(c, call))
		return NULL;
	*len = ask(call);
	if (*len)
		return answer;
	fail("the reference server does not reply");
	return NULL;
}

/* Makes the right Reply, and fills the chunks: everything but the Send. */
bool make_reply(struct conn *c, struct call *call, struct enc *e)
{
	unsigned int len, data = 0, at = 0, padded;

	if (!reference_reply(c, call, &len))
		return false;
	if (call->writes == 1)
		data = find_data(call, len, &at);
	if (data) {
		padded = xdr_align(data);
		if (!push(c, &call->write, answer + at, data))
			return false;
		memmove(answer + at, answer + at + padded, len - at - padded);
		len -= padded;
	}
	enc_reply_hdr(e, call, RDMA_MSG, data, 0);
	if (e->len + len <= peer_recv_size(c) && e->len + len <= sizeof(e->buf)) {
		enc_bytes(e, answer, len);
		return true;
	}
	if (!call->reply.n)
		return fail("no Reply chunk for a Reply of %u bytes", len);
	enc_reply_hdr(e, call, RDMA_NOMSG, data, len);
	return push(c, &call->reply, answer, len);
}

/* The same, but inline, and all chunks are returned unused. */
bool make_inline_reply(struct conn *c, struct call *call, struct enc *e)
{
	unsigned int len;

	if (!reference_reply(c, call, &len))
		return false;
	enc_reply_hdr(e, call, RDMA_MSG, 0, 0);
	if (e->len + len > peer_recv_size(c) || e->len + len > sizeof(e->buf))
		return fail("a Reply of %u bytes is too long for a Send", len);
	enc_bytes(e, answer, len);
	return true;
}

/*
 * The same, but the data of a READ has length modulo 4 bytes of padding, as ntirpc 6.3 sends it.
 * @data is the length of the data, or 0 if the Reply is not that of a READ, or is not inline.
 */
bool make_mispadded_reply(struct conn *c, struct call *call, struct enc *e, unsigned int *data)
{
	unsigned int len, at;

	*data = 0;
	if (call->write.n || call->reply.n)
		return make_reply(c, call, e);
	if (!reference_reply(c, call, &len))
		return false;
	*data = find_data(call, len, &at);
	if (*data) {
		memset(answer + at + *data, 0, 4);
		len = at + *data + *data % 4;
	}
	enc_reply_hdr(e, call, RDMA_MSG, 0, 0);
	enc_bytes(e, answer, len);
	return true;
}

/* The same as make_reply(), but a Reply in a Reply chunk is @more bytes longer. */
bool make_longer_reply(struct conn *c, struct call *call, struct enc *e, unsigned int more)
{
	unsigned int len;

	if (!call->reply.n)
		return make_reply(c, call, e);
	if (!reference_reply(c, call, &len))
		return false;
	enc_reply_hdr(e, call, RDMA_NOMSG, 0, len + more);
	return push(c, &call->reply, answer, len + more);
}

/* The word of the count in a successful READ's Reply with a Write chunk; otherwise 0. */
static unsigned int read_count_word(const struct enc *e, const struct call *call)
{
	const unsigned int rpc = reply_hdr_len(call) / 4;
	unsigned int w = rpc + POST_OP_ATTR;

	if (!is_read(call) || !call->write.n || get_word(e->buf, HDR_PROC) != RDMA_MSG ||
	    e->len < 4 * (rpc + NFS_STATUS + ERROR_RESULT_WORDS) ||
	    get_word(e->buf, rpc + NFS_STATUS))
		return 0;
	w += get_word(e->buf, w) ? 1 + FATTR3_WORDS : 1;
	return e->len < 4 * (w + 3) ? 0 : w;
}

/* The count of such a READ, or 0. */
unsigned int read_result_len(const struct enc *e, const struct call *call)
{
	const unsigned int w = read_count_word(e, call);

	return w ? get_word(e->buf, w) : 0;
}

/* Changes that Reply: @written bytes in the Write chunk, @count in the result, and no EOF. */
void set_read_result(struct enc *e, const struct call *call, unsigned int written,
		     unsigned int count)
{
	const unsigned int w = read_count_word(e, call);
	unsigned int i, n;

	put_word(e, w, count);
	put_word(e, w + 1, 0);
	put_word(e, w + 2, count);
	for (i = 0; i < call->write.n; i++, written -= n) {
		n = call->write.seg[i].length;
		n = written < n ? written : n;
		put_word(e, WCHUNK_LENGTH + SEGMENT_WORDS * i, n);
	}
}

bool answer_correctly(struct conn *c, struct call *call)
{
	struct enc e;

	return make_reply(c, call, &e) && send_msg(c, &e);
}

/* Answers with RDMA_ERROR, which ends the RPC: the client must not send this Call again. */
bool refuse_once(struct conn *c, const struct call *call, uint32_t err)
{
	static uint32_t refused;
	struct enc e = { .len = 0 };

	if (serving.call_seen && call->xid == refused)
		return fail("xid %x is sent again after RDMA_ERROR", refused);
	serving.call_seen = true;
	refused = call->xid;
	enc_error(&e, call->xid, err);
	return send_msg(c, &e);
}

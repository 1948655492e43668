// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel's client exposes of its memory, how, and for how long. What it does
 * not expose costs who asks for it the connection; the Call comes again on another one,
 * and its data is right.
 */

#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include "compat.h"

#define SOON	300	/* ms, in which a client takes back what a Reply has ended */

/* The first Call of a kind is the one that the case is about. */
static bool is_it(const struct call *call, bool (*kind)(const struct call *call))
{
	static unsigned int last;

	if (last == serving.case_number || !kind(call))
		return false;
	last = serving.case_number;
	serving.call_seen = true;
	return true;
}

static bool has(const struct chunk *chunk)
{
	return chunk->n ? true : fail("a Call without its chunk");
}

static int reach(struct conn *c, enum ibv_wr_opcode what, const struct segment *s)
{
	if (s->length > AREA)
		return -1;
	memset(c->area, 0x5a, s->length);
	return old_rdma(c, what, s->handle, s->offset, s->length, 0);
}

/*
 * What costs the connection; the Call is left without an answer. Otherwise it is not seen:
 * that the connection ends is no excuse.
 */
static bool is_kept_off(struct conn *c, enum ibv_wr_opcode what, const struct segment *s,
			int64_t by, unsigned int len)
{
	memset(c->area, 0x5a, len);
	serving.call_seen = access_denied(c, what, s, by, len);
	return serving.call_seen;
}

static bool read_twice(struct conn *c, struct call *call)
{
	const struct segment *s = call->reads.seg;
	int i;

	if (!is_it(call, is_write))
		return answer_correctly(c, call);
	if (!has(&call->reads))
		return false;
	for (i = 0; i < 2; i++) {
		if (reach(c, IBV_WR_RDMA_READ, s))
			return fail("not exposed, time %d", i);
		if (!check_pattern("exposed data", c->area, 77, s->length))
			return false;
		usleep(1000 * SOON * probe.time_factor);
	}
	return answer_correctly(c, call);
}

/* The consumer must not have it before it is the client's alone. */
static bool read_after(struct conn *c, struct call *call)
{
	if (!is_it(call, is_write))
		return answer_correctly(c, call);
	if (!has(&call->reads) || !answer_correctly(c, call))
		return false;
	usleep(1000 * SOON * probe.time_factor);
	return is_kept_off(c, IBV_WR_RDMA_READ, call->reads.seg, 0, 4);
}

static bool write_after(struct conn *c, struct call *call)
{
	if (!is_it(call, is_read))
		return answer_correctly(c, call);
	if (!has(&call->write) || !answer_correctly(c, call))
		return false;
	usleep(1000 * SOON * probe.time_factor);
	return is_kept_off(c, IBV_WR_RDMA_WRITE, call->write.seg, 0, 4);
}

static bool write_to_source(struct conn *c, struct call *call)
{
	if (!is_it(call, is_write))
		return answer_correctly(c, call);
	return has(&call->reads) && is_kept_off(c, IBV_WR_RDMA_WRITE, call->reads.seg, 0, 4);
}

static bool read_from_sink(struct conn *c, struct call *call)
{
	if (!is_it(call, is_read))
		return answer_correctly(c, call);
	/* siw_qp_sq_proc_tx() */
	if (is_iwarp(c))
		return skip("siw checks no right to read when it answers an RDMA Read");
	return has(&call->write) && is_kept_off(c, IBV_WR_RDMA_READ, call->write.seg, 0, 4);
}

static bool write_behind(struct conn *c, struct call *call)
{
	const struct segment *last;

	if (!is_it(call, is_read))
		return answer_correctly(c, call);
	if (!has(&call->write))
		return false;
	last = &call->write.seg[call->write.n - 1];
	return is_kept_off(c, IBV_WR_RDMA_WRITE, last, last->length, 1);
}

static bool write_before(struct conn *c, struct call *call)
{
	if (!is_it(call, is_read))
		return answer_correctly(c, call);
	return has(&call->write) && is_kept_off(c, IBV_WR_RDMA_WRITE, call->write.seg, -1, 1);
}

/* Next to what is exposed, on the same page. */
static bool beside(struct conn *c, struct call *call, bool behind)
{
	const bool out = is_write(call);
	const struct chunk *chunk = out ? &call->reads : &call->write;
	const struct segment *s = &chunk->seg[behind && chunk->n ? chunk->n - 1 : 0];
	const int64_t by = behind ? (int64_t)s->length : -1;

	if (!has(chunk))
		return false;
	if (!((s->offset + (behind ? s->length : 0)) & 4095))
		return fail("%u octets at %llx: nothing else is on that page", s->length,
			    (unsigned long long)s->offset);
	return is_kept_off(c, out ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, s, by, 1);
}

static bool write_behind_odd(struct conn *c, struct call *call)
{
	return is_it(call, is_read) ? beside(c, call, true) : answer_correctly(c, call);
}

static bool write_before_odd(struct conn *c, struct call *call)
{
	return is_it(call, is_read) ? beside(c, call, false) : answer_correctly(c, call);
}

static bool read_behind_odd(struct conn *c, struct call *call)
{
	return is_it(call, is_write) ? beside(c, call, true) : answer_correctly(c, call);
}

static bool read_before_odd(struct conn *c, struct call *call)
{
	return is_it(call, is_write) ? beside(c, call, false) : answer_correctly(c, call);
}

/*
 * Memory that can be foreseen: handles that go by equal steps, or a region whose handle does, of
 * which its owner chooses the last octet; or pages that come again.
 */
static bool foresee(struct conn *c, struct call *call)
{
	static struct segment past[128];
	static unsigned int n, even, again, same_page, steps[256];
	static uint32_t step;
	const struct segment *s = call->reads.n ? call->reads.seg : call->write.seg;
	bool region = false, page = false;
	unsigned int i, most = 0;

	if (!call->reads.n && !call->write.n)
		return answer_correctly(c, call);
	/* The last time first. */
	for (i = 1; i <= n && i <= COUNT(past); i++) {
		const struct segment *p = &past[(n - i) % COUNT(past)];

		if (!region && p->handle >> 8 == s->handle >> 8)
			steps[(s->handle - p->handle) & 0xff]++;
		region |= p->handle >> 8 == s->handle >> 8;
		page |= p->offset >> 12 == s->offset >> 12;
	}
	if (n) {
		const uint32_t before = past[(n - 1) % COUNT(past)].handle;

		even += s->handle - before == step;
		step = s->handle - before;
	}
	again += region;
	same_page += page;
	past[n++ % COUNT(past)] = *s;
	for (i = 0; i < COUNT(steps); i++)
		most = steps[i] > most ? steps[i] : most;
	serving.call_seen = n >= 100;
	if (serving.call_seen && (even > n / 2 || (again >= n / 4 && most > again / 2) || same_page > n / 2))
		return fail("of %u handles %u by the step before; %u of regions that were there"
			    " before, %u by the same step; %u at pages that were", n, even, again,
			    most, same_page);
	return answer_correctly(c, call);
}

/* Who tells the other what has happened. */
#define HELD	"/tmp/probe-held"
#define KILLED	"/tmp/probe-killed"

static bool happens(const char *what)
{
	int i;

	for (i = 0; i < 300 * probe.time_factor && access(what, F_OK); i++)
		usleep(100000);
	return !access(what, F_OK);
}

static void tell(const char *what)
{
	close(open(what, O_CREAT | O_WRONLY, 0600));
}

/* Who waits for this Reply is killed. READs would go on without their reader. */
static bool write_for_the_dead(struct conn *c, struct call *call)
{
	if (serving.call_seen || !call->reply.n)
		return answer_correctly(c, call);
	serving.call_seen = true;
	tell(HELD);
	if (!happens(KILLED))
		return fail("nobody was killed");
	usleep(1000 * SOON * probe.time_factor);
	return is_kept_off(c, IBV_WR_RDMA_WRITE, call->reply.seg, 0, 4);
}

static int list_and_be_killed(void)
{
	const pid_t reader = fork();
	int status;

	if (!reader)
		_exit(list_directory());
	if (!happens(HELD))
		return ETIMEDOUT;
	kill(reader, SIGKILL);
	if (waitpid(reader, &status, 0) != reader || !WIFSIGNALED(status))
		return ESRCH;
	tell(KILLED);
	return list_directory();
}

/* The first Call that waits behind this one and has a Read chunk. */
static struct call *next_writer(struct conn *c)
{
	struct call *call;
	unsigned int i;
	int ms;

	for (ms = 0; ms < 5000 * probe.time_factor && !disconnected(c); ms++, usleep(1000))
		for (i = 0; (call = queued_call(c, i)); i++)
			if (call->reads.n)
				return call;
	return NULL;
}

/*
 * The Reply ends the exposure of another Call's memory, and with that the connection.
 * While it ends, who waits for that Reply is killed.
 */
static bool lie_for_the_dead(struct conn *c, struct call *call)
{
	struct call *other;
	struct enc e;

	if (serving.call_seen || !call->reply.n)
		return answer_correctly(c, call);
	other = next_writer(c);
	if (!other)
		return answer_correctly(c, call);
	serving.call_seen = true;
	if (!make_reply(c, call, &e) || !send_invalidating(c, &e, other->reads.seg[0].handle))
		return fail("cannot invalidate what another Call exposes");
	usleep(1000 * SOON * probe.time_factor);
	tell(HELD);
	if (!happens(KILLED))
		return fail("nobody was killed");
	return is_kept_off(c, IBV_WR_RDMA_WRITE, call->reply.seg, 0, 4);
}

/* So many ms late a connection ends. By then the task has been killed. */
#define LATE	(SOON * probe.time_factor + 4000)
#define SLOWLY	"insmod /probe/delay_fn.ko function=xprt_autoclose entry=1 delay_ms=%d"

/* One WRITE after another, and nothing else. */
static int write_until_killed(int fd)
{
	uint8_t *p = aligned_alloc(4096, 65536);

	memset(p, 0x77, 65536);
	while (access(KILLED, F_OK))
		if (pwrite(fd, p, 65536, 0) != 65536)
			return EIO;
	return 0;
}

static int list_beside_a_writer(void)
{
	const int fd = open(MOUNTPOINT "/written", O_DIRECT | O_RDWR | O_CREAT, 0666);
	int status, result;
	char slowly[100];
	pid_t writer;

	if (fd < 0)
		return errno;
	unlink(HELD);
	unlink(KILLED);
	snprintf(slowly, sizeof(slowly), SLOWLY, LATE);
	if (system(slowly))
		return ENOSYS;
	writer = fork();
	if (!writer)
		_exit(write_until_killed(fd));
	result = list_and_be_killed();
	tell(KILLED);
	if (waitpid(writer, &status, 0) != writer)
		result = ECHILD;
	close(fd);
	if (system("rmmod delay_fn"))
		result = EBUSY;
	return result ? result : WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int use_often(void)
{
	return write_and_read(MOUNTPOINT "/often", 60, 20000, 40000);
}

/* All of the chunk is written to before its Reply is made. */
static bool scribble(struct conn *c, struct call *call,
		     bool (*make)(struct conn *c, struct call *call, struct enc *e))
{
	const struct segment *s = call->write.seg;
	struct enc e;

	if (!is_it(call, is_read))
		return answer_correctly(c, call);
	if (!has(&call->write))
		return false;
	for (; s < call->write.seg + call->write.n; s++)
		if (reach(c, IBV_WR_RDMA_WRITE, s))
			return fail("cannot write");
	return make(c, call, &e) && send_msg(c, &e);
}

/* More than is returned, and the reader must not see it. */
static bool scribble_behind(struct conn *c, struct call *call)
{
	return scribble(c, call, make_reply);
}

/* What is returned unused: the data is inline, and the reader must see nothing else. */
static bool scribble_unused(struct conn *c, struct call *call)
{
	return scribble(c, call, make_inline_reply);
}

static const struct test tests[] = {
	{ "R8166-2.3.2-4 R8166-3.4.5.1-2", "exposed until the Reply",
	  .answer = read_twice, .work = write_file },
	{ "R8166-4.4.1-1 R8166-8.1.3-2", "no source of data after the Reply",
	  .answer = read_after, .work = write_file, .min_connections = 1 },
	{ "R8166-4.4.1-1 R8166-8.1.3-2", "no place for data after the Reply",
	  .answer = write_after, .work = read_file, .min_connections = 1 },
	{ "R8166-8.1.3-1", "no writing to a source",
	  .answer = write_to_source, .work = write_file, .min_connections = 2 },
	{ "R8166-8.1.3-1", "no reading of a place for data",
	  .answer = read_from_sink, .work = read_file, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing behind a segment",
	  .answer = write_behind, .work = read_file, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing before a segment",
	  .answer = write_before, .work = read_file, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing behind a place for data, on its last page",
	  .answer = write_behind_odd, .work = read_unaligned, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing before a place for data, on its first page",
	  .answer = write_before_odd, .work = read_unaligned, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing behind a source of data, on its last page",
	  .answer = read_behind_odd, .work = write_unaligned, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing before a source of data, on its first page",
	  .answer = read_before_odd, .work = write_unaligned, .min_connections = 2 },
	{ "R8166-8.1.2-1", "handles that cannot be foreseen", .answer = foresee, .work = use_often },
	{ "R8166-4.4.1-3 R8166-8.1.3-3", "nothing of a Call that was given up",
	  .answer = write_for_the_dead, .work = list_and_be_killed, .min_connections = 1 },
	{ "R8166-4.4.1-3 RI3-3.2-3", "nothing of a Call whose Reply invalidates another's",
	  .answer = lie_for_the_dead, .work = list_beside_a_writer, .params = &params_remote_inv,
	  .min_connections = 2 },
	{ "R8166-4.3.2.2-3", "more is written than is returned",
	  .answer = scribble_behind, .work = read_tail },
	{ "R8166-4.3.2.2-3", "a chunk is written to, and returned unused",
	  .answer = scribble_unused, .work = read_tail },
};

const struct group group_exposed = {
	.name = "exposed", .about = "a server that reaches for its client's memory",
	.tests = tests, .n = COUNT(tests),
};

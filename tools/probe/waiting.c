// SPDX-License-Identifier: GPL-2.0
/*
 * Clients that wait to be accepted while all threads of nfsd are busy.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "counters.h"
#include "expect.h"
#include "nfs4.h"
#include "peers.h"
#include "probe.h"
#include "transfer.h"

#define PAGE		4096
#define CLIENTS		300
#define MAX_WAITING	256	/* requests that this server keeps; it answers no others */
#define HANDLED		8	/* requests that the CM is handling, at most */
#define MAX_THREADS	64	/* of nfsd */
#define WAIT_S		100

/* A write() that holds the lock of its inode until the page that it copies from is there. */
struct slow_write {
	int fd, faults;
	void *page;
	pthread_t thread;
};

static void *write_page(void *arg)
{
	struct slow_write *w = arg;

	return write(w->fd, w->page, PAGE) == PAGE ? w : NULL;
}

static void slow_write_close(struct slow_write *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->faults >= 0)
		close(w->faults);
	if (w->page != MAP_FAILED)
		munmap(w->page, PAGE);
}

static bool slow_write_end(struct slow_write *w)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)w->page, .len = PAGE },
	};
	void *written = NULL;
	bool ok = !ioctl(w->faults, UFFDIO_ZEROPAGE, &zero);

	if (ok)
		pthread_join(w->thread, &written);
	slow_write_close(w);
	return written ? true : fail("the delayed write() failed");
}

/* Writes to the file "probe", and waits until the write() holds the lock. */
static bool slow_write_start(struct slow_write *w)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = {
		.range = { .len = PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct pollfd fault;
	char path[256];

	snprintf(path, sizeof(path), "/%s/probe", probe.dir);
	w->fd = open(path, O_WRONLY);
	w->faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	w->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	area.range.start = (uintptr_t)w->page;
	if (w->fd < 0 || w->faults < 0 || w->page == MAP_FAILED ||
	    ioctl(w->faults, UFFDIO_API, &api) || ioctl(w->faults, UFFDIO_REGISTER, &area) ||
	    pthread_create(&w->thread, NULL, write_page, w)) {
		fail("a write() cannot be delayed: %s", strerror(errno));
		slow_write_close(w);
		return false;
	}
	fault = (struct pollfd) { .fd = w->faults, .events = POLLIN };
	if (poll(&fault, 1, WAIT_S * 1000 * probe.time_factor) == 1)
		return true;
	slow_write_end(w);
	return fail("a write() does not read its page");
}

/* The server's cm_ids, but for listeners: those of connections, and of requests that wait. */
static long server_ids(void)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "rdma resource show cm_id | grep -c ' state CONNECT .* src-addr %s:%s '",
		 probe.address, probe.port);
	return number_from(popen(command, "r"), pclose);
}

/* Connect requests that have arrived at the device, first ones and repeated ones. */
static long requests_arrived(const struct conn *c)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/cm_rx_msgs/req",
		 ibv_get_device_name(c->id->verbs->device), c->id->port_num);
	return number_from(fopen(path, "r"), fclose);
}

/* Sends a WRITE for each thread of nfsd, and waits until each has one. */
static bool occupy_threads(struct conn *c, int threads)
{
	const long before = server_value("rdma_stat_recv");
	struct enc e;
	int i;

	for (i = 0; i < threads; i++) {
		enc_compound_call(&e, new_xid(), 2);
		enc_lookup(&e, "probe");
		enc_write(&e, 0, 4);
		enc_bytes(&e, "wait", 4);
		if (!send_msg(c, &e))
			return false;
	}
	for (i = 0; i < WAIT_S * 10 * probe.time_factor; i++, usleep(100000))
		if (server_value("rdma_stat_recv") - before >= threads)
			return true;
	return fail("nfsd has taken %ld of %d Calls", server_value("rdma_stat_recv") - before,
		    threads);
}

static bool threads_answer(struct conn *c, int threads)
{
	struct reply r;

	for (; threads; threads--)
		if (!get_reply(c, &r, WAIT_S * 1000) || !r.any)
			return fail("%d Calls are not answered: %s", threads, probe.reason);
	return true;
}

/*
 * Requests connections from a server that accepts none. The CM sends at most 128 requests at a time,
 * and repeats those without an answer. When more requests have been repeated than the server may
 * drop, it has got each of them.
 */
static bool request_connections(struct conn *c, struct conn **all, long ids)
{
	const long before = requests_arrived(c);
	long arrived = 0, waiting = 0;
	int i;

	for (i = 0; i < CLIENTS; i++) {
		all[i] = conn_request(&params_default);
		if (!all[i])
			return false;
	}
	for (i = 0; i < WAIT_S * 10 * probe.time_factor; i++, usleep(100000)) {
		arrived = requests_arrived(c) - before;
		waiting = server_ids() - ids;
		if (waiting >= MAX_WAITING && arrived >= 2 * CLIENTS - MAX_WAITING)
			break;
	}
	if (waiting < MAX_WAITING)
		return fail("%ld of %d clients wait to be accepted; %ld requests have arrived",
			    waiting, CLIENTS, arrived);
	/* Those that have just arrived, too. */
	sleep_ms(2000);
	waiting = server_ids() - ids;
	return waiting <= MAX_WAITING + HANDLED ? true :
		fail("%ld of %d clients wait to be accepted", waiting, CLIENTS);
}

/* Waits until the server has no more cm_ids than before. */
static bool requests_dropped(long ids)
{
	int i;

	for (i = 0; i < WAIT_S * 10 * probe.time_factor && server_ids() > ids; i++)
		usleep(100000);
	return server_ids() <= ids ? true : fail("the server keeps requests of clients that left");
}

/* The requests of clients that connect without end must not use up the server's memory. */
bool wait_for_busy_server(struct conn *c)
{
	const int threads = number_from(fopen("/proc/fs/nfsd/threads", "r"), fclose);
	const long ids = server_ids();
	struct conn *all[CLIENTS] = { NULL }, *next;
	struct slow_write w;
	bool ok;
	int i;

	if (is_iwarp(c))
		return skip("the CM does not count the requests of iWARP");
	if (threads <= 0 || threads > MAX_THREADS || server_value("message_octets") < 0)
		return skip("the server keeps all requests, or is on another machine");
	if (!slow_write_start(&w))
		return false;
	ok = occupy_threads(c, threads) && request_connections(c, all, ids);
	for (i = 0; i < CLIENTS; i++)
		conn_close(all[i]);
	if (!slow_write_end(&w) || !ok || !threads_answer(c, threads) || !requests_dropped(ids) ||
	    !alive(c))
		return false;
	next = conn_open(&params_default);
	ok = next && alive(next);
	conn_close(next);
	return ok;
}

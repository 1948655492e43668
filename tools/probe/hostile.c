// SPDX-License-Identifier: GPL-2.0
/*
 * Clients that withhold what the server needs, or send more than it has granted.
 */

#include <stdio.h>
#include <string.h>
#include "exposed_reply.h"
#include "hostile.h"
#include "nfs4.h"
#include "probe.h"
#include "stall.h"
#include "transfer.h"

#define AHEAD		16	/* Sends that a deaf client has outstanding at most */
#define CREDITS_USED	16	/* Calls that a quiet client has outstanding; fewer than a server grants */
#define FAR_AHEAD	200	/* Sends of a flooding client; more than a server grants */
#define SLOW_MS		1000	/* between the Receives of a slow client */
#define EXPOSED		16	/* Replies that the server exposes on a connection */

/* Takes completions; false if the connection has ended. */
static bool reap(struct hostile *h, bool repost)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(h->c->scq, 1, &wc) > 0) {
		if (wc.status)
			return false;
		h->outstanding--;
	}
	while (ibv_poll_cq(h->c->rcq, 1, &wc) > 0) {
		if (wc.status)
			return false;
		h->replies++;
		if (repost)
			post_recv(h->c, wc.wr_id);
	}
	return true;
}

/* Sends NULL Calls, as long as fewer than @most Sends are outstanding. */
static bool send_nulls(struct hostile *h, unsigned int most)
{
	struct enc e;

	for (; h->outstanding < most; h->outstanding++, h->sent++) {
		enc_null_call(&e, new_xid());
		if (!post_msg(h->c, &e))
			return false;
	}
	return true;
}

/* Posts no Receives but the first ones. */
static bool deaf_step(struct hostile *h)
{
	return reap(h, false) && send_nulls(h, AHEAD);
}

/* The same, but never has more Calls outstanding than it may. */
static bool quiet_step(struct hostile *h)
{
	struct enc e;

	if (!reap(h, false))
		return false;
	for (; h->sent - h->replies < CREDITS_USED; h->outstanding++, h->sent++) {
		enc_null_call(&e, new_xid());
		if (!post_msg(h->c, &e))
			return false;
	}
	return true;
}

static bool slow_step(struct hostile *h)
{
	if (!reap(h, false))
		return false;
	if (now_ms() >= h->next_ms) {
		post_recv(h->c, 0);
		h->next_ms = now_ms() + SLOW_MS;
	}
	return send_nulls(h, AHEAD);
}

/* Takes all Replies, but does not keep to the grant. */
static bool flooding_step(struct hostile *h)
{
	return reap(h, true) && send_nulls(h, FAR_AHEAD);
}

/* Answers no RDMA Reads: see stop_read_responses(). */
static bool stalled_start(struct hostile *h)
{
	return stop_read_responses(h->c);
}

static bool idle_step(struct hostile *h)
{
	(void)h;
	return true;
}

static bool reconnecting_step(struct hostile *h)
{
	return reap(h, true) && !h->sent && send_nulls(h, 1);
}

/* Has Replies exposed, and sends no RDMA_DONE. */
static bool unread_start(struct hostile *h)
{
	unsigned int i;

	for (i = 0; i < EXPOSED; i++)
		if (!request_long_reply(h->c, new_xid()))
			return false;
	return true;
}

static bool unread_step(struct hostile *h)
{
	return reap(h, true);
}

static const struct hostile_kind kinds[] = {
	{ .name = "deaf", .about = "post no Receives",
	  .params = &params_rnr_forever, .step = deaf_step },
	{ .name = "quiet", .about = "post no Receives, but keep to their credits",
	  .params = &params_rnr_forever, .step = quiet_step },
	{ .name = "slow", .about = "post one Receive a second",
	  .params = &params_rnr_forever, .step = slow_step },
	{ .name = "stalled", .about = "answer no RDMA Reads",
	  .params = &params_long_timeout, .start = stalled_start, .step = idle_step },
	{ .name = "flooding", .about = "exceed their credits",
	  .params = &params_default, .step = flooding_step },
	{ .name = "reconnecting", .about = "connect, call and leave",
	  .params = &params_default, .step = reconnecting_step },
	{ .name = "unread", .about = "do not read exposed Replies",
	  .params = &params_pulled, .start = unread_start, .step = unread_step },
};

const struct hostile_kind *hostile_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < COUNT(kinds); i++)
		if (!strcmp(name, kinds[i].name))
			return &kinds[i];
	return NULL;
}

void hostile_list(void)
{
	unsigned int i;

	for (i = 0; i < COUNT(kinds); i++)
		printf("%-18s %s\n", kinds[i].name, kinds[i].about);
}

/* Connects, if necessary, and goes on. Returns whether the client is connected. */
bool hostile_step(struct hostile *h)
{
	if (!h->c) {
		h->c = conn_open(h->kind->params);
		if (!h->c)
			return false;
		h->outstanding = 0;
		h->sent = 0;
		h->replies = 0;
		h->next_ms = 0;
		h->connections++;
		if (h->kind->start && !h->kind->start(h)) {
			hostile_end(h);
			return false;
		}
	}
	if (!disconnected(h->c) && h->kind->step(h))
		return true;
	hostile_end(h);
	return false;
}

void hostile_end(struct hostile *h)
{
	conn_close(h->c);
	h->c = NULL;
}

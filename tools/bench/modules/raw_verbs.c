// SPDX-License-Identifier: GPL-2.0
/*
 * Moves bytes as an RPC does, with nothing but the verbs, for tools/bench/floor:
 *
 *	insmod raw_verbs.ko address=IPV4
 *	echo BYTES >/sys/kernel/debug/raw_verbs/read
 *	echo BYTES >/sys/kernel/debug/raw_verbs/write
 *
 * Client and server are two ends of one connection between this machine and itself. The client
 * registers its memory, and sends a Call. The server moves the bytes by RDMA Write (read) or by RDMA
 * Read (write), and sends a Reply, which invalidates the registration. Up to INLINE bytes are in the
 * Call or in the Reply, without a registration. A word at the end of the bytes is compared.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define PORT		20100
#define MAX_PAGES	256		/* 1 MiB */
#define INLINE		512
#define HEADER		128		/* bytes of a Call and of a Reply beside the data */
#define MESSAGE		(HEADER + INLINE)
#define RECVS		16
#define DEPTH		256
#define SGES		32
#define TRANSFERS	DIV_ROUND_UP(MAX_PAGES, SGES)
#define SIGNALLED	8		/* each so many Sends, one completes with a signal */
#define TIMEOUT	(30 * HZ)

static char *address = "10.9.0.1";
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "an IPv4 address of the RDMA device");

struct call {
	u32 bytes;
	u32 writes;
	u32 stamp;
	u32 rkey;
	u64 iova;
};

struct message {
	struct ib_cqe cqe;
	u8 *buf;
	u64 addr;
};

struct end {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_mr *mr;
	struct message recv[RECVS];
	struct message send;
	struct page *pages[MAX_PAGES];
	struct scatterlist sg[MAX_PAGES];
	struct ib_sge sges[MAX_PAGES];
	struct ib_cqe moved;
	u32 sent;
	struct call call;
};

static struct end client, server;
static struct rdma_cm_id *listener;
static DECLARE_COMPLETION(event);
static DECLARE_COMPLETION(replied);
static int failed;
static u32 reply_stamp;
static DEFINE_MUTEX(lock);
static struct dentry *dir;

static void fail(const char *what, int error)
{
	pr_err("raw_verbs: %s: %d\n", what, error);
	WRITE_ONCE(failed, 1);
	complete(&replied);
	complete(&event);
}

static bool succeeded(struct ib_wc *wc, const char *what)
{
	if (wc->status == IB_WC_SUCCESS)
		return true;
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		fail(what, wc->status);
	return false;
}

static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	succeeded(wc, "Send");
}

/* Posts @first, and behind @last a Send of @len bytes that invalidates @rkey, if that is not 0. */
static int post_message(struct end *end, struct ib_send_wr *first, struct ib_send_wr *last, u32 len,
			u32 rkey)
{
	struct ib_sge sge = {
		.addr = end->send.addr,
		.length = len,
		.lkey = end->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &end->send.cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = rkey ? IB_WR_SEND_WITH_INV : IB_WR_SEND,
		.send_flags = ++end->sent % SIGNALLED ? 0 : IB_SEND_SIGNALED,
		.ex.invalidate_rkey = rkey,
	};

	ib_dma_sync_single_for_device(end->id->device, sge.addr, len, DMA_TO_DEVICE);
	if (last)
		last->next = &wr;
	return ib_post_send(end->id->qp, last ? first : &wr, NULL);
}

static int post_recv(struct end *end, struct message *msg)
{
	struct ib_sge sge = {
		.addr = msg->addr,
		.length = MESSAGE,
		.lkey = end->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &msg->cqe, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(end->id->qp, &wr, NULL);
}

/* The last word of the first @bytes bytes of @end. */
static u32 *last_word(struct end *end, u32 bytes)
{
	const u32 at = bytes - sizeof(u32);

	return page_address(end->pages[at / PAGE_SIZE]) + at % PAGE_SIZE;
}

/* Describes the RDMA Writes or Reads of the Call in @wrs. Returns the last one. */
static struct ib_send_wr *transfers(struct ib_rdma_wr *wrs, enum ib_wr_opcode opcode)
{
	const struct call *call = &server.call;
	u32 left = DIV_ROUND_UP(call->bytes, PAGE_SIZE), i = 0;

	for (; left; i++) {
		const u32 sges = min(left, SGES);

		wrs[i] = (struct ib_rdma_wr) {
			.wr = {
				.wr_cqe = &server.moved,
				.next = &wrs[i + 1].wr,
				.sg_list = &server.sges[i * SGES],
				.num_sge = sges,
				.opcode = opcode,
			},
			.remote_addr = call->iova + (u64)i * SGES * PAGE_SIZE,
			.rkey = call->rkey,
		};
		left -= sges;
	}
	wrs[i - 1].wr.next = NULL;
	return &wrs[i - 1].wr;
}

/* Sends the Reply, behind @last if there is one. */
static void reply(struct ib_send_wr *first, struct ib_send_wr *last)
{
	const struct call *call = &server.call;
	const bool is_inline = call->bytes <= INLINE;
	const u32 data = is_inline && !call->writes ? call->bytes : 0;
	int ret;

	*(u32 *)server.send.buf = call->stamp;
	ret = post_message(&server, first, last, HEADER + data, is_inline ? 0 : call->rkey);
	if (ret)
		fail("Reply", ret);
}

/* The server has read the bytes. */
static void moved(struct ib_cq *cq, struct ib_wc *wc)
{
	const struct call *call = &server.call;

	if (!succeeded(wc, "RDMA Read"))
		return;
	if (*last_word(&server, call->bytes) != call->stamp)
		fail("the server has read other bytes", 0);
	reply(NULL, NULL);
}

static void serve(const struct call *call)
{
	struct ib_rdma_wr wrs[TRANSFERS];
	struct ib_send_wr *last;
	int ret;

	server.call = *call;
	if (call->bytes <= INLINE)
		return reply(NULL, NULL);
	if (!call->writes) {
		*last_word(&server, call->bytes) = call->stamp;
		last = transfers(wrs, IB_WR_RDMA_WRITE);
		return reply(&wrs[0].wr, last);
	}
	last = transfers(wrs, IB_WR_RDMA_READ);
	last->send_flags = IB_SEND_SIGNALED;
	ret = ib_post_send(server.id->qp, &wrs[0].wr, NULL);
	if (ret)
		fail("RDMA Read", ret);
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct message *msg = container_of(wc->wr_cqe, struct message, cqe);
	struct end *end = cq->cq_context;
	int ret;

	if (!succeeded(wc, "Receive"))
		return;
	ib_dma_sync_single_for_cpu(end->id->device, msg->addr, wc->byte_len, DMA_FROM_DEVICE);
	if (end == &server)
		serve((struct call *)msg->buf);
	else
		reply_stamp = *(u32 *)msg->buf;
	ret = post_recv(end, msg);
	if (ret)
		fail("Receive", ret);
	if (end == &client)
		complete(&replied);
}

/* One RPC. */
static int transfer(u32 bytes, bool writes)
{
	struct call *call = (struct call *)client.send.buf;
	struct ib_reg_wr reg = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.wr_cqe = &client.send.cqe,
		.mr = client.mr,
		.access = writes ? IB_ACCESS_REMOTE_READ :
				   IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE,
	};
	const u32 pages = DIV_ROUND_UP(bytes, PAGE_SIZE);
	const bool is_inline = bytes <= INLINE;
	int ret;

	*call = (struct call) { .bytes = bytes, .writes = writes, .stamp = ++client.call.stamp };
	if (!is_inline) {
		if (writes)
			*last_word(&client, bytes) = call->stamp;
		ret = ib_map_mr_sg(client.mr, client.sg, pages, NULL, PAGE_SIZE);
		if (ret != pages)
			return ret < 0 ? ret : -EIO;
		ib_update_fast_reg_key(client.mr, ib_inc_rkey(client.mr->rkey));
		reg.key = client.mr->rkey;
		call->rkey = client.mr->rkey;
		call->iova = client.mr->iova;
	}
	ret = post_message(&client, &reg.wr, is_inline ? NULL : &reg.wr,
			   HEADER + (is_inline && writes ? bytes : 0), 0);
	if (ret)
		return ret;
	if (!wait_for_completion_timeout(&replied, TIMEOUT))
		return -ETIMEDOUT;
	if (READ_ONCE(failed) || reply_stamp != call->stamp)
		return -EIO;
	if (!is_inline && *last_word(&client, bytes) != call->stamp)
		return -EILSEQ;
	return 0;
}

static ssize_t run(const char __user *text, size_t len, bool writes)
{
	u32 bytes;
	int ret = kstrtou32_from_user(text, len, 10, &bytes);

	if (ret)
		return ret;
	if (bytes % sizeof(u32) || (bytes > INLINE && bytes % PAGE_SIZE) ||
	    bytes > MAX_PAGES * PAGE_SIZE)
		return -EINVAL;
	mutex_lock(&lock);
	ret = transfer(bytes, writes);
	mutex_unlock(&lock);
	return ret ?: len;
}

static ssize_t read_bytes(struct file *file, const char __user *text, size_t len, loff_t *pos)
{
	return run(text, len, false);
}

static ssize_t write_bytes(struct file *file, const char __user *text, size_t len, loff_t *pos)
{
	return run(text, len, true);
}

static const struct file_operations read_fops = { .owner = THIS_MODULE, .write = read_bytes };
static const struct file_operations write_fops = { .owner = THIS_MODULE, .write = write_bytes };

static int make_message(struct end *end, struct message *msg, enum dma_data_direction direction)
{
	struct ib_device *device = end->id->device;

	msg->buf = kzalloc(MESSAGE, GFP_KERNEL);
	if (!msg->buf)
		return -ENOMEM;
	msg->addr = ib_dma_map_single(device, msg->buf, MESSAGE, direction);
	return ib_dma_mapping_error(device, msg->addr);
}

static int make_pages(struct end *end)
{
	struct ib_device *device = end->id->device;
	u32 i;

	sg_init_table(end->sg, MAX_PAGES);
	for (i = 0; i < MAX_PAGES; i++) {
		end->pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!end->pages[i])
			return -ENOMEM;
		sg_set_page(&end->sg[i], end->pages[i], PAGE_SIZE, 0);
	}
	if (ib_dma_map_sg(device, end->sg, MAX_PAGES, DMA_BIDIRECTIONAL) != MAX_PAGES)
		return -EIO;
	for (i = 0; i < MAX_PAGES; i++)
		end->sges[i] = (struct ib_sge) {
			.addr = sg_dma_address(&end->sg[i]),
			.length = PAGE_SIZE,
			.lkey = end->pd->local_dma_lkey,
		};
	return 0;
}

/* Creates all that an end of the connection has. */
static int make_end(struct end *end, struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = {
		.cap.max_send_wr = DEPTH,
		.cap.max_recv_wr = RECVS,
		.cap.max_send_sge = SGES,
		.cap.max_recv_sge = 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	u32 i;
	int ret;

	end->id = id;
	end->pd = ib_alloc_pd(id->device, 0);
	if (IS_ERR(end->pd))
		return PTR_ERR(end->pd);
	end->cq = ib_alloc_cq(id->device, end, DEPTH + RECVS, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(end->cq))
		return PTR_ERR(end->cq);
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	ret = rdma_create_qp(id, end->pd, &attr);
	if (ret)
		return ret;
	end->mr = ib_alloc_mr(end->pd, IB_MR_TYPE_MEM_REG, MAX_PAGES);
	if (IS_ERR(end->mr))
		return PTR_ERR(end->mr);
	end->send.cqe.done = sent;
	end->moved.done = moved;
	ret = make_message(end, &end->send, DMA_TO_DEVICE) ?: make_pages(end);
	for (i = 0; i < RECVS && !ret; i++) {
		end->recv[i].cqe.done = received;
		ret = make_message(end, &end->recv[i], DMA_FROM_DEVICE) ?:
		      post_recv(end, &end->recv[i]);
	}
	return ret;
}

static void free_message(struct end *end, struct message *msg, enum dma_data_direction direction)
{
	if (!msg->buf)
		return;
	ib_dma_unmap_single(end->id->device, msg->addr, MESSAGE, direction);
	kfree(msg->buf);
}

static void free_end(struct end *end)
{
	u32 i;

	if (!end->id)
		return;
	if (end->id->qp) {
		rdma_disconnect(end->id);
		ib_drain_qp(end->id->qp);
		rdma_destroy_qp(end->id);
	}
	for (i = 0; i < RECVS; i++)
		free_message(end, &end->recv[i], DMA_FROM_DEVICE);
	free_message(end, &end->send, DMA_TO_DEVICE);
	if (end->sges[0].addr)
		ib_dma_unmap_sg(end->id->device, end->sg, MAX_PAGES, DMA_BIDIRECTIONAL);
	for (i = 0; i < MAX_PAGES; i++)
		if (end->pages[i])
			__free_page(end->pages[i]);
	if (!IS_ERR_OR_NULL(end->mr))
		ib_dereg_mr(end->mr);
	if (!IS_ERR_OR_NULL(end->cq))
		ib_free_cq(end->cq);
	if (!IS_ERR_OR_NULL(end->pd))
		ib_dealloc_pd(end->pd);
	rdma_destroy_id(end->id);
}

static struct rdma_conn_param params = {
	.responder_resources = 16,
	.initiator_depth = 16,
	.retry_count = 6,
	.rnr_retry_count = 6,
};

static int handle(struct rdma_cm_id *id, struct rdma_cm_event *cm_event)
{
	int ret = 0;

	switch (cm_event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (server.id)
			return -EBUSY;
		ret = make_end(&server, id) ?: rdma_accept(id, &params);
		if (ret)
			fail("rdma_accept", ret);
		return 0;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		if (id != server.id)
			complete(&event);
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		fail(rdma_event_msg(cm_event->event), cm_event->status);
		return 0;
	}
}

static int wait_for_event(int ret)
{
	if (ret)
		return ret;
	if (!wait_for_completion_timeout(&event, TIMEOUT))
		return -ETIMEDOUT;
	return READ_ONCE(failed) ? -EIO : 0;
}

static struct rdma_cm_id *new_id(void)
{
	return rdma_create_id(&init_net, handle, NULL, RDMA_PS_TCP, IB_QPT_RC);
}

static int connect(void)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = in_aton(address),
	};
	struct rdma_cm_id *id;
	int ret;

	listener = new_id();
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	ret = rdma_bind_addr(listener, (struct sockaddr *)&addr) ?: rdma_listen(listener, 1);
	if (ret)
		return ret;
	id = new_id();
	if (IS_ERR(id))
		return PTR_ERR(id);
	client.id = id;
	return wait_for_event(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000)) ?:
	       wait_for_event(rdma_resolve_route(id, 1000)) ?:
	       make_end(&client, id) ?:
	       wait_for_event(rdma_connect(id, &params));
}

static void leave(void)
{
	debugfs_remove(dir);
	free_end(&client);
	free_end(&server);
	if (!IS_ERR_OR_NULL(listener))
		rdma_destroy_id(listener);
}

static int __init raw_verbs_init(void)
{
	int ret = connect();

	if (ret) {
		leave();
		return ret;
	}
	dir = debugfs_create_dir("raw_verbs", NULL);
	debugfs_create_file("read", 0200, dir, NULL, &read_fops);
	debugfs_create_file("write", 0200, dir, NULL, &write_fops);
	return 0;
}
module_init(raw_verbs_init);

static void __exit raw_verbs_exit(void)
{
	leave();
}
module_exit(raw_verbs_exit);

MODULE_DESCRIPTION("Moves bytes with the verbs alone");
MODULE_LICENSE("GPL");

// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's macros and inline functions as functions, for Rust.
 */

#include <linux/debugfs.h>
#include <linux/highmem.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "../../include/helpers.h"
#include "../../include/version.h"

/* The module! macro has no key for the version. */
MODULE_VERSION(RPCRDMA_MODULE_VERSION);

int rpcrdma_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad)
{
	return ib_post_send(qp, wr, bad);
}

int rpcrdma_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	return ib_post_recv(qp, wr, bad);
}

u64 rpcrdma_dma_map_single(struct ib_device *dev, void *addr, size_t size,
			   enum dma_data_direction dir)
{
	return ib_dma_map_single(dev, addr, size, dir);
}

void rpcrdma_dma_unmap_single(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction dir)
{
	ib_dma_unmap_single(dev, addr, size, dir);
}

/* Leaves the memory as the CPU sees it. */
void rpcrdma_dma_unmap_unsynced(struct ib_device *dev, u64 addr, size_t size,
				enum dma_data_direction dir)
{
	if (!ib_uses_virt_dma(dev))
		dma_unmap_single_attrs(dev->dma_device, addr, size, dir,
				       DMA_ATTR_SKIP_CPU_SYNC);
}

u64 rpcrdma_dma_map_page(struct ib_device *dev, struct page *page,
			 unsigned long offset, size_t size,
			 enum dma_data_direction dir)
{
	return ib_dma_map_page(dev, page, offset, size, dir);
}

void rpcrdma_dma_unmap_page(struct ib_device *dev, u64 addr, size_t size,
			    enum dma_data_direction dir)
{
	ib_dma_unmap_page(dev, addr, size, dir);
}

int rpcrdma_dma_mapping_error(struct ib_device *dev, u64 addr)
{
	return ib_dma_mapping_error(dev, addr);
}

int rpcrdma_dma_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
		       enum dma_data_direction dir)
{
	return ib_dma_map_sg(dev, sg, nents, dir);
}

void rpcrdma_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sg,
			  int nents, enum dma_data_direction dir)
{
	ib_dma_unmap_sg(dev, sg, nents, dir);
}

void rpcrdma_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction dir)
{
	ib_dma_sync_single_for_cpu(dev, addr, size, dir);
}

void rpcrdma_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t size,
				 enum dma_data_direction dir)
{
	ib_dma_sync_single_for_device(dev, addr, size, dir);
}

int rpcrdma_ibdev_to_node(struct ib_device *dev)
{
	return ibdev_to_node(dev);
}

bool rpcrdma_protocol_iwarp(const struct ib_device *dev, u32 port)
{
	return rdma_protocol_iwarp(dev, port);
}

bool rpcrdma_ib_or_roce(const struct ib_device *dev, u32 port)
{
	return rdma_ib_or_roce(dev, port);
}

struct page *rpcrdma_virt_to_page(const void *addr)
{
	return virt_to_page(addr);
}

void *rpcrdma_page_address(const struct page *page)
{
	return page_address(page);
}

void rpcrdma_get_page(struct page *page)
{
	get_page(page);
}

/*
 * Takes a second reference to each of @pages and stores it in @to, up to the
 * first that is missing or has more than one. Returns how many were stored.
 */
size_t rpcrdma_get_sole_pages(struct page *const *pages, size_t n,
			      struct page **to)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct page *page = pages[i];

		/* The count of a tail page is 0. */
		if (!page || page_ref_count(page) != 1)
			break;
		page_ref_inc(page);
		to[i] = page;
	}
	return i;
}

void rpcrdma_put_page(struct page *page)
{
	put_page(page);
}

bool rpcrdma_page_is_counted(struct page *page)
{
	return sendpage_ok(page);
}

void rpcrdma_release_pages(struct page **pages, int n)
{
	release_pages(pages, n);
}

void rpcrdma_memcpy_from_page(void *to, struct page *page, size_t offset,
			      size_t len)
{
	memcpy_from_page(to, page, offset, len);
}

void rpcrdma_memcpy_to_page(struct page *page, size_t offset, const void *from,
			    size_t len)
{
	memcpy_to_page(page, offset, from, len);
}

void rpcrdma_clear_page(struct page *page)
{
	clear_highpage(page);
}

void *rpcrdma_kmalloc_node(size_t size, gfp_t flags, int node)
{
	return kmalloc_node(size, flags, node);
}

unsigned int rpcrdma_memalloc_flags_save(unsigned int flags)
{
	return memalloc_flags_save(flags);
}

void rpcrdma_memalloc_flags_restore(unsigned int flags)
{
	memalloc_flags_restore(flags);
}

void rpcrdma_init_delayed_work(struct delayed_work *work, work_func_t func,
			       struct lock_class_key *key)
{
	__INIT_WORK_KEY(&work->work, func, 0, key);
	__timer_init(&work->timer, delayed_work_timer_fn, TIMER_IRQSAFE);
}

void rpcrdma_smp_mb_after_atomic(void)
{
	/* The callers say what this orders. */
	smp_mb__after_atomic();
}

void rpcrdma_set_bit_mb(unsigned long nr, unsigned long *addr)
{
	set_bit(nr, addr);
	/* The callers say what this orders. */
	smp_mb__after_atomic();
}

bool rpcrdma_svc_xprt_get_unless_zero(struct svc_xprt *xprt)
{
	return kref_get_unless_zero(&xprt->xpt_ref);
}

bool rpcrdma_rpc_reply_expected(struct rpc_task *task)
{
	return rpc_reply_expected(task);
}

void rpcrdma_xprt_clear_connecting(struct rpc_xprt *xprt)
{
	xprt_clear_connecting(xprt);
}

void rpcrdma_bc_slot_inc(struct rpc_xprt *xprt)
{
#ifdef CONFIG_SUNRPC_BACKCHANNEL
	atomic_inc(&xprt->bc_slot_count);
#endif
}

void rpcrdma_bc_slot_dec(struct rpc_xprt *xprt)
{
#ifdef CONFIG_SUNRPC_BACKCHANNEL
	atomic_dec(&xprt->bc_slot_count);
#endif
}

void rpcrdma_bc_enqueue(struct svc_serv *serv, struct rpc_rqst *rqst)
{
#ifdef CONFIG_SUNRPC_BACKCHANNEL
	lwq_enqueue(&rqst->rq_bc_list, &serv->sv_cb_list);
#endif
}

unsigned long rpcrdma_svc_serv_maxpages(const struct svc_serv *serv)
{
	return svc_serv_maxpages(serv);
}

unsigned long rpcrdma_jiffies(void)
{
	return jiffies;
}

u64 rpcrdma_jiffies64(void)
{
	return get_jiffies_64();
}

void rpcrdma_get_net(struct net *net)
{
	get_net(net);
}

void rpcrdma_put_net(struct net *net)
{
	put_net(net);
}

void rpcrdma_synchronize_rcu(void)
{
	synchronize_rcu();
}

void rpcrdma_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}

/* Without CONFIG_DEBUG_FS, these are inline functions. */
struct dentry *rpcrdma_debugfs_create_dir(const char *name,
					  struct dentry *parent)
{
	return debugfs_create_dir(name, parent);
}

struct dentry *rpcrdma_debugfs_create_file(const char *name, umode_t mode,
					   struct dentry *parent, void *data,
					   const struct debugfs_short_fops *fops)
{
	return debugfs_create_file(name, mode, parent, data, fops);
}

void rpcrdma_debugfs_remove(struct dentry *dentry)
{
	debugfs_remove(dentry);
}

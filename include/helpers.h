/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's macros and inline functions as functions, for Rust. Most are one
 * line. Longer code belongs in Rust, unless a loop here saves a call for each
 * page.
 */

#ifndef _RPCRDMA_HELPERS_H
#define _RPCRDMA_HELPERS_H

#include <linux/debugfs.h>
#include <linux/mm.h>
#include <linux/workqueue.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/xdr.h>
#include <linux/sunrpc/xprt.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>

/* Posting */
int rpcrdma_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad);
int rpcrdma_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad);

/*
 * DMA. Virtual RDMA devices have no dma_device, so Rust must not use dma_map_*()
 * directly.
 */
u64 rpcrdma_dma_map_single(struct ib_device *dev, void *addr, size_t size,
			   enum dma_data_direction dir);
void rpcrdma_dma_unmap_single(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction dir);
void rpcrdma_dma_unmap_unsynced(struct ib_device *dev, u64 addr, size_t size,
				enum dma_data_direction dir);
u64 rpcrdma_dma_map_page(struct ib_device *dev, struct page *page,
			 unsigned long offset, size_t size,
			 enum dma_data_direction dir);
void rpcrdma_dma_unmap_page(struct ib_device *dev, u64 addr, size_t size,
			    enum dma_data_direction dir);
int rpcrdma_dma_mapping_error(struct ib_device *dev, u64 addr);
int rpcrdma_dma_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
		       enum dma_data_direction dir);
void rpcrdma_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sg,
			  int nents, enum dma_data_direction dir);
void rpcrdma_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction dir);
void rpcrdma_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t size,
				 enum dma_data_direction dir);

/* Devices */
int rpcrdma_ibdev_to_node(struct ib_device *dev);
bool rpcrdma_protocol_iwarp(const struct ib_device *dev, u32 port);
bool rpcrdma_ib_or_roce(const struct ib_device *dev, u32 port);

/* Pages */
struct page *rpcrdma_virt_to_page(const void *addr);
void *rpcrdma_page_address(const struct page *page);
void rpcrdma_get_page(struct page *page);
size_t rpcrdma_get_sole_pages(struct page *const *pages, size_t n,
			      struct page **to);
void rpcrdma_put_page(struct page *page);
bool rpcrdma_page_is_counted(struct page *page);
void rpcrdma_release_pages(struct page **pages, int n);
void rpcrdma_memcpy_from_page(void *to, struct page *page, size_t offset,
			      size_t len);
void rpcrdma_clear_page(struct page *page);
void rpcrdma_memcpy_to_page(struct page *page, size_t offset, const void *from,
			    size_t len);

/* Memory */
void *rpcrdma_kmalloc_node(size_t size, gfp_t flags, int node);
unsigned int rpcrdma_memalloc_flags_save(unsigned int flags);
void rpcrdma_memalloc_flags_restore(unsigned int flags);

/* Work items */
void rpcrdma_init_delayed_work(struct delayed_work *work, work_func_t func,
			       struct lock_class_key *key);

/* Barriers */
void rpcrdma_smp_mb_after_atomic(void);
void rpcrdma_set_bit_mb(unsigned long nr, unsigned long *addr);

/* SUNRPC */
bool rpcrdma_svc_xprt_get_unless_zero(struct svc_xprt *xprt);
bool rpcrdma_rpc_reply_expected(struct rpc_task *task);
void rpcrdma_xprt_clear_connecting(struct rpc_xprt *xprt);
void rpcrdma_bc_slot_inc(struct rpc_xprt *xprt);
void rpcrdma_bc_slot_dec(struct rpc_xprt *xprt);
void rpcrdma_bc_enqueue(struct svc_serv *serv, struct rpc_rqst *rqst);
unsigned long rpcrdma_svc_serv_maxpages(const struct svc_serv *serv);
unsigned long rpcrdma_jiffies(void);
u64 rpcrdma_jiffies64(void);
void rpcrdma_get_net(struct net *net);
void rpcrdma_put_net(struct net *net);
void rpcrdma_synchronize_rcu(void);
void rpcrdma_synchronize_rcu_tasks(void);

/* debugfs */
struct dentry *rpcrdma_debugfs_create_dir(const char *name,
					  struct dentry *parent);
struct dentry *rpcrdma_debugfs_create_file(const char *name, umode_t mode,
					   struct dentry *parent, void *data,
					   const struct debugfs_short_fops *fops);
void rpcrdma_debugfs_remove(struct dentry *dentry);

#endif

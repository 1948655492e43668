// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU that counts executed instructions by the address of their translation block:
 *
 *	-plugin count.so,to=FILE
 *
 * A program in the guest says when (marks.h). At the end of row N the plugin appends to FILE a line
 * "row N", and for each block that has run a line with its address, in hexadecimal digits, the
 * instructions executed, and how often it ran. All of user space has the address 0.
 *
 * It has its own declarations of what it uses of QEMU, because the packages of Debian have no
 * header, and works for one virtual processor only. API is the version of QEMU's interface.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"

#define EXPORTED __attribute__((visibility("default")))

struct qemu_info;
struct qemu_plugin_tb;

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*cb)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  void (*cb)(unsigned int vcpu, void *data),
					  int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
EXPORTED int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv);

EXPORTED int qemu_plugin_version = API;

#define NO_REGS		0			/* QEMU_PLUGIN_CB_NO_REGS */
#define BLOCKS		(1UL << 20)
#define KERNEL		(1UL << 63)

struct block {
	uint64_t vaddr;
	uint64_t insns;				/* 0: a free entry */
	uint64_t runs;
};

static struct block blocks[BLOCKS];		/* by hash */
static size_t used;
static FILE *to;

static void fail(const char *why)
{
	fprintf(stderr, "count: %s\n", why);
	exit(1);
}

/* A block is translated more than once, and with several lengths. */
static struct block *block(uint64_t vaddr, uint64_t insns)
{
	size_t i = (vaddr ^ insns << 20) * 0x9e3779b97f4a7c15UL >> 44;

	for (; blocks[i].insns; i = (i + 1) % BLOCKS)
		if (blocks[i].vaddr == vaddr && blocks[i].insns == insns)
			return &blocks[i];
	if (++used > BLOCKS / 8 * 7)
		fail("too many translation blocks");
	blocks[i].vaddr = vaddr;
	blocks[i].insns = insns;
	return &blocks[i];
}

static void executed(unsigned int vcpu, void *data)
{
	(void)vcpu;
	((struct block *)data)->runs++;
}

static void begun(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	for (size_t i = 0; i < BLOCKS; i++)
		blocks[i].runs = 0;
}

static void ended(unsigned int vcpu, void *data)
{
	(void)vcpu;
	fprintf(to, "row %zu\n", (size_t)data);
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks[i].runs)
			fprintf(to, "%lx %lu %lu\n", blocks[i].vaddr,
				blocks[i].runs * blocks[i].insns, blocks[i].runs);
	if (fflush(to))
		fail("cannot write");
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	const uint64_t vaddr = qemu_plugin_tb_vaddr(tb);
	const size_t mark = vaddr - MARKS;

	(void)id;
	if (vaddr >= MARKS && mark < MARKS_LEN && mark % MARK_LEN == 0)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, mark / MARK_LEN % 2 ? ended : begun,
						     NO_REGS, (void *)(mark / MARK_LEN / 2));
	else
		qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, NO_REGS,
						     block(vaddr & KERNEL ? vaddr : 0,
							   qemu_plugin_tb_n_insns(tb)));
}

EXPORTED int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "to=", 3) || !(to = fopen(argv[0] + 3, "a"))) {
		fputs("count: give it to=FILE\n", stderr);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replies to the kernel's client, with the results of a reference server.
 */

#ifndef ANSWERS_H
#define ANSWERS_H

#include "calls.h"

enum {
	NFS3_GETATTR = 1, NFS3_READLINK = 5, NFS3_READ = 6, NFS3_WRITE = 7, NFS3_SYMLINK = 10,
	NFS3_READDIR = 16, NFS3_READDIRPLUS = 17,
};

bool is_nfs3(const struct call *call, uint32_t procedure);
bool is_read(const struct call *call);
bool is_write(const struct call *call);
bool is_listing(const struct call *call);

/* The results alone. */
const uint8_t *reference_reply(struct conn *c, struct call *call, unsigned int *len);

/* A Reply that is ready to be sent. */
bool make_reply(struct conn *c, struct call *call, struct enc *e);
bool make_inline_reply(struct conn *c, struct call *call, struct enc *e);
bool make_mispadded_reply(struct conn *c, struct call *call, struct enc *e, unsigned int *data);
bool make_longer_reply(struct conn *c, struct call *call, struct enc *e, unsigned int more);
unsigned int reply_hdr_len(const struct call *call);
unsigned int read_result_len(const struct enc *e, const struct call *call);
void set_read_result(struct enc *e, const struct call *call, unsigned int written,
		     unsigned int count);

bool answer_correctly(struct conn *c, struct call *call);
bool refuse_once(struct conn *c, const struct call *call, uint32_t err);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client's NFSv4.1 session with a backchannel, and what makes the server recall a delegation.
 */

#ifndef SESSION_H
#define SESSION_H

#include "transfer.h"

#define FILE_NAME_LEN	64
#define MAX_CALLBACKS	16	/* of the server, that may arrive among Replies */
#define MAX_RECALLS	3	/* that cause_recalls() can cause */

/* Flags of sequence_status(). */
#define SEQ4_STATUS_CB_PATH_DOWN	0x001
#define SEQ4_STATUS_BACKCHANNEL_FAULT	0x400

bool get_delegation(struct conn *c, char file[FILE_NAME_LEN]);
bool write_as_other_client(struct conn *c, const char *file);
bool get_recall(struct conn *c, struct reply *back);
bool cause_recalls(struct conn *c, unsigned int n);
bool sequence_status(struct conn *c, uint32_t *flags, uint32_t *credits);
bool post_backchannel_ctl(struct conn *c);

bool new_or_retransmitted(const struct reply *r);
bool next_callback(struct conn *c, struct reply *back, int ms);
bool next_forward_reply(struct conn *c, struct reply *r);
bool is_callback(const struct reply *r);
void enc_recall_reply(struct enc *e, const struct reply *back, uint32_t credits);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client's WRITEs and READs of the file "probe", with chunks of any form.
 */

#ifndef FILE_IO_H
#define FILE_IO_H

#include "conn.h"

#define FILE_HANDLE_MAX	64

/* How the data of a WRITE is sent. */
enum write_form {
	READ_CHUNK,			/* in a Read chunk */
	POSITION_ZERO,			/* with its Call, in a Position-zero chunk */
	POSITION_ZERO_READ_CHUNK,	/* in a Read chunk, the Call in a Position-zero chunk */
};

struct file_io {
	unsigned int offset, count;
	unsigned int segments;		/* of each chunk; 1 if 0 */
	bool empty_segments;		/* one more before each segment, of length zero */
	enum write_form form;		/* of a WRITE */
	unsigned int excess;		/* bytes by which the Write chunk of a READ is too long */
};

bool write_file_item(struct conn *c, const struct file_io *io);
bool read_file_item(struct conn *c, const struct file_io *io);
bool write_item(struct conn *c, unsigned int offset, unsigned int count);
bool read_item(struct conn *c, unsigned int offset, unsigned int count);
unsigned int get_file_handle(struct conn *c, const char *name, uint8_t handle[FILE_HANDLE_MAX]);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work for the kernel's client. It runs in a child process, and returns an errno.
 */

#ifndef WORK_H
#define WORK_H

#include <sys/types.h>

#define MOUNTPOINT	"/mnt/probe"
#define SHORT_FILE	3001	/* bytes of the file "short" */

pid_t start_work(int (*work)(void));
int mount_v3(void);
int mount_v40(void);
int mount_v41(void);
int unmount(void);

int read_some(unsigned int at, unsigned int len);
int read_file(void);
int read_large(void);
int read_unaligned(void);
int read_tail(void);
int write_file(void);
int write_unaligned(void);
int write_and_read(const char *path, unsigned int rounds, unsigned int least, unsigned int most);
int stat_file(void);
int list_directory(void);
int list_empty(void);
int set_acl(void);

unsigned long xprt_stat(unsigned int column);

#endif

// SPDX-License-Identifier: GPL-2.0
/*
 * Work for the kernel's client.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "conn.h"
#include "pattern.h"
#include "probe.h"
#include "serve.h"
#include "work.h"

#define PAGE		4096
#define FILE_SIZE	(1 << 20)
#define CANARY		0xa5

/* A transfer that starts and ends within a page. */
#define UNALIGNED_AT	1003
#define UNALIGNED_LEN	20001

/* Starts a child process in its own process group. */
pid_t start_work(int (*work)(void))
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	setpgid(0, 0);
	_exit(work());
}

/* Returns only if mount(8) cannot be executed. */
static int exec_mount(const char *version, const char *more, const char *path)
{
	char options[256], from[128];

	snprintf(options, sizeof(options), "%s,proto=rdma,port=%s,retry=0%s%s", version,
		 probe.port, more ? "," : "", more ? more : "");
	snprintf(from, sizeof(from), "%s:%s", probe.address, path);
	mkdir(MOUNTPOINT, 0755);
	execlp("mount", "mount", "-t", "nfs", "-o", options, from, MOUNTPOINT, NULL);
	return errno;
}

int mount_v3(void)
{
	char options[128], path[64];

	snprintf(options, sizeof(options), "nolock,mountproto=tcp,%s",
		 serving.mount_options ? serving.mount_options : "rsize=65536,wsize=65536");
	snprintf(path, sizeof(path), "/%s", probe.dir);
	return exec_mount("vers=3", options, path);
}

int mount_v40(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/%s", probe.dir);
	return exec_mount("vers=4.0", serving.mount_options, path);
}

/* This mount fails in the end. Its error message would mix with the KTAP output. */
int mount_v41(void)
{
	dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	return exec_mount("vers=4.1", NULL, "/");
}

int unmount(void)
{
	return umount2(MOUNTPOINT, 0) ? errno : 0;
}

/* Memory for the largest transfer at any offset in a page. */
static uint8_t *alloc_buffer(void)
{
	return aligned_alloc(PAGE, FILE_SIZE + PAGE);
}

/* One direct I/O from the start of a file. A short transfer is an error. */
static int transfer(const char *path, uint8_t *p, unsigned int size, bool out)
{
	const int fd = open(path, O_DIRECT | (out ? O_RDWR | O_CREAT : O_RDONLY), 0666);
	ssize_t n;

	if (fd < 0)
		return errno;
	n = out ? pwrite(fd, p, size, 0) : pread(fd, p, size, 0);
	if (n < 0) {
		close(fd);
		return errno;
	}
	close(fd);
	return n == (ssize_t)size ? 0 : ENODATA;
}

/* Reads @len bytes to @at of the buffer, and checks that the bytes beside them do not change. */
int read_some(unsigned int at, unsigned int len)
{
	uint8_t *p = alloc_buffer();
	int status;

	if (at)
		p[at - 1] = CANARY;
	if (at + len < FILE_SIZE + PAGE)
		p[at + len] = CANARY;
	status = transfer(MOUNTPOINT "/probe", p + at, len, false);
	if (!status && !check_pattern("data", p + at, 0, len))
		status = EBADMSG;
	if (!status && ((at && p[at - 1] != CANARY) ||
			(at + len < FILE_SIZE + PAGE && p[at + len] != CANARY)))
		status = EBADMSG;
	free(p);
	return status;
}

int read_file(void)
{
	return read_some(0, 65536);
}

/* One page more than an MR of any device here holds. */
int read_large(void)
{
	return read_some(UNALIGNED_AT, FILE_SIZE);
}

int read_unaligned(void)
{
	return read_some(UNALIGNED_AT, UNALIGNED_LEN);
}

/* Maps a file that is shorter than a page: the rest of the page has to be zero. */
int read_tail(void)
{
	const int fd = open(MOUNTPOINT "/short", O_RDONLY);
	uint8_t *p = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	unsigned int i;

	if (p == MAP_FAILED)
		return errno;
	for (i = 0; i < PAGE; i++)
		if (p[i] != (i < SHORT_FILE ? pattern_byte(i) : 0))
			return EBADMSG;
	return 0;
}

/* Writes through the mount, and reads the data from the exported directory. */
static int write_some(unsigned int at, unsigned int len)
{
	uint8_t *p = alloc_buffer();
	char path[128];
	int status;

	snprintf(path, sizeof(path), "/%s/written", probe.dir);
	unlink(path);
	fill_pattern(p + at, 77, len);
	status = transfer(MOUNTPOINT "/written", p + at, len, true);
	memset(p, 0, at + len);
	if (!status)
		status = transfer(path, p, len, false);
	if (!status && !check_pattern("data", p, 77, len))
		status = EBADMSG;
	free(p);
	return status;
}

int write_file(void)
{
	return write_some(0, 65536);
}

int write_unaligned(void)
{
	return write_some(UNALIGNED_AT, UNALIGNED_LEN);
}

/* WRITEs and READs in turn, of sizes from @least to @most, and compares the data. */
int write_and_read(const char *path, unsigned int rounds, unsigned int least, unsigned int most)
{
	unsigned int i, size = least;
	uint8_t *p = alloc_buffer();
	int status = 0;

	for (i = 0; i < rounds && !status; i++) {
		fill_pattern(p, i, most);
		status = transfer(path, p, size, true);
		memset(p, CANARY, most);
		status = status ? status : transfer(path, p, size, false);
		if (!status && !check_pattern("data", p, i, size))
			status = EBADMSG;
		size = size + PAGE > most ? least : size + PAGE;
	}
	free(p);
	return status;
}

int stat_file(void)
{
	struct stat st;

	return stat(MOUNTPOINT "/probe", &st) ? errno : st.st_size == AREA ? 0 : EBADMSG;
}

int list_directory(void)
{
	DIR *d = opendir(MOUNTPOINT);
	unsigned int n = 0;
	struct dirent *entry;
	int status;

	if (!d)
		return errno;
	errno = 0;
	while ((entry = readdir(d)))
		n += !!strstr(entry->d_name, "file-with-a-rather-long-name");
	status = errno;
	closedir(d);
	return !status && n != 1000 ? EBADMSG : status;
}

/* The Reply is short, which the client cannot know in advance. */
int list_empty(void)
{
	DIR *d = opendir(MOUNTPOINT "/empty");
	int status;

	if (!d)
		return errno;
	errno = 0;
	while (readdir(d))
		;
	status = errno;
	closedir(d);
	return status;
}

/* A number behind "xprt: rdma" in the statistics of the mount, counted from 1. */
unsigned long xprt_stat(unsigned int column)
{
	FILE *f = fopen("/proc/self/mountstats", "r");
	unsigned long value = 0;
	bool here = false;
	char line[1024];

	while (f && fgets(line, sizeof(line), f)) {
		char *word = strstr(line, "xprt:");

		if (!strncmp(line, "device ", 7))
			here = strstr(line, " " MOUNTPOINT " ");
		if (!here || !word)
			continue;
		word = strtok(word + 5, " \t\n");
		for (unsigned int i = 0; word && i < column; i++)
			word = strtok(NULL, " \t\n");
		value = word ? strtoul(word, NULL, 0) : 0;
	}
	if (f)
		fclose(f);
	return value;
}

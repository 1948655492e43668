// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel's client is given to do. It is done in another process, while this
 * one is its server, and ends with an errno.
 */

#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <dirent.h>
#include "probe.h"

#define FILE_SIZE	(1 << 20)

const char *mount_options;

pid_t start_work(int (*work)(void))
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	setpgid(0, 0);
	_exit(work());
}

static int mount_with(const char *version, const char *more, const char *what)
{
	char options[256], from[128];

	snprintf(options, sizeof(options), "%s,proto=rdma,port=%s,retry=0%s%s", version, port,
		 more ? "," : "", more ? more : "");
	snprintf(from, sizeof(from), "%s:%s", server, what);
	mkdir(MOUNTPOINT, 0755);
	execlp("mount", "mount", "-t", "nfs", "-o", options, from, MOUNTPOINT, NULL);
	return errno;
}

int mount_here(void)
{
	char options[128], what[64];

	snprintf(options, sizeof(options), "nolock,mountproto=tcp,%s",
		 mount_options ? mount_options : "rsize=65536,wsize=65536");
	snprintf(what, sizeof(what), "/%s", dir);
	return mount_with("vers=3", options, what);
}

/* It fails in the end: what it says of that would come between the results, or amid one. */
int mount_session(void)
{
	dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	return mount_with("vers=4.1", NULL, "/");
}

int unmount(void)
{
	return umount2(MOUNTPOINT, 0) ? errno : 0;
}

/* Memory to transfer from and to, of a page more than the most. */
static uint8_t *buffer(void)
{
	return aligned_alloc(4096, FILE_SIZE + 4096);
}

/* Direct I/O from the start of a file: all of it in one go, and right. */
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

static int read_some(unsigned int at, unsigned int octets)
{
	uint8_t *p = buffer();
	int status;

	status = transfer(MOUNTPOINT "/probe", p + at, octets, false);
	if (!status && !same("data", p + at, 0, octets))
		status = EBADMSG;
	free(p);
	return status;
}

int read_file(void)
{
	return read_some(0, 65536);
}

/* What is left of a file behind its last page; nothing follows its end. */
int read_tail(void)
{
	const int fd = open(MOUNTPOINT "/short", O_RDONLY);
	uint8_t *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	unsigned int i;

	if (p == MAP_FAILED)
		return errno;
	for (i = 0; i < 4096; i++)
		if (p[i] != (i < SHORT_FILE ? pattern(i) : 0))
			return EBADMSG;
	return 0;
}

/* What starts and ends amid a page. */
#define ODD	20001
#define ODD_AT	1003

/* One page more than any device here has in a region. */
int read_large(void)
{
	return read_some(ODD_AT, FILE_SIZE);
}

int read_odd(void)
{
	uint8_t *p = buffer();
	int status;

	memset(p, 0xa5, ODD_AT + ODD + 1);
	status = transfer(MOUNTPOINT "/probe", p + ODD_AT, ODD, false);
	if (!status && !same("data", p + ODD_AT, 0, ODD))
		status = EBADMSG;
	if (!status && (p[ODD_AT - 1] != 0xa5 || p[ODD_AT + ODD] != 0xa5))
		status = EBADMSG;
	free(p);
	return status;
}

/* What was written is looked at behind the client's back. */
static int write_some(unsigned int at, unsigned int octets)
{
	uint8_t *p = buffer();
	char path[128];
	int status;

	snprintf(path, sizeof(path), "/%s/written", dir);
	unlink(path);
	fill(p + at, 77, octets);
	status = transfer(MOUNTPOINT "/written", p + at, octets, true);
	memset(p, 0, at + octets);
	if (!status)
		status = transfer(path, p, octets, false);
	if (!status && !same("data", p, 77, octets))
		status = EBADMSG;
	free(p);
	return status;
}

int write_file(void)
{
	return write_some(0, 65536);
}

int write_odd(void)
{
	return write_some(ODD_AT, ODD);
}

/* WRITEs and READs in turn, from least to most octets, each compared. */
int write_and_read(const char *path, unsigned int turns, unsigned int least, unsigned int most)
{
	unsigned int i, size = least;
	uint8_t *p = buffer();
	int status = 0;

	for (i = 0; i < turns && !status; i++) {
		fill(p, i, most);
		status = transfer(path, p, size, true);
		memset(p, 0xa5, most);
		status = status ? status : transfer(path, p, size, false);
		if (!status && !same("data", p, i, size))
			status = EBADMSG;
		size = size + 4096 > most ? least : size + 4096;
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
	struct dirent *e;

	if (!d)
		return errno;
	errno = 0;
	while ((e = readdir(d)))
		n += !!strstr(e->d_name, "file-with-a-rather-long-name");
	if (!errno && n != 1000)
		errno = EBADMSG;
	closedir(d);
	return errno;
}

/* Whose Reply is short, although nobody can know. */
int list_empty(void)
{
	DIR *d = opendir(MOUNTPOINT "/empty");

	if (!d)
		return errno;
	errno = 0;
	while (readdir(d))
		;
	return errno;
}

/* The numbers behind "xprt: rdma" in the mount's statistics, counted from 1. */
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

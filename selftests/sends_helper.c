// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the longest RDMA Send from each address on the wire, and counts RDMA Reads and Writes:
 *
 *   tcpdump -i LINK -s 96 -U -w - udp port 4791 | sends_helper
 *
 * Reads a capture of RoCEv2 packets and prints "ADDRESS BYTES SENDS READS WRITES" for each source
 * address: the size of the longest Send on an RC QP, the number of Sends, and the numbers of packets
 * that request an RDMA Read or carry the data of an RDMA Write. A Send is reassembled from its
 * packets by PSN: retransmitted packets count once, and a Send with a packet missing from the
 * capture does not count.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PSN_MASK	0xffffff
#define UDP_LEN		8
#define BTH_LEN		12
#define IETH_LEN	4
#define ICRC_LEN	4

enum { SEND_FIRST = 0x00, SEND_MIDDLE = 0x01, SEND_LAST = 0x02, SEND_ONLY = 0x04,
	WRITE_FIRST = 0x06, WRITE_ONLY_IMMEDIATE = 0x0b, READ_REQUEST = 0x0c,
	SEND_LAST_INVALIDATE = 0x16, SEND_ONLY_INVALIDATE = 0x17 };

struct source {
	int family;
	uint8_t address[16];
	uint32_t longest;
	unsigned long sends, reads, writes;
};

/* A destination QP and the Send that is being reassembled for it. */
struct queue {
	const struct source *from;
	uint32_t number, next_psn, len;
	bool within;
};

static struct source sources[8];
static struct queue queues[4096];

static struct source *source_of(int family, const uint8_t *address, size_t size)
{
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
		struct source *s = &sources[i];

		if (!s->family) {
			s->family = family;
			memcpy(s->address, address, size);
		}
		if (s->family == family && !memcmp(s->address, address, size))
			return s;
	}
	errx(1, "too many addresses");
}

static struct queue *queue_of(const struct source *from, uint32_t number)
{
	for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++) {
		struct queue *q = &queues[i];

		if (!q->from) {
			q->from = from;
			q->number = number;
		}
		if (q->from == from && q->number == number)
			return q;
	}
	errx(1, "too many queue pairs");
}

static void ended(struct source *from, struct queue *q, uint32_t len)
{
	from->sends++;
	if (len > from->longest)
		from->longest = len;
	q->within = false;
}

/* Handles one packet; len is the length from the BTH to the end of the packet. */
static void packet(struct source *from, const uint8_t *bth, uint32_t len)
{
	const uint32_t qp = ntohl(*(const uint32_t *)(bth + 4)) & PSN_MASK;
	const uint32_t psn = ntohl(*(const uint32_t *)(bth + 8)) & PSN_MASK;
	const bool invalidates = bth[0] == SEND_LAST_INVALIDATE || bth[0] == SEND_ONLY_INVALIDATE;
	const uint32_t other = BTH_LEN + ICRC_LEN + (bth[1] >> 4 & 3) + (invalidates ? IETH_LEN : 0);
	struct queue *q = queue_of(from, qp);
	const bool follows = q->within && psn == q->next_psn;

	if (len < other)
		return;
	len -= other;
	from->reads += bth[0] == READ_REQUEST;
	from->writes += bth[0] >= WRITE_FIRST && bth[0] <= WRITE_ONLY_IMMEDIATE;
	switch (bth[0]) {
	case SEND_ONLY:
	case SEND_ONLY_INVALIDATE:
		/* A retransmission of the last Send, which was counted. */
		if (!q->within && ((q->next_psn - 1) & PSN_MASK) == psn && q->len)
			break;
		ended(from, q, len);
		q->len = len;
		q->next_psn = (psn + 1) & PSN_MASK;
		break;
	case SEND_FIRST:
		q->within = true;
		q->len = len;
		q->next_psn = (psn + 1) & PSN_MASK;
		break;
	case SEND_MIDDLE:
	case SEND_LAST:
	case SEND_LAST_INVALIDATE:
		if (!follows)
			break;
		q->len += len;
		q->next_psn = (psn + 1) & PSN_MASK;
		if (bth[0] != SEND_MIDDLE)
			ended(from, q, q->len);
		break;
	}
}

static void frame(const uint8_t *at, size_t captured)
{
	const uint8_t *ip = at + 14;
	const size_t ip_len = captured > 14 && (ip[0] >> 4) == 6 ? 40 : 20;
	const uint8_t *udp = ip + ip_len;

	if (captured < 14 + ip_len + UDP_LEN + BTH_LEN)
		return;
	const uint32_t len = ntohs(*(const uint16_t *)(udp + 4)) - UDP_LEN;

	if (ip_len == 40)
		packet(source_of(AF_INET6, ip + 8, 16), udp + UDP_LEN, len);
	else
		packet(source_of(AF_INET, ip + 12, 4), udp + UDP_LEN, len);
}

int main(void)
{
	static uint8_t data[65536] __attribute__((aligned(8)));
	uint32_t header[6], record[4];

	if (fread(header, sizeof(header), 1, stdin) != 1 || header[5] != 1)
		errx(1, "not a capture of Ethernet frames");
	while (fread(record, sizeof(record), 1, stdin) == 1) {
		if (record[2] > sizeof(data) - 2)
			errx(1, "a record of %u bytes", record[2]);
		/* Align the IP header, which follows 14 bytes of Ethernet header. */
		if (fread(data + 2, 1, record[2], stdin) != record[2])
			break;
		frame(data + 2, record[2]);
	}
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources) && sources[i].family; i++) {
		char text[INET6_ADDRSTRLEN];

		inet_ntop(sources[i].family, sources[i].address, text, sizeof(text));
		printf("%s %u %lu %lu %lu\n", text, sources[i].longest, sources[i].sends,
		       sources[i].reads, sources[i].writes);
	}
	return 0;
}

# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Pulled Replies on the wire: finds their packets in a capture of RoCEv2 and checks the order.

# pulled_packets FILE: prints one line per relevant packet of the capture. From the server: "nomsg
# XID HANDLE" for an RDMA_NOMSG with a Read list, "response PSN" for the last packet of an RDMA Read
# response. From the client: "read HANDLE PSN" for an RDMA Read request, "done XID" for an
# RDMA_DONE, "done XID HANDLE" for an RDMA_DONE that invalidates the handle.
pulled_packets() {
	tcpdump -nn -t -x -r "$1" 'udp dst port 4791' 2>/dev/null | awk -v server="$SERVER4" '
		function words(from, count) { return substr(packet, 2 * from + 1, 8 * count) }
		function sequence(  i, n) {
			for (i = 75; i < 81; i++)
				n = 16 * n + index("0123456789abcdef", substr(packet, i, 1)) - 1
			return n
		}
		function look() {
			# Offsets count from the IP header; the BTH follows UDP at 28.
			code = substr(packet, 57, 2)
			if (code == "04" && served && words(52, 3) == "000000010000000100000000")
				print "nomsg", words(40, 1), words(64, 1)
			else if (code == "0c" && !served)
				print "read", words(48, 1), sequence()
			else if ((code == "0f" || code == "10") && served)
				print "response", sequence()
			else if (code == "04" && !served && words(52, 1) == "00000003")
				print "done", words(40, 1)
			else if (code == "17" && !served && words(56, 1) == "00000003")
				print "done", words(44, 1), words(40, 1)
		}
		/^IP/ {
			if (packet) look()
			packet = ""
			served = index($2, server ".") == 1
			next
		}
		{ sub(/^[^:]*:/, ""); gsub(/[ \t]/, ""); packet = packet $0 }
		END { if (packet) look() }'
}

# pulled_in_order INVALIDATES <PACKETS: fails unless each exposed Reply is read by its handle and
# RDMA_DONE follows the last of its data. With INVALIDATES 1 each RDMA_DONE invalidates that handle,
# with 0 none does. Responses arrive in the order of their requests' PSNs.
pulled_in_order() {
	awk -v words=$((2 + $1)) '
		function missing(wanted,  i, n) {
			for (i in pending)
				n += pending[i] == wanted
			return n || !(wanted in requested)
		}
		$1 == "nomsg" && !($2 in handle) { handle[$2] = $3; n++ }
		$1 == "read" { requested[$2] = 1; pending[$3] = $2 }
		$1 == "response" {
			for (each in pending)
				if (($2 - each + 16777216) % 16777216 < 8388608)
					delete pending[each]
		}
		$1 == "done" && !($2 in handle) { print "done before its Reply: " $2; bad = 1 }
		$1 == "done" && missing(handle[$2]) { print "done before the data: " $2; bad = 1 }
		$1 == "done" && NF != words { print "done with " (NF - 2) " handles to invalidate"; bad = 1 }
		$1 == "done" && NF == 3 && $3 != handle[$2] { print "done with handle " $3; bad = 1 }
		$1 == "done" { acked[$2] = 1 }
		END {
			for (each in handle) if (!(each in acked)) { print "no done: " each; bad = 1 }
			print n + 0, "Replies exposed, read and acknowledged"
			exit (bad || n < 2)
		}'
}

# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Tests of the library of the selftests, without a guest and without a test bed.

# bed_commands MACHINE: prints the output of bed_up, and the calls of rpc.nfsd that it and the end of
# the program make. MACHINE defines functions for what the machine has. All programs are replaced by
# functions: none of this machine is found.
bed_commands() {
	local dir
	dir=$(mktemp -d)
	# shellcheck disable=SC2016 # expanded by the inner shell
	PATH=/nowhere "$BASH" -c '
		. selftests/lib/ktap.sh
		. selftests/lib/bed.sh
		BED_DIR=$1
		mkdir() { :; }
		touch() { >"$1"; }
		id() { echo 0; }
		cat() { echo 0; }
		tee() { :; }
		seq() { :; }
		for each in modprobe mountpoint mount umount umount_all rm ip rdma nsenter exportfs \
			client_wait_idle server_daemons bounce_begin bounce_end module_users module_wait_unused; do
			eval "$each() { :; }"
		done
		rpc.nfsd() { echo "rpc.nfsd $*" >&3; }
		eval "$2"
		bed_up
	' bed_commands "$dir" "$1" 3>&1 2>&1
	rm -r "$dir"
}

# The bed stops the server that it has started, and no other.
rule_test_bed() {
	diff - <(bed_commands 'server_start() { echo "the server starts" >&3; }') <<-'END'
		the server starts
		rpc.nfsd 0
	END
	diff - <(bed_commands 'server_start() { echo "no threads"; return 1; }') <<-'END'
		rpc.nfsd 0
		Bail out! no test bed: no threads
	END
	diff - <(bed_commands 'modprobe() { echo "no module $1"; return 1; }') <<-'END'
		Bail out! no test bed: no module rdma_rxe
	END
	diff - <(bed_commands 'cat() { echo 8; }') <<-'END'
		Bail out! no test bed: an NFS server is running already
	END
}

# A program that ignores the tests named, and one that is to run a test which it does not have.
rule_test_named_tests() {
	local dir
	expect_report named_tests ktap_run selftests/a.sh bed_up 'ktap_run reads writes'
	dir=$(mktemp -d)
	cp selftests/lib/ktap.sh "$dir"
	cat >"$dir/a.sh" <<-'END'
		cd "$(dirname "$0")" && . ./ktap.sh
		bed_up() { :; }
		helper() { :; }
		reads() { :; }
		writes() { :; }
		bed_up
		[ $# -gt 0 ] || set -- "reads 3" ${LONG:+"writes 4.2"}
		ktap_run "$@"
	END
	diff - <(bash "$dir/a.sh" "reads 4.2" "opens 3" 2>&1) <<-'END'
		Bail out! there is no test "opens"; the tests are: reads writes
	END
	rm -r "$dir"
}

# interrupt SIGNAL TEST: sends SIGNAL to a program while TEST runs, and prints what the program still
# does, and the processes that it leaves. A shell ignores SIGINT in background processes.
interrupt() {
	local dir program _
	dir=$(mktemp -d)
	cat >"$dir/program" <<-'END'
		. selftests/lib/ktap.sh
		loss_trace_on() { :; }
		loss_trace_off() { :; }
		log_mark() { :; }
		rxe_timeouts() { :; }
		module_describe() { :; }
		test_cleanup() { echo "the test undoes what it has done"; }
		runs_a_program() { >"$1"; sleep 1000; echo "the test runs on"; }
		reads_output() { >"$1"; echo "the test runs on: $(sleep 1000)"; }
		has_jobs() { sleep 1000 & >"$1"; wait; echo "the test runs on"; }
		waits() { >"$1"; wait_for "time is up" false; }
		trap 'echo "the bed is destroyed"' EXIT
		ktap_run "$@"
	END
	setsid env --default-signal=INT bash "$dir/program" "$2 $dir/runs" waits >"$dir/said" 2>&1 &
	program=$!
	for _ in {1..100}; do
		[ ! -e "$dir/runs" ] || break
		sleep 0.1
	done
	kill -"$1" "$program"
	for _ in {1..100}; do
		kill -0 "$program" 2>/dev/null || break
		sleep 0.1
	done
	ps -o stat=,args= -s "$program" | grep -v '^Z'
	pkill -KILL -s "$program"
	wait "$program" 2>/dev/null
	grep -vE '^(KTAP|1\.\.|# rpcrdma:)' "$dir/said"
	rm -r "$dir"
}

# A program that is interrupted ends its test, then itself, and leaves no process.
rule_test_interrupted() {
	local signal each
	for signal in INT TERM; do
		for each in runs_a_program reads_output has_jobs waits; do
			diff - <(interrupt $signal $each 2>&1) <<-'END' || echo "$signal: $each"
				Bail out! interrupted
				# the test undoes what it has done
				the bed is destroyed
			END
		done
	done
}

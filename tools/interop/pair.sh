# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions of the commands here, each of which boots two virtual machines with one module
# each. Command NAME runs guest/NAME-server.sh in one and guest/NAME-client.sh in the other;
# these source guest/server.sh and guest/client.sh.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=../env/cache.sh
. tools/env/cache.sh
# shellcheck source=../lib/emulator.sh
. tools/lib/emulator.sh
# shellcheck source=../lib/results.sh
. tools/lib/results.sh
commit=$(source_commit)
out=out/interop$variant
programs=out/selftests$variant

# Builds the module and the programs for the guests.
build() {
	tools/env/make
	make --no-print-directory all
	mkdir -p "$out" "$programs"
	tools/env/enter --src . make -s -C /src/selftests OUT="/src/$programs"
}

# machines NAME CLIENT SERVER [option of tools/vm/pair...]: boots both machines and keeps their
# output. If one kernel complained, returns 126 even if the emulator failed in the other
# machine, so that the complaint is not lost in a repetition.
machines() {
	local name=$1 client=$2 server=$3 said=$out/$1-$2-$3 status
	shift 3

	mkdir -p "$said.kernel"
	tools/vm/pair --client "$client" --server "$server" --log "$said.kernel" \
		--env "INTEROP=$client $server" --add tools/interop/guest:/interop \
		--add selftests:/selftests --add "$programs:/selftests/helpers" "$@" \
		"tools/interop/guest/$name-server.sh" "tools/interop/guest/$name-client.sh" \
		2>&1 | tee "$said" | sed -un 's/^client: \(# \|1\.\.\|ok\|not ok\)/\1/p'
	status=${PIPESTATUS[0]}
	[ "$status" != 123 ] ||
		! grep -qE '^[a-z]+: (kernel log not clean|error: the guest died)' "$said" || status=126
	return "$status"
}

# pair NAME CLIENT SERVER [option of tools/vm/pair...]: runs the tests with these modules (as
# for tools/vm/run --module). Keeps the output in out/interop/NAME-CLIENT-SERVER, and prints
# the results and their diagnostics. Fails if a test fails or has no result.
pair() {
	local said=$out/$1-$2-$3 status=0

	echo "# client: $2, server: $3"
	despite_emulator "$said.kernel" machines "$@" || status=$?
	{ stamp "$commit"; sed -n 's/^client: //p' "$said"; } >"$said.ktap"
	[ "$(plan <"$said.ktap")" -gt 0 ] || status=1
	[ "$(grep -cE '^(not )?ok ' "$said.ktap")" = "$(plan <"$said.ktap")" ] || status=1
	! grep -q '^not ok' "$said.ktap" || status=1
	[ "$status" = 0 ] || grep -q '^not ok' "$said.ktap" || {
		echo "not ok - the machines exited with status $status" >>"$said.ktap"
		echo "error: the machines exited with status $status"
	}
	[ "$status" = 0 ] || grep -A 20 '^[a-z]*: \(error\|kernel log\)' "$said" || tail -n 5 "$said"
	return "$status"
}

# plan: prints the number of tests that the KTAP on standard input plans.
plan() { awk '/^1\.\.[0-9]+/ { sum += substr($1, 4) } END { print sum + 0 }'; }

# record NAME KIND RESULTS [DIRECTORY]: writes the results of all pairs that command NAME has run
# on this commit to RESULTS.tsv in DIRECTORY, by default Documentation/results.
record() {
	local said=() each
	for each in ours-ours ours-c c-ours c-c; do
		[ ! -s "$out/$1-$each.ktap" ] || said+=("$out/$1-$each.ktap")
	done
	tools/results/record "$2" "$3" --commit "$commit" --module 'named in each row' \
		${4:+--to "$4"} "${said[@]}"
}

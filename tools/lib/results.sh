# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For harnesses that record their results under Documentation/results.

# source_commit: prints the commit that is checked out, with ", dirty" if files other than
# documents differ from it.
source_commit() {
	local git=(git -c "safe.directory=$(pwd -P)") commit

	commit=$("${git[@]}" rev-parse --short=12 HEAD 2>/dev/null) || { echo unknown; return; }
	[ -z "$("${git[@]}" status --porcelain -- . ':!Documentation' ':!README.md')" ] ||
		commit+=', dirty'
	echo "$commit"
}

# unchanged COMMIT: fails unless the sources are still those of COMMIT, on which a run began. The results
# of other sources must not have its name.
unchanged() {
	local now

	now=$(source_commit)
	[ "$now" = "$1" ] && [[ $now != *dirty ]] && return
	echo "error: nothing is recorded: the run began on commit $1, and the sources are now of $now" >&2
	echo "    next: commit, and run again without a change of the sources until the end" >&2
	return 1
}

# stamp COMMIT: prints the line by which tools/results/record knows the commit of an output.
stamp() { echo "# commit $1 on $(date +%F)"; }

# test_outputs MODULE DEVICE: prints the directory in which tools/test/run leaves the outputs of suites
# for this module and device, and for what the environment selects. With --case it appends "-cases".
test_outputs() (
	# shellcheck source=../env/cache.sh
	. tools/env/cache.sh
	out=out/test$variant
	[ "$1" = ours ] || out+=-$(basename "$1" .ko)
	[ "$2" = rxe ] || out+=-$2
	echo "$out${LONG:+-long}${LOADED:+-loaded}${BED_BOUNCE:+-bounce}"
)

# record_rows NAME COMMIT MODULE [OPTION...]: records the tab-separated rows of standard input,
# the first of which names the columns, of a run in the kernel of the environment. The options
# are those of tools/results/record.
record_rows() {
	# shellcheck source=../env/cache.sh
	. tools/env/cache.sh
	tools/results/record rows "$1" --commit "$2" --module "$3" \
		--kernel "$(cat "$(base_path)/release")" "${@:4}"
}

# ktap_rows FILE: prints the results in FILE as tab-separated rows. "# N s of processor time"
# before a result becomes its note, and so does the reason of a skipped one.
ktap_rows() {
	printf 'test\tresult\tseconds\tnote\n'
	awk -v OFS='\t' '/^# took / { seconds = $3 / 1000 }
		/^# [0-9]+ s of processor time/ { note = substr($0, 3) }
		/^(not )?ok / {
			result = $1 == "ok" ? "passed" : "failed"
			sub(/.* - /, "")
			if (skip = index($0, " # SKIP ")) {
				note = substr($0, skip + 8)
				$0 = substr($0, 1, skip - 1)
				result = "skipped"
			}
			print $0, result, seconds == "" ? "-" : seconds, note == "" ? "-" : note
			seconds = note = ""
		}' "$1"
}

# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Which sources a run is of.

# source_commit: the commit that is checked out, with ", dirty" if files other than documents
# differ from it.
source_commit() {
	local git=(git -c "safe.directory=$(pwd -P)") commit

	commit=$("${git[@]}" rev-parse --short=12 HEAD 2>/dev/null) || { echo unknown; return; }
	[ -z "$("${git[@]}" status --porcelain -- . ':!Documentation' ':!README.md')" ] ||
		commit+=', dirty'
	echo "$commit"
}

# stamp COMMIT: the line by which tools/results/record knows the commit of an output.
stamp() { echo "# commit $1 on $(date +%F)"; }

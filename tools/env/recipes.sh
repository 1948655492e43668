# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# All recipes in one place, for the shell that runs one.
set -euo pipefail
# shellcheck source=cache.sh
. "$(dirname "${BASH_SOURCE[0]}")/cache.sh"
# shellcheck source=toolchain.sh
. "$env_dir/toolchain.sh"
# shellcheck source=kernel-stock.sh
. "$env_dir/kernel-stock.sh"
# shellcheck source=kernel-built.sh
. "$env_dir/kernel-built.sh"
# shellcheck source=guest.sh
. "$env_dir/guest.sh"
# shellcheck source=base.sh
. "$env_dir/base.sh"
# shellcheck source=nfstest.sh
. "$env_dir/nfstest.sh"
# shellcheck source=../demo/tree.sh
. "$env_dir/../demo/tree.sh"

# The recipes ask a mirror through these, which belong to no recipe: with what they say a
# tree is made, and nothing changes in it if it takes several attempts.
mmdebstrap() {
	tries bootstrap "$@"
}

# The tree is what a recipe names last.
bootstrap() {
	rm -rf --one-file-system "${@: -1}"
	command mmdebstrap "$@"
}

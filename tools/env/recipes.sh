# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sources all recipes, for the shell in which make_once (cache.sh) runs one of them.
set -euo pipefail
# shellcheck source=cache.sh
. "$(dirname "${BASH_SOURCE[0]}")/cache.sh"
# A choice by SUITE and SERIES would be another file.
ENVIRONMENT=$(environment)
read -r SUITE SERIES RELEASE <<<"$ENVIRONMENT"
USER_SUITE=$(user_suite "$SUITE")
# shellcheck source=toolchain.sh
. "$env_dir/toolchain.sh"
# shellcheck source=../lib/rust-metadata.sh
. "$env_dir/../lib/rust-metadata.sh"
# shellcheck source=kernel-stock.sh
. "$env_dir/kernel-stock.sh"
# shellcheck source=source.sh
. "$env_dir/source.sh"
# shellcheck source=kernel-built.sh
. "$env_dir/kernel-built.sh"
# shellcheck source=guest.sh
. "$env_dir/guest.sh"
# shellcheck source=toolchain-foreign.sh
. "$env_dir/toolchain-foreign.sh"
# shellcheck source=guest-foreign.sh
. "$env_dir/guest-foreign.sh"
# shellcheck source=base.sh
. "$env_dir/base.sh"
# shellcheck source=nfstest.sh
. "$env_dir/nfstest.sh"
# shellcheck source=../demo/tree.sh
. "$env_dir/../demo/tree.sh"
# shellcheck source=../package/tree.sh
. "$env_dir/../package/tree.sh"
# shellcheck source=../package/server.sh
. "$env_dir/../package/server.sh"

# Retries mmdebstrap, which depends on a mirror. This wrapper is in no cache key, because
# the number of attempts does not change the result.
mmdebstrap() {
	tries bootstrap "$@"
}

# mmdebstrap's last argument is the tree; a failed attempt leaves part of it.
bootstrap() {
	rm -rf --one-file-system "${@: -1}"
	command mmdebstrap ${foreign_options[@]+"${foreign_options[@]}"} "$@"
}

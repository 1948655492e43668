# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # every tool sources this file
#
# Versions of the build environment. The Debian suite, the kernel series and the
# compiler are named only here; the point release is the one that the suite offers.

SUITE=forky
KERNEL_SERIES=7.2
KERNEL_FLAVOUR=amd64
COMPILER=gcc

# The kernel that the module is built for and that virtual machines boot:
# stock: the distribution's own kernel, with its Rust metadata regenerated.
# built: built here from the same source; slow, but needs no matching compiler.
# debug: built here by clang, with KASAN, lockdep, kmemleak and fault injection.
KERNEL=${KERNEL:-stock}

# The oldest Rust release on this machine that can run the host tests.
HOST_RUST=1.85

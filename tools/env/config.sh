# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # every tool sources this file
#
# What the build environments are made of. An environment is a Debian suite, one of its
# kernels, and the compilers that built this kernel. SUITE= and SERIES= select one.

# Suites whose stock kernels are built with Rust. If neither SUITE nor SERIES is given,
# tools/env/make takes the first of these that offers a series in PROVED and can be used.
SUITES='forky trixie-backports sid experimental'

# Kernel series with which the tests pass (Documentation/results), newest first.
PROVED='7.3 7.2'

# "make test" also builds for the newest kernel of one more suite, the first of these that is not the
# default, and runs selftests/short there. Their compilers differ from the default's.
SECOND='trixie-backports forky'

# Debian's flavour of the kernel, which names its architecture: amd64, arm64, or arm64-16k (pages
# of 16 KiB). An arm64 kernel and its modules are cross-compiled, and its guests are emulated.
FLAVOUR=${FLAVOUR:-amd64}

COMPILER=gcc

# The kernel that the module is built for and that virtual machines boot:
# stock: the distribution's own kernel, with its Rust metadata regenerated.
# built: built here from the same source; slow, but needs no matching compiler.
# debug: built here by clang, with KASAN, lockdep, kmemleak and fault injection.
# clang: no kernel, but a tree that clang has prepared, in which the module is only compiled.
# The source of built, debug and clang is the suite's, or SOURCE=, a kernel tree or tarball.
KERNEL=${KERNEL:-${SOURCE:+built}}
KERNEL=${KERNEL:-stock}

# The oldest Rust release on this machine that can run the host tests.
HOST_RUST=1.85

#!/bin/bash
# Compiles the programs of package bpf to the objects that are committed beside their sources. Needs clang, llvm and
# libbpf-dev, and does so only with the version of clang that made the committed objects: another one makes other code
# from the same source. A test notices objects that are older than their sources, with or without clang.
set -euo pipefail
cd "$(dirname "$0")/../bpf/programs"

version=14
clang=clang-$version
objcopy=llvm-objcopy-$version

for tool in "$clang" "$objcopy" /usr/include/bpf/bpf_helpers.h; do
    command -v "$tool" >/dev/null 2>&1 || [ -e "$tool" ] || {
        echo "skipped: compiling the programs of package bpf ($tool is not installed; Debian: apt-get install clang-$version llvm-$version libbpf-dev)"
        exit 0
    }
done

for source in *.bpf.c; do
    object=${source%.bpf.c}.o
    # -g makes the type information that the loading needs. The objects serve every little-endian architecture.
    "$clang" -target bpfel -mcpu=v3 -O2 -g -Wall -Wextra -Werror -fdebug-compilation-dir=. -I"/usr/include/$(uname -m)-linux-gnu" -c "$source" -o "$object"
    "$objcopy" --strip-debug --remove-section=.rel.BTF --remove-section=.rel.BTF.ext --remove-section=.llvm_addrsig "$object"
done
LC_ALL=C sha256sum ./*.c ./*.h >SHA256SUMS

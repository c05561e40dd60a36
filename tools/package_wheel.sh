#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# package_wheel.sh ROOT SITE PATCHELF OUT: builds the wheel in ROOT, an installation of an older Debian, so that it works
# on systems as old. SITE: a folder of Python packages with auditwheel, PATCHELF: the program, OUT: for the wheel.
# `./dev package wheel` starts it as root, in the source folder and in a mount namespace of its own, which takes all
# mounts with it when it ends. meson and Python's headers come from this system: those of the older one are too old.
set -eu
root=$1 site=$2 patchelf=$3 out=$4

bind()
{
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
}

mkdir -p "$root/tools/bin" "$root/out"
cp "$patchelf" "$root/tools/bin/patchelf"
headers=$(pkg-config --variable=includedir python3)
version=$(pkg-config --modversion python3)
machine=$(gcc -print-multiarch)
bind "$PWD" /gradb
bind "$site" /tools/site
bind /usr/lib/python3/dist-packages/mesonbuild /tools/meson/mesonbuild
bind "$headers/python$version" "/usr/include/python$version"
bind "$headers/$machine/python$version" "/usr/include/$machine/python$version"
mount -t proc proc "$root/proc"
printf '%s\n' "Name: python3" "Description: Python's headers" "Version: $version" \
    "Cflags: -I/usr/include/python$version" >"$root/usr/share/pkgconfig/python3.pc"
printf '%s\n' '#!/usr/bin/python3' 'import sys' 'sys.path.insert(0, "/tools/meson")' \
    'from mesonbuild.mesonmain import main' 'sys.exit(main())' >"$root/tools/bin/meson"
chmod 755 "$root/tools/bin/meson"
rm -rf "$root/out"
[ -f "$root/build/build.ninja" ] || rm -rf "$root/build"
chroot "$root" env -i PATH=/tools/bin:/usr/bin:/bin HOME=/tmp LC_ALL=C.UTF-8 sh -euc '
    [ -f /build/build.ninja ] || meson setup /build /gradb --buildtype=release --prefix=/usr -Dtests=disabled
    ninja -C /build
    PYTHONPATH=/tools/site PYTHONDONTWRITEBYTECODE=1 python3 /gradb/tools/package_wheel.py /build /out'
mkdir -p "$out"
cp "$root"/out/*.whl "$out"

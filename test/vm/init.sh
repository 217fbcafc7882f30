#!/bin/busybox sh
# shellcheck shell=dash
# The first process of a guest: loads what the disks need, and goes on in the file system of the first disk with the guest's program.
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
for module in /modules/*.ko; do
    /bin/busybox insmod "$module" || echo "no module $module"
done
if ! { /bin/busybox mount -t ext4 -o rw,relatime /dev/vda /root && /bin/busybox mount -t ext4 -o ro /dev/vdb /root/srt-vm; }; then
    echo "the disks cannot be mounted"
    /bin/busybox poweroff -f
fi
for part in proc sys dev; do
    /bin/busybox mount --move "/$part" "/root/$part"
done
exec /bin/busybox switch_root /root /bin/bash /srt-vm/first.sh

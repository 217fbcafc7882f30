#!/bin/bash
# Goes on as the first process, in the guest's own file system: mounts what a system has, runs the guest's program, and switches off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o nosuid,nodev tmpfs /dev/shm
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs /run
mount -t securityfs securityfs /sys/kernel/security
mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 /sys/fs/cgroup
mount -t bpf -o nosuid,nodev,noexec,mode=700 bpf /sys/fs/bpf
ln -sfn /proc/self/fd /dev/fd
ip link set lo up
hostname srt-vm
install -m 755 /srt-vm/srt /usr/local/bin/srt
stty -F /dev/ttyS1 raw -echo
# What the host wants of this boot is on the kernel's command line, the parts of it parted by "|".
words=$(grep -o 'srt.guest=[^ ]*' /proc/cmdline)
IFS='|' read -r -a words <<<"${words#srt.guest=}"
setsid /srt-vm/guest "${words[@]}" </dev/null
echo "the guest's program has ended with $?"
sync
echo o >/proc/sysrq-trigger
sleep 60

// Program vm boots srt under kernels of Debian's, by qemu's software emulation, and records what each of them gives
// ("make vm-test"). The results are in results.json beside this file, and docs/kernels.md is written from them.
//
// What belongs here: fetching kernels, making the disks of the guests, booting them, and the document. What runs in the guest is
// program guest; what the two say to each other is internal/record. What does not belong here: tests of srt. The guests run the
// test programs of the packages that meet the kernel (suites.go), as root and as an ordinary user.
//
// Everything that is fetched or made lies in a directory outside of the tree (-cache), and is used again by the next run. Making the
// first guest needs root, for debootstrap.
package main

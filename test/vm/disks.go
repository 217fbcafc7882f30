package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

//go:embed init.sh
var initScript []byte

//go:embed first.sh
var firstScript []byte

// modules are what the disks and the tests need and a kernel may not have built in.
var modules = []string{"virtio_pci", "virtio_blk", "overlay"}

// userlandDisk gives the image of the guests' file system, and busybox out of it. It is made once for each list of packages.
func userlandDisk(dir string) (image, busybox string, err error) {
	sum := sha256.Sum256([]byte(userlandSuite + strings.Join(userland, ",")))
	base := filepath.Join(dir, fmt.Sprintf("userland-%x", sum[:6]))
	image, tree, busybox := base+".img", base+".tree", base+".busybox"
	if _, err := os.Stat(image); err == nil {
		return image, busybox, nil
	}
	say("making the guests' file system, once: a few minutes")
	if err := os.RemoveAll(tree); err != nil {
		return "", "", err
	}
	if _, err := output("", "debootstrap", "--variant=minbase", "--include="+strings.Join(userland, ","), userlandSuite, tree, mirror); err != nil {
		return "", "", err
	}
	if _, err := output("", "chroot", tree, "useradd", "--create-home", "--shell", "/bin/bash", "srt-test"); err != nil {
		return "", "", err
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(tree, "srt-vm"), 0o755), os.RemoveAll(filepath.Join(tree, "var/cache/apt/archives"))); err != nil {
		return "", "", err
	}
	if _, err := output("", "cp", filepath.Join(tree, "bin/busybox"), busybox); err != nil {
		return "", "", err
	}
	if err := makeDisk(tree, image, "3G"); err != nil {
		return "", "", err
	}
	return image, busybox, os.RemoveAll(tree)
}

// makeDisk makes an image of a directory. It appears under its name only when it is whole.
func makeDisk(tree, image, size string) error {
	part := image + ".new"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := output("", "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", tree, part, size); err != nil {
		return err
	}
	return os.Rename(part, image)
}

// weaker is a settings file that denies what the defaults deny, and allows mode confined.
const weaker = `{"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []},
	"enableWeakerNestedSandbox": true}
`

// testsDisk gives an image with srt, the guest's program, the test programs and the tree that they read.
func testsDisk(dir string, suites []record.Suite) (string, error) {
	tree := filepath.Join(dir, "tests.tree")
	if err := os.RemoveAll(tree); err != nil {
		return "", err
	}
	for _, sub := range []string{"tests", "tree", "helpers"} {
		if err := os.MkdirAll(filepath.Join(tree, sub), 0o755); err != nil {
			return "", err
		}
	}
	for to, pkg := range map[string]string{"srt": "./cmd/srt", "guest": "./test/vm/guest", "helpers/probe": "./test/internal/probe",
		"helpers/listener": "./test/internal/listener"} {
		if err := goDo("build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(tree, to), pkg); err != nil {
			return "", err
		}
	}
	for _, s := range suites {
		to := filepath.Join(tree, "tests", strings.ReplaceAll(s.Folder, "/", "-"))
		if err := goDo("test", "-c", "-trimpath", "-ldflags=-s -w", "-o", to, "./"+s.Folder); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(suites)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(tree, record.SuitesFile), list, 0o644); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(tree, record.WeakerFile), []byte(weaker), 0o644); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(tree, "first.sh"), firstScript, 0o755); err != nil {
		return "", err
	}
	// Deleted files are still listed until the deletion is committed.
	const copyTree = `git -c safe.directory="$PWD" ls-files -z | while IFS= read -r -d '' file; do [ ! -e "$file" ] && [ ! -L "$file" ] ||
		printf '%s\0' "$file"; done | tar --null --no-recursion --owner=0 --group=0 -T - -cf - | tar -xf - -C "$0"`
	if _, err := output("", "bash", "-c", "set -o pipefail; "+copyTree, filepath.Join(tree, "tree")); err != nil {
		return "", err
	}
	image := filepath.Join(dir, "tests.img")
	return image, makeDisk(tree, image, "600M")
}

// goDo runs the go command for the guests: static programs for the architecture of the kernels.
func goDo(args ...string) error {
	_, err := outputWith("", []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64"}, "go", args...)
	return err
}

// ramdisk makes the initramfs of a kernel: busybox, the modules in the order in which they load, and init.sh.
func ramdisk(dir, busybox, kernelTree string) (string, error) {
	tree := filepath.Join(dir, "initramfs.tree")
	if err := os.RemoveAll(tree); err != nil {
		return "", err
	}
	for _, sub := range []string{"bin", "modules"} {
		if err := os.MkdirAll(filepath.Join(tree, sub), 0o755); err != nil {
			return "", err
		}
	}
	files, err := moduleFiles(kernelTree)
	if err != nil {
		return "", err
	}
	for i, file := range files {
		to := filepath.Join(tree, "modules", fmt.Sprintf("%02d-%s", i, strings.TrimSuffix(filepath.Base(file), ".xz")))
		unpack := "cat"
		if strings.HasSuffix(file, ".xz") {
			unpack = "xz -dc"
		}
		if _, err := output("", "sh", "-c", unpack+` "$0" >"$1"`, file, to); err != nil {
			return "", err
		}
	}
	if _, err := output("", "cp", busybox, filepath.Join(tree, "bin/busybox")); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(tree, "init"), initScript, 0o755); err != nil {
		return "", err
	}
	image := filepath.Join(dir, "initramfs.cpio")
	_, err = output(tree, "sh", "-c", `find . | cpio --quiet -o -H newc -R 0:0 >"$0"`, image)
	return image, err
}

// moduleFiles are the files of the modules that a kernel does not have built in, each after those that it needs.
func moduleFiles(kernelTree string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(kernelTree, "usr/lib/modules/*/modules.order"))
	root := filepath.Join(kernelTree, "usr")
	if len(found) == 0 && err == nil {
		root = kernelTree
		found, err = filepath.Glob(filepath.Join(kernelTree, "lib/modules/*/modules.order"))
	}
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("%s has no modules: %w", kernelTree, err)
	}
	home := filepath.Dir(found[0])
	if _, err := output("", "depmod", "-b", root, filepath.Base(home)); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(home, "modules.dep"))
	if err != nil {
		return nil, err
	}
	var files []string
	for _, name := range modules {
		for _, file := range loadOrder(string(data), name) {
			if file = filepath.Join(home, file); !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files, nil
}

// loadOrder are a module's files as modules.dep(5) names them, what it needs first; none if it is built in.
func loadOrder(dep, name string) []string {
	for line := range strings.Lines(dep) {
		file, needs, _ := strings.Cut(strings.TrimSpace(line), ":")
		base, _, _ := strings.Cut(filepath.Base(file), ".ko")
		if strings.ReplaceAll(base, "-", "_") != name {
			continue
		}
		// depmod tells the nearest need first.
		files := []string{file}
		for need := range strings.FieldsSeq(needs) {
			files = append([]string{need}, files...)
		}
		return files
	}
	return nil
}

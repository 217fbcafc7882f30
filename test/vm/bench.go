package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

// bench has what all machines of a run share.
type bench struct {
	dir                      string
	userland, busybox, tests string
	suites                   []record.Suite
	limit                    time.Duration
}

func newBench(dir string, suites []record.Suite, limit time.Duration) (*bench, error) {
	b := &bench{dir: dir, suites: suites, limit: limit}
	var err error
	if b.userland, b.busybox, err = userlandDisk(dir); err != nil {
		return nil, err
	}
	say("building srt and the test programs")
	b.tests, err = testsDisk(dir, suites)
	return b, err
}

// measure boots a kernel once for the system as it comes, the sysctls and the suites, and once more for each variant that is made
// at boot.
func (b *bench) measure(k kernel) (result, error) {
	tree, err := k.fetch(b.dir)
	if err != nil {
		return result{}, err
	}
	r := result{Suite: k.Suite, Package: filepath.Base(tree)}
	m := machine{userland: b.userland, tests: b.tests}
	if m.kernel, err = image(tree); err != nil {
		return r, err
	}
	if m.ramdisk, err = ramdisk(b.dir, b.busybox, tree); err != nil {
		return r, err
	}
	var sysctls []string
	for _, v := range variants {
		switch {
		case v.Sysctl != "":
			sysctls = append(sysctls, v.Name+"="+v.Sysctl)
		case v.Boot != "":
			m.guest, m.boot, m.log = []string{"-as=" + v.Name}, v.Boot, b.log(k, v.Name)
			if err := b.boot(m, &r); err != nil {
				return r, err
			}
		}
	}
	m.guest, m.boot, m.log = []string{"-as=" + defaults, "-variants=" + strings.Join(sysctls, ",")}, "", b.log(k, defaults)
	if len(b.suites) > 0 && !k.Refused {
		m.guest = append(m.guest, "-tests")
	}
	return r, b.boot(m, &r)
}

// log is the file for what a machine prints.
func (b *bench) log(k kernel, variant string) string {
	return filepath.Join(b.dir, k.Suite+"-"+variant+".log")
}

// boot boots a machine and adds what it tells to the result.
func (b *bench) boot(m machine, r *result) error {
	say("booting %s with %s", m.kernel, strings.Join(append(m.guest, m.boot), " "))
	return m.run(b.limit, func(l record.Line) {
		r.add(l)
		if p := l.Package; p != nil {
			say("%s as %s: exit status %d after %.0f s", p.Package, p.Account, p.Exit, p.Seconds)
			b.keepOutput(r.Suite, p)
		}
	})
}

// keepOutput writes down what a test program that failed has printed, to be looked into.
func (b *bench) keepOutput(suite string, p *record.Package) {
	if p.Exit == 0 {
		return
	}
	file := filepath.Join(b.dir, fmt.Sprintf("%s-%s-%s.out", suite, strings.ReplaceAll(p.Package, "/", "-"), p.Account))
	if err := os.WriteFile(file, []byte(p.Output), 0o644); err != nil {
		say("%s", err)
		return
	}
	say("what it printed is in %s", file)
}

// image is the file of the kernel itself.
func image(tree string) (string, error) {
	for _, pattern := range []string{"boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz"} {
		found, err := filepath.Glob(filepath.Join(tree, pattern))
		if err != nil {
			return "", err
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("%s has no kernel", tree)
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mirror is where Debian's packages are fetched. What comes is checked by apt: the signature of the suite, and by it every package.
const (
	mirror  = "http://deb.debian.org/debian"
	keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// parts are the packages that a kernel is made of; others that it depends on serve its installation.
var parts = regexp.MustCompile(`(?m)^\s*(?:Pre)?Depends: (linux-(?:image|binary|modules|base)-[0-9]\S*)$`)

// fetch gives the directory with the files of a suite's newest kernel, unpacked. The apt that fetches it has its lists
// and settings beneath dir alone; those of this machine are neither read nor changed.
func (k kernel) fetch(dir string) (string, error) {
	apt, err := newApt(filepath.Join(dir, "apt", k.Suite), k.Suite)
	if err != nil {
		return "", err
	}
	image, err := apt.depends(metapackage)
	if err != nil || len(image) != 1 {
		return "", fmt.Errorf("the kernel of %s: want one, found %q: %w", k.Suite, image, err)
	}
	more, err := apt.depends(image[0])
	if err != nil {
		return "", err
	}
	version, err := apt.version(image[0])
	if err != nil {
		return "", err
	}
	tree := filepath.Join(dir, "kernels", k.Suite, version)
	if _, err := os.Stat(tree); err == nil {
		return tree, nil
	}
	unpacked := tree + ".new"
	if err := os.RemoveAll(unpacked); err != nil {
		return "", err
	}
	if err := os.MkdirAll(unpacked, 0o755); err != nil {
		return "", err
	}
	for _, name := range slices.Concat(image, more) {
		if err := apt.unpack(name, unpacked); err != nil {
			return "", err
		}
	}
	return tree, os.Rename(unpacked, tree)
}

// apt is one with a state of its own.
type apt struct {
	dir     string
	options []string
}

// newApt fetches the list of a suite's packages.
func newApt(dir, suite string) (*apt, error) {
	for _, sub := range []string{"lists/partial", "archives/partial", "etc/preferences.d"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	source := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, mirror, suite)
	for name, text := range map[string]string{"etc/sources.list": source, "status": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	a := &apt{dir: dir}
	for _, option := range []string{"Dir::Etc=" + dir + "/etc", "Dir::Etc::sourceparts=/none", "Dir::State=" + dir,
		"Dir::State::lists=" + dir + "/lists", "Dir::State::status=" + dir + "/status", "Dir::Cache=" + dir, "Acquire::Languages=none",
		"APT::Architecture=amd64", "APT::Sandbox::User=root"} {
		a.options = append(a.options, "-o", option)
	}
	_, err := output("", "apt-get", append(a.options, "-qq", "update")...)
	return a, err
}

// depends are the packages of a kernel that a package needs.
func (a *apt) depends(name string) ([]string, error) {
	text, err := output("", "apt-cache", append(a.options, "depends", name)...)
	var names []string
	for _, m := range parts.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names, err
}

// version is that of the package which would be fetched.
func (a *apt) version(name string) (string, error) {
	text, err := output("", "apt-cache", append(a.options, "show", "--no-all-versions", name)...)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, "Version: "); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("apt-cache tells no version of %s", name)
}

// unpack fetches a package and lays its files beneath a directory.
func (a *apt) unpack(name, to string) error {
	if _, err := output(filepath.Join(a.dir, "archives"), "apt-get", append(a.options, "-qq", "download", name)...); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(a.dir, "archives", name+"_*.deb"))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("apt-get has fetched no %s", name)
	}
	for _, deb := range found {
		if _, err := output("", "dpkg-deb", "-x", deb, to); err != nil {
			return err
		}
	}
	return nil
}

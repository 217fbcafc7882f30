package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

type options struct {
	srt       string
	cache     string
	quick     bool
	reference bool
}

// bed is what every measurement uses: the peers, a folder to work in, and the people to work as.
type bed struct {
	options
	folder string // absolute, removed by close
	self   string // a copy of this program that everybody may execute
	srtBin string // likewise of srt; empty if there is none
	ref    *reference
	people []person
	notes  []string
	memory string // a file system in memory that is mounted in the folder, empty where that is not possible
}

// person is somebody to run a command as.
type person struct {
	name string
	home string
	cred *syscall.Credential // nil: as this process
}

// place is where and how a command runs.
type place struct {
	folder   string // working directory, absolute
	settings string // settings file of srt and of the reference, absolute
	who      person
}

func newBed(o options) (*bed, error) {
	folder, err := os.MkdirTemp("", "srt-bench-")
	if err != nil {
		return nil, err
	}
	b := &bed{options: o, folder: folder}
	if err := errors.Join(os.Chmod(folder, 0o755), b.copyPrograms(), b.findPeople()); err != nil {
		b.close()
		return nil, err
	}
	if _, err := exec.LookPath("bwrap"); err != nil {
		b.notes = append(b.notes, "no bwrap: "+err.Error())
	}
	if o.reference {
		if b.ref, err = installReference(o.cache); err != nil {
			b.notes = append(b.notes, "no reference: "+err.Error())
		}
	}
	return b, nil
}

func (b *bed) close() {
	if b.memory != "" {
		unix.Unmount(b.memory, unix.MNT_DETACH)
	}
	os.RemoveAll(b.folder)
}

// disk is somewhere to put a place.
type disk struct {
	name string // of its file system, for the table
	bed  *bed   // with its folder there
}

// disks are the folder of the bed and, for root, one in memory.
func (b *bed) disks() []disk {
	disks := []disk{{fileSystem(b.folder), b}}
	if os.Geteuid() != 0 {
		return disks
	}
	if b.memory == "" {
		memory := filepath.Join(b.folder, "memory")
		err := os.Mkdir(memory, 0o755)
		if err == nil {
			err = unix.Mount("tmpfs", memory, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755")
		}
		if err != nil {
			fmt.Println("note: no folder in memory:", err)
			return disks
		}
		b.memory = memory
	}
	inMemory := *b
	inMemory.folder = b.memory
	return append(disks, disk{fileSystem(b.memory), &inMemory})
}

// fileSystem names the file system of a folder as statfs(2) does.
func fileSystem(folder string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return err.Error()
	}
	switch st.Type {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	}
	return fmt.Sprintf("file system %#x", st.Type)
}

// runs scales a number of runs.
func (b *bed) runs(n int) int {
	if b.quick {
		return max(3, n/5)
	}
	return n
}

// copyPrograms puts this program and srt where an ordinary user can execute them.
func (b *bed) copyPrograms() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b.self = filepath.Join(b.folder, "bench")
	if err := copyFile(self, b.self); err != nil {
		return err
	}
	srt := filepath.Join(b.folder, "srt")
	if err := copyFile(b.srt, srt); err != nil {
		b.notes = append(b.notes, fmt.Sprintf("no srt (run make build): %v", err))
		return nil
	}
	b.srtBin = srt
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// findPeople fills in the caller and, for root, an ordinary user.
func (b *bed) findPeople() error {
	me := person{name: "user", home: filepath.Join(b.folder, "home")}
	b.people = []person{me}
	if os.Geteuid() == 0 {
		b.people[0].name = "root"
		for _, name := range []string{"srt-test", "nobody"} {
			if u, err := user.Lookup(name); err == nil {
				uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
				gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
				if err := errors.Join(err1, err2); err != nil {
					return err
				}
				cred := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
				b.people = append(b.people, person{name, filepath.Join(b.folder, "home-"+name), cred})
				break
			}
		}
	}
	for _, p := range b.people {
		if err := errors.Join(os.Mkdir(p.home, 0o700), p.own(p.home)); err != nil {
			return err
		}
	}
	return nil
}

// own gives a tree to p.
func (p person) own(tree string) error {
	if p.cred == nil {
		return nil
	}
	return filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(p.cred.Uid), int(p.cred.Gid)))
	})
}

// settings are the parts of a settings file that the measurements vary.
type settings struct {
	domains   []string
	denyWrite []string
	masks     []string // credential files
	authority string   // that upstream servers may be verified with, absolute; TLS is terminated unless it is empty
}

// place makes a folder called name and a settings file beside it; fill puts things into the folder, or is nil.
func (b *bed) place(name string, who person, s settings, fill func(folder string) error) (place, error) {
	p := place{folder: filepath.Join(b.folder, name+"-"+who.name), who: who}
	p.settings = p.folder + ".json"
	network := map[string]any{"allowedDomains": s.domains, "deniedDomains": []string{}}
	if s.authority != "" {
		network["tlsTerminate"] = map[string]any{"extraCaCertPaths": []string{s.authority}}
	}
	content := map[string]any{
		"network":    network,
		"filesystem": map[string]any{"denyRead": []string{}, "allowWrite": []string{"."}, "denyWrite": orEmpty(s.denyWrite)},
	}
	if len(s.masks) > 0 {
		var files []map[string]string
		for _, f := range s.masks {
			files = append(files, map[string]string{"path": f, "mode": "mask"})
		}
		content["credentials"] = map[string]any{"files": files}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return place{}, err
	}
	if err := errors.Join(os.Mkdir(p.folder, 0o755), os.WriteFile(p.settings, text, 0o644)); err != nil {
		return place{}, err
	}
	if fill != nil {
		if err := fill(p.folder); err != nil {
			return place{}, err
		}
	}
	return p, errors.Join(who.own(p.folder), who.own(p.settings))
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

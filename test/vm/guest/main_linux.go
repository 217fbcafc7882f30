package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

// What the host lays on the second disk, and where the guest finds it.
const (
	disk      = "/srt-vm"
	srtBinary = "/usr/local/bin/srt" // beyond the disk: where an administrator would have it
	testUser  = "srt-test"
)

func main() {
	port := flag.String("port", "/dev/ttyS1", "the `device` that records are written to")
	variants := flag.String("variants", "", "how the system differs from its defaults: `name=sysctl=value,...`")
	as := flag.String("as", "", "the `name` of this boot's variant, if its command line makes one")
	tests := flag.Bool("tests", false, "run the test programs that the list on the disk names")
	flag.Parse()
	out, err := os.OpenFile(*port, os.O_WRONLY, 0)
	if err == nil {
		err = (&guest{out: json.NewEncoder(out)}).run(*as, split(*variants), *tests)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

// guest sends what it finds.
type guest struct{ out *json.Encoder }

func (g *guest) run(as string, variants []string, tests bool) error {
	if err := g.system(); err != nil {
		return err
	}
	who, err := accounts()
	if err != nil {
		return err
	}
	if err := g.sights(who, as); err != nil {
		return err
	}
	for _, v := range variants {
		if err := g.variant(who, v); err != nil {
			return err
		}
	}
	if tests {
		if err := g.suites(who); err != nil {
			return err
		}
	}
	return g.out.Encode(record.Line{Kind: record.KindEnd})
}

// system tells which kernel this is.
func (g *guest) system() error {
	s := &record.System{}
	for file, to := range map[string]*string{"/proc/sys/kernel/osrelease": &s.Release, "/proc/sys/kernel/version": &s.Build,
		"/sys/kernel/security/lsm": &s.LSM} {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		*to = strings.TrimSpace(string(data))
	}
	return g.out.Encode(record.Line{Kind: record.KindSystem, System: s})
}

// account is who runs something.
type account struct {
	name string // of root or the ordinary user
	home string
	cred *syscall.Credential
}

// accounts are root and the ordinary user.
func accounts() ([]account, error) {
	u, err := user.Lookup(testUser)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return []account{{"root", "/root", &syscall.Credential{}}, {testUser, u.HomeDir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}}, nil
}

// command is a command as that account, in its home, with a clean environment.
func (a account) command(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = a.home
	cmd.Env = []string{"HOME=" + a.home, "USER=" + a.name, "LOGNAME=" + a.name, "LANG=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SRT_TEST_USER=" + testUser, "SRT_BINARY=" + srtBinary,
		"SRT_TEST_HELPERS=" + disk + "/helpers"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.cred}
	return cmd
}

// split gives the parts of a list with commas.
func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

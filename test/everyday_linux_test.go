package test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// copyTree copies a folder of testdata into the working directory, as files of the account.
func (b *box) copyTree(from, to string) {
	b.t.Helper()
	b.must(filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			rel, _ := filepath.Rel(from, path)
			b.file(filepath.Join(to, rel), string(text))
		}
		return err
	}))
}

func TestBuild_CProject(t *testing.T) {
	need(t, "gcc", "make")
	eachAlong(t, func(t *testing.T, b *box) {
		b.copyTree("testdata/cproject", ".")
		c := cfg{aw: list{".", b.dir + "/tmp"}}
		r := b.run(c, "make", "-j2", "all").ok()
		if !strings.Contains(r.stdout, "libtally.a") {
			t.Errorf("no library: %v", r)
		}
		b.run(c, "make", "check").ok()
		cmd := b.command(b.abs("build/tally"))
		cmd.Stdin = strings.NewReader("x y x")
		b.finish(cmd).ok().prints("2 x\n1 y")
		b.run(c, "make").ok().prints("make: Nothing to be done for 'all'.")
		b.run(c, "make", "clean").ok()
		b.absent("build")
		// Without a write root the same build fails, and leaves the folder as it is.
		before := b.tree(".")
		b.run(cfg{}, "make").fails().says("build")
		b.unchanged(".", before)
	})
}

// goEnv is the environment of the go command with its caches beneath a folder.
func goEnv(dir string) []string {
	return []string{"GOCACHE=" + dir + "/build", "GOPATH=" + dir + "/path", "GOFLAGS=", "GOTOOLCHAIN=local", "GOTELEMETRY=off",
		"CGO_ENABLED=0"}
}

// goCacheSeed is a build cache that holds the standard library as the Go project needs it. Compiling that takes most of
// a minute; every account gets a copy.
var goCacheSeed = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(filepath.Dir(srtPath), "gocache")
	cmd := exec.Command(goTool, "test", "-count=1", "./...")
	cmd.Dir, cmd.Env = "testdata/goproject", append(os.Environ(), goEnv(dir)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%q: %w\n%s", cmd.Args, err, text)
	}
	return dir, exec.Command("chmod", "-R", "a+rX", dir).Run()
})

func TestBuild_GoProject(t *testing.T) {
	if goTool == "" {
		t.Skipf("got no go command, since %s is set; want one", helpersVariable)
	}
	eachAlong(t, func(t *testing.T, b *box) {
		seed, err := goCacheSeed()
		b.must(err)
		b.copyTree("testdata/goproject", ".")
		b.host("cp", "-r", seed, b.abs(".cache")).ok()
		b.env = append(b.env, goEnv(b.abs(".cache"))...)
		c := cfg{aw: list{".", b.dir + "/tmp"}}
		b.run(c, goTool, "build", "-o", ".", "./...").ok()
		cmd := b.command(b.abs("count"))
		cmd.Stdin = strings.NewReader("x y x")
		b.finish(cmd).ok().prints("2 x\n1 y")
		b.run(c, goTool, "test", "./words").ok()
		b.run(c, goTool, "vet", "./words").ok()
	})
}

func TestNpm_InstallWithScript(t *testing.T) {
	need(t, "node", "npm")
	eachAlong(t, func(t *testing.T, b *box) {
		b.copyTree("testdata/npmpackage", "../package")
		b.file("../tarball/x", "")
		b.host2(b.home+"/package", "npm", "pack", "--silent", "--pack-destination", b.home+"/tarball").ok()
		server := httptest.NewServer(http.FileServer(http.Dir(b.home + "/tarball")))
		defer server.Close()
		b.env = append(b.env, "npm_config_cache="+b.work+"/.npm", "npm_config_audit=false", "npm_config_fund=false",
			"npm_config_update_notifier=false", "OUTSIDE="+b.home+"/escaped")
		for name, source := range map[string]string{"file": b.home + "/tarball/srt-sample-1.0.0.tgz",
			"http": strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + "/srt-sample-1.0.0.tgz"} {
			b.file(name+"/package.json", `{"name":"consumer","version":"1.0.0"}`)
			script := byProxy + "cd " + name + " && npm install --foreground-scripts " + source + " && node -p 'require(\"srt-sample\")(\"you\")' && " +
				"node_modules/.bin/srt-sample there"
			r := b.sh(cfg{aw: list{".", b.dir + "/tmp"}, allow: list{"localhost"}}, script).ok()
			if !strings.Contains(r.stdout, "hello you\nhello there\n") {
				t.Errorf("the package does not work: %v", r)
			}
			b.holds(name+"/node_modules/srt-sample/installed.txt", "by a script\n")
			b.holds(name+"/node_modules/srt-sample/refused.txt", "EROFS")
			b.absent("../escaped")
		}
	})
}

func TestPython_Devices(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		script := `
import sys
with open("/dev/shm/" + sys.argv[1], "w") as f: f.write("shared")
print(open("/dev/shm/" + sys.argv[1]).read())
print(repr(open("/dev/null").read()), open("/dev/null", "w").write("gone"))
print(open("/dev/zero", "rb").read(3), len(open("/dev/urandom", "rb").read(5)))
try: open("/dev/full", "wb", 0).write(b"x")
except OSError as e: print(e.errno)
try: open("/dev/tty")
except OSError as e: print("tty", e.errno)
from multiprocessing import Semaphore, Pool
print(Semaphore(1).acquire(), sum(Pool(2).map(abs, [-1, -2])))
`
		r := b.run(cfg{}, "python3", "-c", script, b.mark).ok()
		r.prints("shared\n'' 4\nb'\\x00\\x00\\x00' 5\n28\ntty 6\nTrue 3")
		b.absent("/dev/shm/" + b.mark)
	})
}

func TestStrace_Inside(t *testing.T) {
	need(t, "strace")
	eachAlong(t, func(t *testing.T, b *box) {
		b.run(cfg{}, "strace", "-f", "-e", "trace=execve", "true").ok().says("execve(", "exited with 0")
	})
}

func TestBubblewrap_Around(t *testing.T) {
	need(t, "bwrap")
	eachAlong(t, func(t *testing.T, b *box) {
		// A CI runner that is itself in a sandbox: srt comes up in it, or says why not and runs nothing.
		outer := []string{"bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--die-with-parent"}
		if text, err := exec.Command("bwrap", "--dev-bind", "/", "/", "true").CombinedOutput(); err != nil {
			t.Fatalf("bwrap itself fails: %v\n%s", err, text)
		}
		r := b.host(append(outer, b.srt(cfg{aw: list{"."}}, probePath, "create", "f", ";", "create", "../g")...)...)
		if r.status == 0 {
			if !strings.HasPrefix(r.stdout, "ok\n") || strings.HasSuffix(r.stdout, "ok\n") {
				t.Errorf("the rules do not hold: %v", r)
			}
		} else {
			r.exits(1).says("Error: ")
			b.absent("f")
		}
		b.absent("../g")
	})
}

package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// daemon is the ordinary account of the tests, as which everything runs that is no Go server of the test itself: sshd of an
// ordinary user needs no system account, and PostgreSQL refuses to be root.
func daemon(t *testing.T) stage.Account {
	t.Helper()
	accounts, err := stage.Accounts()
	must(t, err)
	return accounts[len(accounts)-1]
}

// own gives what lies at a path of the world to the account of the daemons.
func (w *world) own(t *testing.T, name string) {
	t.Helper()
	who := daemon(t)
	must(t, filepath.WalkDir(w.path(name), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, who.UID, who.GID)
	}))
}

// asDaemon prepares a command of the account of the daemons, in the directory of the world. It dies with the tests.
func (w *world) asDaemon(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = w.dir, []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + w.dir, "LANG=C.UTF-8", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if who := daemon(t); os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(who.UID), Gid: uint32(who.GID)}
	}
	return cmd
}

// start starts a server of the account of the daemons, waits until it answers, and ends it with the test.
func (w *world) start(t *testing.T, answers func() error, args ...string) {
	t.Helper()
	cmd := w.asDaemon(t, args...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &text, &text, stage.Patience
	var err error
	w.in(func() { err = cmd.Start() }) // by the thread that lives as long as the world, which its death signal asks for
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // a fast end for PostgreSQL, any end for the others
		select {
		case <-ended:
		case <-time.After(stage.Patience):
			_ = cmd.Process.Kill()
			t.Errorf("%q does not end\n%s", args, text.String())
			<-ended
		}
	})
	for deadline := time.Now().Add(stage.Patience); ; time.Sleep(10 * time.Millisecond) {
		if err = answers(); err == nil {
			return
		}
		select {
		case end := <-ended:
			ended <- end
			t.Fatalf("%q ended: %v\n%s", args, end, text.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q does not answer: %v", args, err)
		}
	}
}

// answersAt tells whether somebody listens at a Unix socket of the world.
func (w *world) answersAt(name string) func() error {
	return func() error {
		conn, err := net.Dial("unix", w.path(name))
		if err == nil {
			err = conn.Close()
		}
		return err
	}
}

const (
	postgresSocket = "postgres/.s.PGSQL.5432"
	redisSocket    = "redis/socket"
)

// servePostgres serves a database at a port of the servers, and at postgresSocket.
func (w *world) servePostgres(t *testing.T) {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
	if len(found) == 0 {
		t.Fatal("got no initdb in /usr/lib/postgresql, want it: build/clients.sh installs it")
	}
	bin := filepath.Dir(found[len(found)-1])
	must(t, os.Mkdir(w.path("postgres"), 0o755))
	w.own(t, "postgres")
	data := w.path("postgres/data")
	initdb := w.asDaemon(t, filepath.Join(bin, "initdb"), "--no-sync", "-A", "trust", "-U", "srt", "-D", data)
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	w.start(t, w.answersAt(postgresSocket), filepath.Join(bin, "postgres"), "-D", data, "-c", "listen_addresses=",
		"-c", "unix_socket_directories="+w.path("postgres"), "-c", "fsync=off", "-c", "shared_buffers=1MB")
	w.serveAt(t, postgresPort, w.relayTo(postgresSocket))
}

// serveRedis serves a store at a port of the servers, and at redisSocket.
func (w *world) serveRedis(t *testing.T) {
	t.Helper()
	must(t, os.Mkdir(w.path("redis"), 0o755))
	w.own(t, "redis")
	w.start(t, w.answersAt(redisSocket), "redis-server", "--port", "0", "--unixsocket", w.path(redisSocket), "--save", "",
		"--dir", w.path("redis"))
	w.serveAt(t, redisPort, w.relayTo(redisSocket))
}

// serveByProgram starts a program for every connection to a port of the servers, with the connection as its input and
// output, as inetd does.
func (w *world) serveByProgram(t *testing.T, port string, args ...string) {
	t.Helper()
	who := w.asDaemon(t, args...)
	w.serveAt(t, port, func(conn net.Conn) {
		defer conn.Close()
		file, err := conn.(*net.TCPConn).File()
		if err != nil {
			w.fault("%q: %v", args, err)
			return
		}
		defer file.Close()
		var text bytes.Buffer
		cmd := exec.Command(who.Path, args[1:]...)
		cmd.Dir, cmd.Env = who.Dir, who.Env
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who.SysProcAttr.Credential}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = file, file, &text
		err = cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) { // a client that leaves early makes it exit with another status
			w.fault("%q: %v\n%s", args, err, text.String())
		}
	})
}

// serveRsync serves a directory as the module "files".
func (w *world) serveRsync(t *testing.T) {
	t.Helper()
	w.write(t, "rsync/files/greeting", []byte(greeting+"\n"))
	w.write(t, "rsync/config", lines("use chroot = no", "[files]", "path = "+w.path("rsync/files"), "read only = yes"))
	w.own(t, "rsync")
	w.serveByProgram(t, rsyncPort, "rsync", "--daemon", "--config="+w.path("rsync/config"), ".")
}

// serveSSH serves the account of the daemons with sshd. What a client needs is in ssh/client: a configuration, the key of the
// server, and a key of its own, which each account has to copy.
func (w *world) serveSSH(t *testing.T) {
	t.Helper()
	const sshd = "/usr/sbin/sshd"
	if !exists(sshd) {
		t.Fatalf("got no %s, want it: build/clients.sh installs it", sshd)
	}
	u, err := user.LookupId(strconv.Itoa(daemon(t).UID))
	must(t, err)
	must(t, os.MkdirAll(w.path("ssh/client"), 0o755))
	for _, key := range []string{"ssh/server", "ssh/client/key"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", w.path(key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	public, err := os.ReadFile(w.path("ssh/server.pub"))
	must(t, err)
	w.write(t, "ssh/client/known", append([]byte("the-server "), public...))
	w.write(t, "ssh/config", lines("HostKey "+w.path("ssh/server"), "AuthorizedKeysFile "+w.path("ssh/client/key.pub"),
		"PidFile none", "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"Subsystem sftp internal-sftp"))
	w.write(t, "ssh/client/config", lines("User "+u.Username, "HostKeyAlias the-server", "UserKnownHostsFile "+w.path("ssh/client/known"),
		"GlobalKnownHostsFile none", "StrictHostKeyChecking yes", "IdentitiesOnly yes", "IdentityFile ${HOME}/key", "BatchMode yes",
		"LogLevel ERROR"))
	w.own(t, "ssh")
	must(t, os.Chmod(w.path("ssh/client/key"), 0o644)) // a secret of this test only, which both accounts copy
	w.serveByProgram(t, sshPort, sshd, "-i", "-e", "-f", w.path("ssh/config"))
}

// sshKey is the private key that each account needs as a file of its own.
func (w *world) sshKey(s *stage.Stage) {
	s.T.Helper()
	key, err := os.ReadFile(w.path("ssh/client/key"))
	s.Must(err)
	path := filepath.Join(s.Home, "key")
	s.File(path, string(key))
	s.Must(os.Chmod(path, 0o600))
}

// build compiles what the tests run inside: the Go program of this package, and the Java programs.
func (w *world) build(t *testing.T) {
	t.Helper()
	goget := exec.Command("go", "build", "-o", w.path("goget"), "./internal/goget")
	goget.Env = append(os.Environ(), "CGO_ENABLED=0")
	for _, cmd := range []*exec.Cmd{goget, exec.Command("javac", "--release", "11", "-d", w.path("java"), "testdata/Get.java", "testdata/Send.java")} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
		}
	}
	must(t, os.Chmod(w.path("goget"), 0o755))
	for _, name := range []string{"get.js", "get.py"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		must(t, err)
		w.write(t, name, data)
	}
	if out, err := exec.Command("chmod", "-R", "a+rX", w.path("java")).CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("chmod: %w: %s", err, out))
	}
}

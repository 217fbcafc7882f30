package escape

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// company writes a certificate authority into the world, as company/ca.pem and company/ca.key, and gives its key and a line of
// the file that holds it.
func (w *world) company() (*ecdsa.PrivateKey, string) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.must(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "company"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	w.must(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	w.must(err)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	w.write("company/ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	w.write("company/ca.key", text)
	return key, strings.Split(text, "\n")[1]
}

// companys are settings that terminate TLS with the authority of company.
func (w *world) companys() map[string]any {
	return map[string]any{"tlsTerminate": map[string]any{"caCertPath": w.dir + "/company/ca.pem", "caKeyPath": w.dir + "/company/ca.key"}}
}

// everyName reads a file by every name and way there is, inside: $D is its directory and $F its name in it.
const everyName = `
cat $D/$F; cat < $D/$F; cat /proc/self/root/$D/$F /proc/1/root/$D/$F /proc/$$/cwd/../../$D/$F; cat $D/../$(basename $D)/./$F
ln $D/$F hard && cat hard; ln -s $D/$F soft && cat soft; ln -s $D dir && cat dir/$F; cp -a $D copy && cat copy/$F; cp --reflink=auto $D/$F c2 && cat c2
mv $D/$F moved && cat moved; mv $D $D.away && cat $D.away/$F; mv $D.away $D; tar cf - $D; dd if=$D/$F; grep -r . $D
(exec 3< $D/$F && cat <&3); (exec 4< $D; cat /proc/self/fd/4/$F); (cd $D && cat $F ./$F)
mkdir m; mount --bind $D m && cat m/$F; mount -t overlay -o lowerdir=$D:/ o m && cat m/$F
unshare -Urm sh -c 'mount --bind $D m; cat m/$F; umount $D/$F; umount -l $D/$F; umount -l $D; cat $D/$F'
unshare -rm sh -c 'umount -l $D/$F; cat $D/$F'; umount $D/$F; umount -l $D; cat $D/$F
python3 - <<'END'
import os, ctypes
D, F, libc = os.environ["D"], os.environ["F"], ctypes.CDLL(None)
def show(f):
    try: print(os.read(f(), 65536).decode(errors="replace"))
    except Exception as e: print(e)
show(lambda: os.open(F, os.O_RDONLY, dir_fd=os.open(D, os.O_PATH)))
show(lambda: os.open("/proc/self/fd/%d" % os.open(D + "/" + F, os.O_PATH), os.O_RDONLY))
show(lambda: os.open("/proc/self/fd/%d/%s" % (os.open(D, os.O_PATH), F), os.O_RDONLY))
show(lambda: os.open("/" + D + "/.//" + F, os.O_RDONLY | os.O_NOFOLLOW | os.O_NOATIME))
show(lambda: libc.syscall(428, -100, (D + "/" + F).encode(), 1))
show(lambda: os.open(F, os.O_RDONLY, dir_fd=libc.syscall(428, -100, D.encode(), 0x8001)))
for pid in os.listdir("/proc"):
    if not pid.isdigit() or int(pid) in (os.getpid(), os.getppid()): continue
    try:
        m = open("/proc/" + pid + "/mem", "rb", 0)
        for line in open("/proc/" + pid + "/maps"):
            a, b = (int(x, 16) for x in line.split()[0].split("-"))
            if b - a < 1 << 28 and " r" in line and "[v" not in line:
                try: m.seek(a); open("loot-" + pid, "ab").write(m.read(b - a))
                except OSError: pass
    except OSError as e: print(pid, e)
END
for f in /proc/[0-9]*/fd/* /proc/[0-9]*/map_files/* /proc/[0-9]*/task/*/fd/*; do timeout 1 head -c 100000 $f </dev/null; done
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; chmod 0666 $D/$F; cat $D/$F; rm -f $D/$F; cat $D/$F`

// unread wants that a file of the world is read by no name inside, that no file of what the command may write holds its text
// afterwards, and that it is what it was. The text would be read without a sandbox.
func (w *world) unread(dir, file, text string) {
	w.t.Helper()
	w.env = append(w.env, "D="+w.dir+"/"+dir, "F="+file)
	if got := w.outside("cat $D/$F").out; !strings.Contains(got, text) {
		w.t.Fatalf("the attacker cannot read %q outside either", got)
	}
	before := w.read(dir + "/" + file)
	o := w.sh("{ " + everyName + "\n} > got 2>&1; true")
	if len(w.read("work/got")) < 1000 {
		w.t.Fatalf("the attack stored nothing: %q%s", w.read("work/got"), o.err)
	}
	for name, is := range w.snapshot("work") {
		if b, err := os.ReadFile(w.dir + "/" + name); err == nil && bytes.Contains(b, []byte(text)) {
			w.t.Errorf("ESCAPE: %s holds the text: %s", name, is)
		}
	}
	if got := w.read(dir + "/" + file); got != before {
		w.t.Errorf("ESCAPE: %s/%s is now %.300q", dir, file, got)
	}
}

// TestEscape_092_AuthorityKey: TLS-9. The key of a company's authority is read by no name, however wide the settings are, and is in
// the memory of no process but srt's own.
func TestEscape_092_AuthorityKey(t *testing.T) {
	for name, change := range map[string]func(*world){
		"nothing more":          func(*world) {},
		"its directory written": func(w *world) { w.settings.AllowWrite = append(w.settings.AllowWrite, w.dir+"/company") },
		"everything written":    func(w *world) { w.settings.AllowWrite = append(w.settings.AllowWrite, "/") },
		"read again": func(w *world) {
			w.settings.DenyRead, w.settings.AllowRead = []string{w.dir + "/company"}, []string{w.dir + "/company/ca.key"}
		},
		"no rules": func(w *world) {
			w.settings.Top = map[string]any{"filesystem": map[string]any{
				"disabled": true, "denyRead": list(nil), "allowWrite": list(nil), "denyWrite": list(nil)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				_, line := w.company()
				w.settings.Network = w.companys()
				change(w)
				w.unread("company", "ca.key", line)
			})
		})
	}
}

// TestEscape_092_AuthorityKeyInMemory: TLS-9, CRED-35. pid 1 of a sandbox and the helpers are copies of srt, and have nothing of a
// key, as its file has it or as it is computed with. Only root can look.
func TestEscape_092_AuthorityKeyInMemory(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skipf("needs uid 0, have %d; the run as root covers it", os.Getuid())
	}
	each(t, func(t *testing.T, w *world) {
		key, line := w.company()
		w.settings.Network = w.companys()
		w.settings.DenyWrite = []string{"never/made"} // absent: judged by helpers
		scalar, err := key.Bytes()
		w.must(err)
		words := slices.Clone(scalar)
		slices.Reverse(words)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		cmd := w.srt(ctx, "sh", "-c", "mkdir never; echo INSIDE; exec sleep 1000")
		out, err := cmd.StdoutPipe()
		w.must(err)
		w.must(cmd.Start())
		if _, err := out.Read(make([]byte, 7)); err != nil {
			t.Fatal(err)
		}
		texts := [][]byte{[]byte(line), scalar, words}
		if found := inMemory(cmd.Process.Pid, texts); found == 0 {
			t.Error("srt itself does not hold the key: the search finds nothing")
		}
		pids := descendants(cmd.Process.Pid)
		if len(pids) < 2 {
			t.Errorf("only %d processes", len(pids))
		}
		for _, pid := range pids {
			if n := inMemory(pid, texts); n > 0 {
				comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
				t.Errorf("%d (%s) holds the key %d times", pid, bytes.TrimSpace(comm), n)
			}
		}
		cancel()
		_ = cmd.Wait()
	})
}

// inMemory counts how often texts are in the readable memory of a process.
func inMemory(pid int, texts [][]byte) (count int) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return 0
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var start, end int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &start, &end, &mode); n != 3 || mode[0] != 'r' {
			continue
		}
		for buf := make([]byte, 1<<20); start < end; start += int64(len(buf)) {
			n, _ := mem.ReadAt(buf[:min(int64(len(buf)), end-start)], start)
			for _, text := range texts {
				count += bytes.Count(buf[:n], text)
			}
		}
	}
	return count
}

// TestEscape_092_Bundle: TLS-9. What commands are told to trust stays what it is, whatever they may write.
func TestEscape_092_Bundle(t *testing.T) {
	const attack = `
B=$SSL_CERT_FILE; P=${B%/*}; cat $B > first; cp first before
{ echo pwned >> $B; echo pwned > $B; ln $B hard && echo pwned >> hard; ln -f before $B; mv $B $P/b; mv $P $P.away; rm -rf $P; mv -T $P.away $P; cp before $B; truncate -s 0 $B; chmod 0666 $B
echo pwned > $P/new; ln -s /dev/null $P/l; mkdir $P/d && echo pwned > $P/d/x && chmod 0 $P/d; mv -T before $B; (exec 3<> $B && echo pwned >&3); echo pwned > /proc/self/root/$B; dd if=/dev/zero of=$B count=1
mkdir m; mount --bind m $P; mount --bind before $B; umount $B; umount -l $P; echo pwned >> $B; rmdir $P; mv ${P%/*} ${P%/*}.away
unshare -Urm sh -c "mount -o remount,rw $P; echo pwned >> $B; umount -l $B; umount -l $P; echo pwned >> $B"
python3 -c "
import os
for how in (os.O_WRONLY | os.O_TRUNC, os.O_RDWR, os.O_WRONLY | os.O_APPEND):
    for at in (lambda: os.open(os.environ['SSL_CERT_FILE'], how), lambda: os.open('/proc/self/fd/%d' % os.open(os.environ['SSL_CERT_FILE'], os.O_RDONLY), how)):
        try: os.write(at(), b'pwned')
        except OSError as e: print(e)
"; } > got 2>&1
cat $B > after`
	for name, write := range map[string][]string{"nothing more": nil, "the directory for temporary files": {"/tmp"}, "everything": {"/"}} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.must(mkdirFor(w, w.dir+"/tmp"))
				for _, own := range []bool{false, true} {
					w.settings.AllowWrite = append([]string{"."}, write...)
					if own {
						w.env = append(w.env, "TMPDIR="+w.dir+"/tmp")
						w.settings.AllowWrite = append(w.settings.AllowWrite, w.dir+"/tmp")
					}
					w.settings.Network = map[string]any{"tlsTerminate": map[string]any{}}
					o := w.sh(attack)
					if left, _ := filepath.Glob(w.dir + "/tmp/srt-ca-*"); len(left) > 0 { // TLS-8
						t.Errorf("left behind: %q\n%s", left, o.err)
					}
					before, after := w.read("work/first"), w.read("work/after")
					if before != after || !strings.Contains(before, "BEGIN CERTIFICATE") || strings.Contains(after, "pwned") {
						t.Errorf("ESCAPE: the bundle had %d bytes, and then %d\n%s%s", len(before), len(after), w.read("work/got"), o.err)
					}
				}
			})
		})
	}
}

// TestEscape_092_MaskedFile: CRED-7, CRED-9. A masked file, and one that cannot be masked, is read by no name.
func TestEscape_092_MaskedFile(t *testing.T) {
	const secret = "top-secret-value"
	for name, text := range map[string]string{"text": secret + "\n", "not text": secret + "\xff\xfe\n"} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.write("keys/token", text)
				w.settings.Domains = []string{"a.example"}
				w.settings.AllowWrite = append(w.settings.AllowWrite, w.dir+"/keys")
				w.settings.Network = map[string]any{"tlsTerminate": map[string]any{}}
				w.settings.Top = map[string]any{"credentials": map[string]any{"files": []any{map[string]any{"path": w.dir + "/keys/token", "mode": "mask"}}}}
				w.unread("keys", "token", secret)
			})
		})
	}
}

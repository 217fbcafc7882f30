package policy

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestNET91SSHTarget(t *testing.T) {
	for _, test := range []struct {
		name, host, port, want string
		err                    error
	}{
		{"name", "github.com", "22", "github.com:22", nil},
		{"all good characters", "A-z_0.9", "65535", "A-z_0.9:65535", nil},
		{"IPv4", "10.1.1.1", "2222", "10.1.1.1:2222", nil},
		{"IPv6 gets brackets", "2001:db8::1", "22", "[2001:db8::1]:22", nil},
		{"empty host", "", "22", "", ErrSSHHost},
		{"shell text", "$(id)", "22", "", ErrSSHHost},
		{"line break", "a\r\nX: y", "22", "", ErrSSHHost},
		{"space", "a b", "22", "", ErrSSHHost},
		{"zone", "fe80::1%eth0", "22", "", ErrSSHHost},
		{"beyond ASCII", "münchen.de", "22", "", ErrSSHHost},
		{"brackets", "[::1]", "22", "", ErrSSHHost},
		{"a colon that is no IPv6", "a.test:80", "22", "", ErrSSHHost},
		{"empty port", "a.test", "", "", ErrSSHPort},
		{"name of a port", "a.test", "ssh", "", ErrSSHPort},
		{"sign", "a.test", "+22", "", ErrSSHPort},
		{"port 0", "a.test", "0", "", ErrSSHPort},
		{"port too large", "a.test", "65536", "", ErrSSHPort},
		{"line break in the port", "a.test", "22\n", "", ErrSSHPort},
		{"host is judged first", "a b", "x", "", ErrSSHHost},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := SSHTarget(test.host, test.port)
			if got != test.want || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Errorf("SSHTarget(%q, %q) = %q, %v; want %q, %v", test.host, test.port, got, err, test.want, test.err)
			}
		})
	}
	if ErrSSHHost.Error() != "sandbox proxy: bad host" || ErrSSHPort.Error() != "sandbox proxy: bad port" {
		t.Error("the texts are part of the interface")
	}
}

func TestNET91SSHCommandText(t *testing.T) {
	want := "ssh -o ControlMaster=no -o ControlPath=none -o ProxyCommand='/usr/bin/srt __ssh-connect %h %p'"
	if got := SSHCommand("/usr/bin/srt"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// hardPaths are names of directories in which the helper may be installed.
var hardPaths = []string{
	"plain", "with space", "it's", `say "hi"`, "$HOME $(id) `id`", "100% %h %%p", `back\slash \' \\`, "a;b&c|d<e>f", "~u #x !y",
	"=eq", "{a,b}[c]*?(d)", "tab\there", "line\nbreak", "ümlaut ✓", "-o x", "$'x'", "trailing ", `\`, "\r", "%", "'", "\n", "''\n''%%",
}

// install puts a helper that reports its arguments into a directory of a hard name and returns its path and the report.
func install(t *testing.T, name string) (helper, report string) {
	t.Helper()
	root := t.TempDir()
	helper = filepath.Join(root, name, "srt helper")
	report = filepath.Join(root, "report")
	if err := os.MkdirAll(filepath.Dir(helper), 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nfor a in \"$@\"; do echo \"<$a>\"; done >\"$REPORT\"\n"
	if err := os.WriteFile(helper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return helper, report
}

// runAsGit runs a GIT_SSH_COMMAND the way git does: by a shell, with the arguments of ssh appended (git's
// prepare_shell_cmd). login is the shell that ssh hands its ProxyCommand to.
func runAsGit(t *testing.T, command, login, path, report string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", command+` "$@"`, command, "-o", "StrictHostKeyChecking=no", "-F", "none", "-p", "2222", "git@srt.test", "true")
	cmd.Env = []string{"PATH=" + path, "SHELL=" + login, "REPORT=" + report, "HOME=" + t.TempDir()}
	out, _ := cmd.CombinedOutput() // ssh fails: the helper is no server
	got, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("the helper did not run: %v\n%s", err, out)
	}
	return string(got)
}

// fakeSSH does with its ProxyCommand option what ssh does: %-expansion, then "exec ..." by the login shell.
const fakeSSH = `#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	-o) case $2 in ProxyCommand=*) pc=${2#ProxyCommand=} ;; esac; shift ;;
	esac
	shift
done
pc=$(printf '%s.' "exec $pc" | sed 's/%%/@pct@/g; s/%h/srt.test/g; s/%p/2222/g; s/@pct@/%/g')
exec "$SHELL" -c "${pc%.}"
`

func TestNET91SSHCommandQuoting(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("got windows, want a system whose git runs ssh through sh: these paths are no names there")
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(fakeSSH), 0o755); err != nil {
		t.Fatal(err)
	}
	const want = "<__ssh-connect>\n<srt.test>\n<2222>\n"
	system := os.Getenv("PATH")
	// Every shell that is here may be somebody's login shell; sh is always there.
	for _, shell := range []string{"sh", "bash", "dash", "zsh", "fish", "csh", "tcsh"} {
		login, err := exec.LookPath(shell)
		if err != nil && shell != "sh" {
			continue
		}
		for _, name := range hardPaths {
			if strings.HasSuffix(shell, "csh") && strings.Contains(name, "\n") {
				continue // csh cannot hold a newline in quotes
			}
			t.Run(shell+"/"+name, func(t *testing.T) {
				helper, report := install(t, name)
				if got := runAsGit(t, SSHCommand(helper), login, bin+":"+system, report); got != want {
					t.Errorf("%q by a model of ssh: helper called with %q", helper, got)
				}
			})
		}
	}
}

func TestNET91SSHCommandWithOpenSSH(t *testing.T) {
	system := os.Getenv("PATH")
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skipf("got no ssh in PATH=%s, want OpenSSH; the model of it in TestNET91SSHCommandQuoting has run", system)
	}
	const want = "<__ssh-connect>\n<srt.test>\n<2222>\n"
	for _, name := range hardPaths {
		t.Run(name, func(t *testing.T) {
			helper, report := install(t, name)
			if got := runAsGit(t, SSHCommand(helper), "/bin/sh", system, report); got != want {
				t.Errorf("%q: helper called with %q", helper, got)
			}
		})
	}
}

func TestNET93GitReadsWhatIsSet(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("got no git, want one to read the variables; their exact text is tested by TestEnviron")
	}
	in := sandboxed("PATH="+os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CONFIG_PARAMETERS='user.name=it'\\''s me' 'http.proxyauthmethod=ntlm'",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.email", "GIT_CONFIG_VALUE_0=a@b.test")
	in.SafeDirectories = []string{"/with space/", "/s"}
	for key, want := range map[string]string{
		"user.name":            "it's me\n",
		"user.email":           "a@b.test\n",
		"http.proxyAuthMethod": "basic\n",
		"safe.directory":       "/with space\n/with space/*\n/s\n/s/*\n",
	} {
		how := "--get"
		if key == "safe.directory" {
			how = "--get-all"
		}
		cmd := exec.Command("git", "config", how, key)
		cmd.Env, cmd.Dir = Environ(in), t.TempDir()
		if got, err := cmd.CombinedOutput(); err != nil || string(got) != want {
			t.Errorf("git config %s %s: %q, %v; want %q", how, key, got, err, want)
		}
	}
}

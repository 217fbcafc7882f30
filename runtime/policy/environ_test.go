package policy

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

const testToken = "0123456789abcdef0123456789abcdef"

// sandboxed is the input for a command in a restricted network.
func sandboxed(base ...string) EnvironInput {
	return EnvironInput{
		Base: base, HTTPPort: 3128, SOCKSPort: 1080, Token: testToken, User: "srt.YS9i+w==", Restricted: true,
		TMPDIR: "/tmp/claude", SSHCommand: "ssh -x", PWD: "/work",
	}
}

func TestEnvironTable(t *testing.T) {
	const (
		u = "http://srt.YS9i%2Bw%3D%3D:" + testToken + "@localhost:3128"
		k = "socks5h://srt.YS9i%2Bw%3D%3D:" + testToken + "@localhost:1080"
		n = "localhost,127.0.0.1,::1,169.254.0.0/16,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16"
	)
	want := []string{
		"HOME=/home/u", "PATH=/bin",
		"ALL_PROXY=" + u, "CLOUDSDK_PROXY_ADDRESS=localhost", "CLOUDSDK_PROXY_PASSWORD=" + testToken,
		"CLOUDSDK_PROXY_PORT=3128", "CLOUDSDK_PROXY_TYPE=http", "CLOUDSDK_PROXY_USERNAME=srt.YS9i+w==",
		"DOCKER_HTTPS_PROXY=" + u, "DOCKER_HTTP_PROXY=" + u, "FTP_PROXY=" + k,
		"GIT_CONFIG_PARAMETERS='http.proxyAuthMethod=basic'", "GIT_SSH_COMMAND=ssh -x", "GRPC_PROXY=" + u,
		"HTTPS_PROXY=" + u, "HTTP_PROXY=" + u, "NO_PROXY=" + n, "PWD=/work", "RSYNC_PROXY=localhost:1080",
		"SANDBOX_RUNTIME=1", "TMPDIR=/tmp/claude", "all_proxy=" + u, "ftp_proxy=" + k, "grpc_proxy=" + u,
		"http_proxy=" + u, "https_proxy=" + u, "no_proxy=" + n,
	}
	if diff := cmp.Diff(want, Environ(sandboxed("HOME=/home/u", "PATH=/bin"))); diff != "" {
		t.Errorf("NET-90 (-want +got):\n%s", diff)
	}
}

// get returns the value of a variable in an environment, and whether it is there.
func get(env []string, name string) (string, bool) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func TestEnviron(t *testing.T) {
	const unset = "\x00" // stands for a variable that must not be there
	type change = func(*EnvironInput)
	open := func(in *EnvironInput) { in.Restricted = false }
	noToken := func(in *EnvironInput) { in.Token = "" }
	debug := func(in *EnvironInput) { in.Debug = true }
	deny := func(names ...string) change { return func(in *EnvironInput) { in.Unset = names } }
	for _, test := range []struct {
		name   string
		base   []string
		change change
		want   map[string]string
	}{
		{"NET-90 generated replaces inherited", []string{"HTTP_PROXY=http://corp:pw@up:1", "no_proxy=*", "TMPDIR=/var/t", "PWD=/x", "GIT_SSH_COMMAND=evil", "SANDBOX_RUNTIME=0"}, nil,
			map[string]string{"no_proxy": noProxy, "TMPDIR": "/tmp/claude", "PWD": "/work", "GIT_SSH_COMMAND": "ssh -x", "SANDBOX_RUNTIME": "1"}},
		{"NET-90 generated wins over a denied name", nil, deny("HTTP_PROXY", "TMPDIR", "RSYNC_PROXY"),
			map[string]string{"TMPDIR": "/tmp/claude", "RSYNC_PROXY": "localhost:1080"}},
		{"NET-90 other variables pass", []string{"A=1", "CC=x=y", "EMPTY=", "LC_ALL=C"}, nil,
			map[string]string{"A": "1", "CC": "x=y", "EMPTY": "", "LC_ALL": "C"}},
		{"NET-90 denied variables do not", []string{"SECRET=s", "SECRETS=t", "secret=u"}, deny("SECRET"),
			map[string]string{"SECRET": unset, "SECRETS": "t", "secret": "u"}},
		{"denied however often it is there", []string{"SECRET=s", "A=1", "SECRET=t"}, deny("SECRET"),
			map[string]string{"SECRET": unset, "A": "1"}},
		{"NET-18 no token, no credentials", nil, noToken,
			map[string]string{"HTTP_PROXY": "http://localhost:3128", "FTP_PROXY": "socks5h://localhost:1080", "CLOUDSDK_PROXY_TYPE": "http",
				"CLOUDSDK_PROXY_USERNAME": unset, "CLOUDSDK_PROXY_PASSWORD": unset, "GIT_CONFIG_PARAMETERS": unset}},
		{"no inherited proxy password stays", []string{"CLOUDSDK_PROXY_PASSWORD=corp", "CLOUDSDK_PROXY_USERNAME=me", "GRPC_PROXY=http://a:b@c"}, noToken,
			map[string]string{"CLOUDSDK_PROXY_PASSWORD": unset, "CLOUDSDK_PROXY_USERNAME": unset, "GRPC_PROXY": "http://localhost:3128"}},
		{"NET-2 open network", []string{"HTTP_PROXY=http://up:1"}, open,
			map[string]string{"HTTP_PROXY": "http://up:1", "ALL_PROXY": unset, "NO_PROXY": unset, "SANDBOX_RUNTIME": unset, "GIT_SSH_COMMAND": unset,
				"GIT_CONFIG_PARAMETERS": unset, "RSYNC_PROXY": unset, "CLOUDSDK_PROXY_PORT": unset, "TMPDIR": "/tmp/claude"}},
		{"CLI-52 filesystem disabled", []string{"TMPDIR=/var/t"}, func(in *EnvironInput) { in.TMPDIR = "" }, map[string]string{"TMPDIR": "/var/t"}},
		{"CLI-2 debug", nil, debug, map[string]string{"SRT_DEBUG": "true"}},
		{"CLI-2 debug already set", []string{"SRT_DEBUG=timing"}, debug, map[string]string{"SRT_DEBUG": "timing"}},
		{"CLI-11 debug set to nothing is not set", []string{"SRT_DEBUG="}, debug, map[string]string{"SRT_DEBUG": "true"}},
		{"CLI-2 no debug", nil, nil, map[string]string{"SRT_DEBUG": unset}},
		{"git parameters are appended to", []string{"GIT_CONFIG_PARAMETERS='a.b=c d'"}, nil,
			map[string]string{"GIT_CONFIG_PARAMETERS": "'a.b=c d' 'http.proxyAuthMethod=basic'"}},
		{"git parameters of a sandbox around", []string{"GIT_CONFIG_PARAMETERS='a.b=c' 'http.proxyAuthMethod=basic'"}, nil,
			map[string]string{"GIT_CONFIG_PARAMETERS": "'a.b=c' 'http.proxyAuthMethod=basic'"}},
		{"denied git parameters are not", []string{"GIT_CONFIG_PARAMETERS='http.extraHeader=secret'"}, deny("GIT_CONFIG_PARAMETERS"),
			map[string]string{"GIT_CONFIG_PARAMETERS": "'http.proxyAuthMethod=basic'"}},
		{"git parameters pass without a token", []string{"GIT_CONFIG_PARAMETERS='a.b=c'"}, noToken, map[string]string{"GIT_CONFIG_PARAMETERS": "'a.b=c'"}},
		{"JAVA_TOOL_OPTIONS passes", []string{"JAVA_TOOL_OPTIONS=-Dx=y"}, nil, map[string]string{"JAVA_TOOL_OPTIONS": "-Dx=y"}},
		{"JAVA_TOOL_OPTIONS is not made", nil, nil, map[string]string{"JAVA_TOOL_OPTIONS": unset}},
		{"no host port is told", nil, nil, map[string]string{"CLAUDE_CODE_HOST_HTTP_PROXY_PORT": unset, "CLAUDE_CODE_HOST_SOCKS_PROXY_PORT": unset}},
		{"no ssh command", []string{"GIT_SSH_COMMAND=mine"}, func(in *EnvironInput) { in.SSHCommand = "" }, map[string]string{"GIT_SSH_COMMAND": "mine"}},
		{"MAC-12 SOCKS only", []string{"HTTP_PROXY=http://up:1", "CLOUDSDK_PROXY_PORT=1"}, func(in *EnvironInput) { in.HTTPPort = 0; in.Token = "" },
			map[string]string{"HTTP_PROXY": unset, "https_proxy": unset, "ALL_PROXY": "socks5h://localhost:1080", "FTP_PROXY": "socks5h://localhost:1080",
				"DOCKER_HTTP_PROXY": "socks5h://localhost:1080", "CLOUDSDK_PROXY_PORT": unset, "RSYNC_PROXY": "localhost:1080"}},
		{"MAC-12 HTTP only", []string{"FTP_PROXY=x", "RSYNC_PROXY=y"}, func(in *EnvironInput) { in.SOCKSPort = 0; in.Token = "" },
			map[string]string{"FTP_PROXY": unset, "ftp_proxy": unset, "RSYNC_PROXY": unset, "ALL_PROXY": "http://localhost:3128", "NO_PROXY": noProxy}},
		{"NET-20 never an empty user", nil, func(in *EnvironInput) { in.User = "" },
			map[string]string{"HTTP_PROXY": "http://srt:" + testToken + "@localhost:3128", "CLOUDSDK_PROXY_USERNAME": "srt"}},
		{"NET-93 pairs", nil, func(in *EnvironInput) { in.SafeDirectories = []string{"/r/", "/r", "", "/", "/s"} },
			map[string]string{"GIT_CONFIG_COUNT": "6", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "/r", "GIT_CONFIG_VALUE_1": "/r/*",
				"GIT_CONFIG_VALUE_2": "/", "GIT_CONFIG_VALUE_3": "/*", "GIT_CONFIG_VALUE_4": "/s", "GIT_CONFIG_KEY_5": "safe.directory", "GIT_CONFIG_VALUE_5": "/s/*", "GIT_CONFIG_KEY_6": unset}},
		{"NET-93 continues a count", []string{"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_1=a.b", "GIT_CONFIG_VALUE_1=c", "GIT_CONFIG_VALUE_2=stale"},
			func(in *EnvironInput) { in.SafeDirectories = []string{"/r/"} },
			map[string]string{"GIT_CONFIG_COUNT": "4", "GIT_CONFIG_KEY_1": "a.b", "GIT_CONFIG_VALUE_1": "c", "GIT_CONFIG_KEY_2": "safe.directory", "GIT_CONFIG_VALUE_2": "/r", "GIT_CONFIG_VALUE_3": "/r/*"}},
		{"NET-93 inherited 0", []string{"GIT_CONFIG_COUNT=0"}, func(in *EnvironInput) { in.SafeDirectories = []string{"/r"} },
			map[string]string{"GIT_CONFIG_COUNT": "0", "GIT_CONFIG_KEY_0": unset}},
		{"NET-93 denied count is unset", []string{"GIT_CONFIG_COUNT=7"}, func(in *EnvironInput) {
			in.SafeDirectories, in.Unset = []string{"/r"}, []string{"GIT_CONFIG_COUNT"}
		}, map[string]string{"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_VALUE_0": "/r"}},
		{"NET-93 a count that git refuses", []string{"GIT_CONFIG_COUNT=-1"}, func(in *EnvironInput) { in.SafeDirectories = []string{"/r"} },
			map[string]string{"GIT_CONFIG_COUNT": "-1", "GIT_CONFIG_KEY_0": unset}},
		{"NET-93 a count out of range", []string{"GIT_CONFIG_COUNT=99999999999999999999"}, func(in *EnvironInput) { in.SafeDirectories = []string{"/r"} },
			map[string]string{"GIT_CONFIG_COUNT": "99999999999999999999", "GIT_CONFIG_KEY_0": unset}},
		{"NET-93 more than git takes", []string{"GIT_CONFIG_COUNT=2147483647"}, func(in *EnvironInput) { in.SafeDirectories = []string{"/r"} },
			map[string]string{"GIT_CONFIG_COUNT": "2147483647", "GIT_CONFIG_KEY_2147483647": unset}},
		{"NET-93 eight directories", nil, func(in *EnvironInput) { in.SafeDirectories = strings.Split("/1 /2 /3 /4 /5 /6 /7 /8 /8/", " ") },
			map[string]string{"GIT_CONFIG_COUNT": "16", "GIT_CONFIG_VALUE_15": "/8/*"}},
		{"NET-93 nine directories", nil, func(in *EnvironInput) { in.SafeDirectories = strings.Split("/1 /2 /3 /4 /5 /6 /7 /8 /9", " ") },
			map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_VALUE_0": "*", "GIT_CONFIG_KEY_1": unset}},
		{"NET-93 in an open network too", nil, func(in *EnvironInput) { in.Restricted, in.SafeDirectories = false, []string{"/r"} },
			map[string]string{"GIT_CONFIG_COUNT": "2"}},
		{"NET-93 a name with a NUL byte", nil, func(in *EnvironInput) { in.SafeDirectories = []string{"/a\x00b", "/r"} },
			map[string]string{"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_VALUE_0": "/r"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := sandboxed(test.base...)
			if test.change != nil {
				test.change(&in)
			}
			env := Environ(in)
			for name, want := range test.want {
				if got, ok := get(env, name); ok != (want != unset) || ok && got != want {
					t.Errorf("%s: %q (set: %v), want %q", name, got, ok, want)
				}
			}
		})
	}
}

func TestEnvironOrderAndRepeats(t *testing.T) {
	got := Environ(EnvironInput{
		Base:  []string{"Z=1", "A=1", "PWD=/old", "Z=2", "noequals", "=C:=C:\\", "", "NUL=a\x00b", "B=3"},
		PWD:   "/new",
		Debug: true,
	})
	want := []string{"A=1", "Z=2", "B=3", "PWD=/new", "SRT_DEBUG=true"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNET19ProxyUser(t *testing.T) {
	for _, test := range []struct{ name, key, want string }{
		{"no key", "", "srt"},
		{"short", "id-1", "srt.aWQtMQ=="},
		{"padding and both special digits", "\u00fb\u00ef\u00ff>", "srt." + base64.StdEncoding.EncodeToString([]byte("\u00fb\u00ef\u00ff>"))},
		{"VIO-2 cut at 100", strings.Repeat("a", 101), "srt." + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", 100)))},
		{"VIO-2 halved pair", strings.Repeat("a", 99) + "😀b", "srt." + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", 99)+"\uFFFD"))},
		{"VIO-2 pair that fits", strings.Repeat("a", 98) + "😀b", "srt." + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", 98)+"😀"))},
		{"VIO-2 no UTF-8", "a\xff\xfe", "srt." + base64.StdEncoding.EncodeToString([]byte("a\uFFFD\uFFFD"))},
		{"NET-19 252 digits are too many", strings.Repeat("é", 94) + "a", "srt"},
		{"NET-19 248 digits fit", strings.Repeat("é", 93), "srt." + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("é", 93)))},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ProxyUser(test.key); got != test.want {
				t.Errorf("ProxyUser(%q) = %q, want %q", test.key, got, test.want)
			}
		})
	}
}

func TestCLI52TempDir(t *testing.T) {
	for _, test := range []struct {
		name string
		base []string
		want string
	}{
		{"default", []string{"TMPDIR=/var/t"}, "/tmp/claude"},
		{"first", []string{"CLAUDE_TMPDIR=/b", "CLAUDE_CODE_TMPDIR=/a"}, "/a"},
		{"second", []string{"CLAUDE_TMPDIR=/b"}, "/b"},
		{"MAC-10 empty counts as unset", []string{"CLAUDE_CODE_TMPDIR=", "CLAUDE_TMPDIR=/b"}, "/b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := TempDir(test.base); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzEnviron(f *testing.F) {
	f.Add("A=1\nA=2\nHTTP_PROXY=x", "A", "key", "/r\n/s", "/tmp/t", true)
	f.Add("GIT_CONFIG_COUNT=3\nGIT_CONFIG_PARAMETERS='a.b=c'", "GIT_CONFIG_COUNT", "", "", "", false)
	f.Add("=x\nPWD\n\x00=1\nno_proxy=*", "", "😀", "/", "/t", true)
	f.Fuzz(func(t *testing.T, base, unset, key, safe, dir string, restricted bool) {
		if strings.Contains(base+unset+safe+dir, testToken) {
			t.Skip("the input itself holds the token")
		}
		in := EnvironInput{
			Base: strings.Split(base, "\n"), Unset: strings.Split(unset, "\n"), SafeDirectories: strings.Split(safe, "\n"),
			HTTPPort: 3128, SOCKSPort: 1080, Token: testToken, User: ProxyUser(key), Restricted: restricted,
			TMPDIR: "/t", PWD: "/w", SSHCommand: SSHCommand("/bin/" + strings.ReplaceAll(dir, "\x00", "")),
		}
		env := Environ(in)
		names := map[string]bool{}
		for _, entry := range env {
			name, value, ok := strings.Cut(entry, "=")
			if !ok || name == "" || names[name] || strings.Contains(entry, "\x00") {
				t.Errorf("%q is repeated or no variable", entry)
			}
			names[name] = true
			if strings.Contains(value, testToken) && !mayHoldToken(name) {
				t.Errorf("the token is in %s", name)
			}
			if strings.HasSuffix(strings.ToUpper(name), "_PROXY") && mayHoldToken(name) && restricted {
				u, err := url.Parse(value)
				if err != nil || u.User.Username() != in.User {
					t.Errorf("%s=%q: user is not %q (%v)", name, value, in.User, err)
				}
			}
		}
		again := Environ(in)
		if !slices.Equal(env, again) {
			t.Error("the order is not stable")
		}
		if units := utf16.Encode([]rune(key)); len(in.User) > 255 || len(units) > 0 && len(units) < 60 && in.User == "srt" {
			t.Errorf("user %q for key %q", in.User, key)
		}
	})
}

// mayHoldToken lists the variables of the table that carry credentials, apart from the table in the code.
func mayHoldToken(name string) bool {
	switch name {
	case "DOCKER_HTTP_PROXY", "DOCKER_HTTPS_PROXY", "CLOUDSDK_PROXY_PASSWORD":
		return true
	}
	switch strings.ToUpper(name) {
	case "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "GRPC_PROXY", "FTP_PROXY":
		return name == strings.ToUpper(name) || name == strings.ToLower(name)
	}
	return false
}

func TestEnviron_NET92(t *testing.T) {
	value := func(in EnvironInput) string {
		in.Restricted = true
		for _, v := range Environ(in) {
			if text, ok := strings.CutPrefix(v, "JAVA_TOOL_OPTIONS="); ok {
				return text
			}
		}
		return "unset"
	}
	inherited := []string{"JAVA_TOOL_OPTIONS=-Xmx1g"}
	for _, c := range []struct {
		name string
		in   EnvironInput
		want string
	}{
		{"no agent, nothing inherited", EnvironInput{}, "unset"},
		{"no agent: unchanged", EnvironInput{Base: inherited}, "-Xmx1g"},
		{"agent", EnvironInput{JavaAgent: "/opt/agent.jar"}, "-javaagent:/opt/agent.jar"},
		{"agent before what is inherited", EnvironInput{Base: inherited, JavaAgent: "/opt/agent.jar"}, "-javaagent:/opt/agent.jar -Xmx1g"},
		{"a blank is quoted", EnvironInput{JavaAgent: "/opt/my agent.jar"}, `"-javaagent:/opt/my agent.jar"`},
		{"TLS-14 an option", EnvironInput{JavaOptions: "-Da=b"}, "-Da=b"},
		{"TLS-14 an agent, options and what is inherited", EnvironInput{Base: inherited, JavaAgent: "/a.jar", JavaOptions: `"-Da=/b c" -De=f`},
			`-javaagent:/a.jar "-Da=/b c" -De=f -Xmx1g`},
		{"CRED-3 a denied variable is not passed on, an option is", EnvironInput{Base: inherited, JavaOptions: "-Da=b", Unset: []string{"JAVA_TOOL_OPTIONS"}}, "-Da=b"},
		{"CRED-4 a masked variable is passed on masked", EnvironInput{Base: inherited, JavaOptions: "-Da=b",
			Replace: map[string]string{"JAVA_TOOL_OPTIONS": "fake"}}, "-Da=b fake"},
		{"a denied variable is not passed on", EnvironInput{Base: inherited, JavaAgent: "/a.jar", Unset: []string{"JAVA_TOOL_OPTIONS"}}, "-javaagent:/a.jar"},
	} {
		if got := value(c.in); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestEnviron_CRED30_AWS: with a masked AWS key clients are told to sign what can be signed again, unless told otherwise.
func TestEnviron_CRED30_AWS(t *testing.T) {
	const name = "AWS_REQUEST_CHECKSUM_CALCULATION"
	for _, test := range []struct {
		rule, want string
		base       []string
		unset      []string
		none       bool
	}{
		{rule: "a key", want: "when_required"},
		{rule: "no key", none: true},
		{rule: "inherited", base: []string{name + "=when_supported"}, want: "when_supported"},
		{rule: "inherited without a value", base: []string{name + "="}, want: "when_required"},
		{rule: "denied", base: []string{name + "=when_supported"}, unset: []string{name}},
	} {
		in := sandboxed(test.base...)
		in.AWSKey, in.Unset = !test.none, test.unset
		if got, _ := Lookup(Environ(in), name); got != test.want {
			t.Errorf("%s: %q, want %q", test.rule, got, test.want)
		}
	}
}

package clients

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	testmode "github.com/srt-sandbox/srt/test/mode"
	"github.com/srt-sandbox/srt/test/programs/stage"
)

// maskedClient is a program that a server admits with a secret only. Its script runs in an empty directory with HOST, the base
// URL, and TOKEN, which is masked; it fails when the program does.
type maskedClient struct {
	name   string
	script string
	want   string
	plants []plant
	only   string // the name of the one mode in which it makes sense
}

// plant is a place where the secret lies: a file of the home, or a variable. In its text, HOST, SECRET and BASIC stand for the
// server, the secret, and what Basic makes of user and secret. extract finds what to mask (CRED-12).
type plant struct{ file, variable, text, extract string }

var (
	netrc       = plant{file: ".netrc", text: "machine HOST login me password SECRET\n", extract: `password (\S+)`}
	gitStore    = plant{file: ".git-credentials", text: "https://me:SECRET@HOST\n", extract: `https://[^:]+:([^@]+)@`}
	npmToken    = plant{file: ".npmrc", text: "cafile=/etc/ssl/certs/ca-certificates.crt\n//HOST/private/npm/:_authToken=SECRET\n", extract: `_authToken=(\S+)`}
	npmBasic    = plant{file: ".npmrc", text: "//HOST/private/npm/:_auth=BASIC\n", extract: `_auth=(\S+)`}
	pipFile     = plant{file: ".config/pip/pip.conf", text: "[global]\nindex-url = https://me:SECRET@HOST/private/simple\n", extract: `//[^:]+:([^@]+)@`}
	pipVariable = plant{variable: "PIP_INDEX_URL", text: "https://me:SECRET@HOST/private/simple", extract: `//[^:]+:([^@]+)@`}
	whole       = plant{file: ".token", text: "SECRET\n"}
)

// plainFile is a file of the home without a secret.
func plainFile(name, text string) plant { return plant{file: name, text: text} }

const (
	gitWork = `export GIT_CURL_VERBOSE=1 GIT_TRACE=1 GIT_TRACE_REDACT=0 GIT_TERMINAL_PROMPT=0
		git clone -q $URL/git/hello.git; cd hello; cat greeting; git push -q origin HEAD:refs/heads/$HOST-$RANDOM; git fetch -q; git ls-remote`
	npmWork = `npm view --registry=$URL/npm/ --fetch-retries=0 srt-hello version
		npm install --loglevel=silly --registry=$URL/npm/ --no-audit --no-fund --fetch-retries=0 srt-hello; node -p 'require("srt-hello")'`
	pipWork = `/usr/bin/python3 -m pip -vv --retries 0 --disable-pip-version-check download --no-cache-dir --no-deps --no-input $INDEX srt-hello; ls`
	wheel   = "srt_hello-1.0-py3-none-any.whl"
	arrived = "arrived as meant"
	numbers = `awk -v t="$TOKEN" -v n=$N 'BEGIN { for (i = 0; i < n; i++) printf "%d:%s\n", i, t }'`
)

// maskedTable are the clients of the issue, each with its secret where its manual has it.
var maskedTable = []maskedClient{
	{name: "curl bearer", script: `curl -fsSv -H "Authorization: Bearer $TOKEN" $URL/`, want: greeting},
	{name: "curl whole file", script: `curl -fsSv -H "Authorization: Bearer $(cat ~/.token)" $URL/`, want: greeting, plants: []plant{whole}},
	{name: "curl user", script: `curl -fsSv -u "me:$TOKEN" $URL/`, want: greeting},
	{name: "curl netrc", script: `curl -fsSvn $URL/`, want: greeting, plants: []plant{netrc}},
	{name: "wget", script: `wget -t1 -qO- --ca-certificate=$SSL_CERT_FILE --header="Authorization: Bearer $TOKEN" $URL/
		wget -t1 -qO- --ca-certificate=$SSL_CERT_FILE --auth-no-challenge --user=me --password="$TOKEN" $URL/`, want: greeting},
	{name: "git store", script: gitWork, want: "refs/heads/h",
		plants: []plant{gitStore, plainFile(".gitconfig", "[credential]\nhelper = store\n")}},
	{name: "git store, only read", script: `git clone -q $URL/git/hello.git 2>said; cat hello/greeting; [ ! -s said ]`, want: greeting, plants: []plant{
		gitStore, plainFile(".gitconfig", "[credential]\nhelper = \"!f() { test $1 != get || git credential-store get; }; f\"\n")}},
	{name: "git netrc", script: gitWork, want: "refs/heads/h", plants: []plant{netrc}},
	{name: "git url", script: `URL=https://me:$TOKEN@$HOST/private; ` + gitWork, want: "refs/heads/h"},
	// As jobs of continuous integration have it.
	{name: "git header", script: `export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraheader
		export GIT_CONFIG_VALUE_0="AUTHORIZATION: basic $(printf 'me:%s' "$TOKEN" | base64 -w0)"; ` + gitWork, want: "refs/heads/h"},
	// Larger than what git sends in one piece (http.postBuffer): in chunks, after a request that asks whether it may.
	{name: "git large push", script: `git clone -q $URL/git/hello.git; cd hello; head -c 3000000 /dev/urandom >large; git add large
		git -c user.name=n -c user.email=n@n commit -qm Large; git push -q origin HEAD:refs/heads/$HOST-$RANDOM; git ls-remote`,
		want: "refs/heads/h", plants: []plant{netrc}},
	{name: "npm token", script: npmWork, want: greeting, plants: []plant{npmToken}},
	{name: "npm token by variable", script: npmWork, want: greeting, plants: []plant{
		plainFile(".npmrc", "//HOST/private/npm/:_authToken=${TOKEN}\n")}},
	{name: "npm basic", script: npmWork, want: greeting, plants: []plant{npmBasic}},
	{name: "npm publish", script: `echo '{"name":"srt-made","version":"1.0.0"}' >package.json; echo 1 >index.js
		npm publish --registry=$URL/npm/ --fetch-retries=0 2>&1`, want: "+ srt-made@1.0.0", plants: []plant{npmToken}},
	{name: "pip file", script: pipWork, want: wheel, plants: []plant{pipFile}},
	{name: "pip variable", script: pipWork, want: wheel, plants: []plant{pipVariable}},
	{name: "pip netrc", script: `INDEX="--index-url $URL/simple"; ` + pipWork, want: wheel, plants: []plant{netrc}},
	{name: "go module", script: `export GOPROXY=$URL/go GONOSUMDB=* GOTOOLCHAIN=local GOFLAGS=-modcacherw GOMODCACHE=$PWD/modules
		$GO mod init made; $GO get srt.test/hello@v1.0.0; cat modules/srt.test/hello@v1.0.0/hello.go`, want: greeting, plants: []plant{netrc}},
	{name: "go", script: `$W/goget $URL/`, want: greeting},
	{name: "node fetch", script: `node $W/get.js fetch $URL/`, want: "fetch " + greeting},
	{name: "node get", script: `node $W/get.js get $URL/`, want: "get " + greeting},
	{name: "node tunnel", script: `node $W/get.js tunnel $URL/`, want: "tunnel " + greeting, only: "variables"},
	{name: "python requests", script: `/usr/bin/python3 $W/get.py requests $URL/`, want: "requests " + greeting},
	{name: "python requests basic", script: `/usr/bin/python3 $W/get.py requests_basic $URL/json`, want: "requests " + arrived},
	{name: "python requests netrc", script: `/usr/bin/python3 $W/get.py requests_netrc $URL/`, want: "requests " + greeting, plants: []plant{netrc}},
	{name: "python urllib", script: `/usr/bin/python3 $W/get.py urllib $URL/`, want: "urllib " + greeting},
	{name: "python websocket", script: `/usr/bin/python3 $W/get.py websocket wss://$HOST/private/socket`, want: "websocket echoes"},
	{name: "java", script: `java -Xshare:auto -XX:TieredStopAtLevel=1 -cp $W/java Send $URL/`, want: "HttpClient " + greeting},
	{name: "json", script: `curl -fsS -u "me:$TOKEN" --json "{\"token\": \"$TOKEN\"}" $URL/json`, want: arrived},
	{name: "multipart", script: `printf %s "$TOKEN" >f; curl -fsS -u "me:$TOKEN" -F "token=$TOKEN" -F file=@f $URL/form`, want: arrived},
	{name: "small upload", script: `N=700; ` + numbers + ` >f; curl -fsS -u "me:$TOKEN" --data-binary @f "$URL/lines?n=$N"`, want: arrived},
	{name: "large upload", script: `N=390000; ` + numbers + ` >f; [ $(stat -c %s f) -gt $((20 << 20)) ]
		curl -fsS -u "me:$TOKEN" -T f "$URL/lines?n=$N"`, want: arrived},
	{name: "streamed upload", script: `N=390000; ` + numbers + ` | curl -fsS -u "me:$TOKEN" -T - "$URL/lines?n=$N"`, want: arrived},
	{name: "packed upload", script: `printf %s "$TOKEN" | gzip | curl -fsS -u "me:$TOKEN" -H "Content-Encoding: gzip" --data-binary @- $URL/packed`, want: arrived},
}

// maskedMode is how programs meet srt, together with what differs in the settings and in the secret.
type maskedMode struct {
	name, prelude string
	long          bool // the secret is longer than the shortest sentinel, so that lengths stay as they are (CRED-26)
	extra         bool // the authority of the servers is named in the settings, else in the environment of srt
}

var maskedModes = []maskedMode{
	{name: "variables", prelude: modes[0].prelude, extra: true},
	{name: "bare", prelude: `JAVA_TOOL_OPTIONS=$(printf '%s' "$JAVA_TOOL_OPTIONS" | tr ' ' '\n' | grep trustStore | xargs)
		unset $(compgen -e | grep -i proxy) GIT_SSH_COMMAND GIT_CONFIG_PARAMETERS
		if env | grep -i proxy >&2; then exit 222; fi`, long: true},
}

// TestCRED_RealClients: CRED-20 to CRED-26, TLS-14 and TLS-36 with every client of the table, each as root and as an ordinary
// user, by the proxy and without knowing of one: the server has the real value, nobody in the sandbox ever does (CRED-35), and
// a server outside injectHosts has the sentinel (CRED-21).
func TestCRED_RealClients(t *testing.T) {
	stage.Need(t, "curl", "wget", "git", "node", "npm", "javac", "ip", "awk")
	manual := read(t, "../../docs/settings.md")
	w := newWorld(t)
	w.gitRepositories(t)
	w.serveWeb(t)
	w.build(t)
	t.Run("clients", func(t *testing.T) {
		for _, c := range maskedTable {
			for _, p := range c.plants {
				if !strings.Contains(manual, "`"+p.extract+"`") && p.extract != "" {
					t.Errorf("docs/settings.md does not say to extract %q", p.extract)
				}
			}
			t.Run(c.name, func(t *testing.T) {
				stage.EachAlong(t, func(s *stage.Stage) {
					for _, m := range maskedModes {
						if c.only == "" || c.only == m.name {
							s.T.Run(m.name, func(t *testing.T) { w.masked(t, s, c, m) })
						}
					}
				})
			})
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fault := range w.faults {
		t.Error(fault)
	}
}

// masked runs a client at a server where its secret may go, and at one where it may not.
func (w *world) masked(t *testing.T, s *stage.Stage, c maskedClient, m maskedMode) {
	secret := "planted-" + rand.Text()
	if m.long {
		secret += "-" + rand.Text()
	}
	listed, other := w.named(), w.named()
	w.guard(listed.host, secret)
	w.guard(other.host, secret)

	r := w.runMasked(t, s, c, m, secret, listed.host, listed.host)
	if got := w.visited(listed.host); r.Status != 0 || !strings.Contains(r.Stdout, c.want) || got.admitted == 0 || got.faked != 0 {
		t.Errorf("want status 0 and %q, and only the real value at the server, not %d requests with it and %d with a sentinel: %v",
			c.want, got.admitted, got.faked, r)
	}
	r = w.runMasked(t, s, c, m, secret, other.host, listed.host)
	if got := w.visited(other.host); r.Status <= 0 || r.Status == noMode || got.admitted != 0 || got.faked == 0 {
		t.Errorf("outside injectHosts: want a failure, and only sentinels at the server, not %d requests with the real value and %d with a "+
			"sentinel: %v", got.admitted, got.faked, r)
	}
}

// around shows from inside all that a program there can see, before and after it has run.
const around = `look() {
	env
	cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' || true
	for f in $PLANTED; do cat "$f"; done
	grep -rlF planted- "$HOME" "$TMPDIR" "$PWD" 2>/dev/null | sed 's/^/holds the real value: /' || true
}
`

// runMasked runs the script of a client for one host, with the secret to be sent to another or the same, and sees to it that
// nothing tells the secret.
func (w *world) runMasked(t *testing.T, s *stage.Stage, c maskedClient, m maskedMode, secret, host, inject string) stage.Result {
	t.Helper()
	fill := strings.NewReplacer("HOST", host, "SECRET", secret, "BASIC", base64.StdEncoding.EncodeToString([]byte(account+":"+secret))).Replace
	env := append(slices.Clone(s.Env), "TOKEN="+secret, "HOST="+host, "URL=https://"+host+"/private", "W="+w.dir, "npm_config_update_notifier=false")
	if tool, err := stage.GoTool(); err != nil {
		t.Fatal(err)
	} else if tool != "" {
		env = append(env, "GO="+tool)
	}
	masks := map[string][]map[string]any{"envVars": {{"name": "TOKEN"}}}
	var planted []string
	for _, p := range c.plants {
		text, entry := fill(p.text), map[string]any{"path": "~/" + p.file}
		if p.variable != "" {
			env = append(env, p.variable+"="+text)
			entry = map[string]any{"name": p.variable}
			masks["envVars"] = append(masks["envVars"], entry)
		} else {
			s.File(filepath.Join(s.Home, p.file), text)
			planted = append(planted, filepath.Join(s.Home, p.file))
			if text != p.text && strings.Contains(p.text, "SECRET") || strings.Contains(p.text, "BASIC") {
				masks["files"] = append(masks["files"], entry)
			}
		}
		if p.extract != "" {
			entry["extract"], entry["onExtractNoMatch"] = p.extract, "error"
		}
	}
	if !m.extra {
		env = append(env, "SSL_CERT_FILE="+w.path("ca.pem"))
	}
	report := filepath.Join(s.Dir, "violations-"+rand.Text())
	args := s.Srt(w.maskedSettings(s, masks, m, host, inject), stage.Shell("set -o pipefail\ncd \"$(mktemp -d)\"\n"+
		m.prelude+"\n"+around+"look\n"+c.script+"\nlook")...)
	cmd := s.Command(plain(slices.Insert(args, 1, "-d", "--violations", report))...)
	cmd.Env = append(env, "PLANTED="+strings.Join(planted, " "))
	r := s.Finish(cmd)
	told := map[string]string{"its output": r.Stdout, "what it and srt say": r.Stderr, "the violations": read(t, report)}
	for where, text := range told {
		for _, spelling := range spellings(secret) {
			if strings.Contains(text, spelling) {
				t.Errorf("the secret is told as %q in %s: %v", spelling, where, r)
			}
		}
	}
	if strings.Contains(told["the violations"], `"kind":"file-read","operation":"openat","target":"`+s.Home) {
		t.Errorf("the reading of a masked file is told as refused: %s", told["the violations"])
	}
	if strings.Contains(r.Stdout, "holds the real value") {
		t.Errorf("a file inside holds the secret: %v", r)
	}
	s.Must(filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || slices.Contains(planted, path) {
			return err
		}
		if bytes.Contains([]byte(read(t, path)), []byte(secret)) {
			t.Errorf("the secret was written to %s", path)
		}
		return nil
	}))
	return r
}

// read is a file of the host, which may have gone.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	return string(data)
}

// maskedSettings admits a host and sends what is masked to one.
func (w *world) maskedSettings(s *stage.Stage, masks map[string][]map[string]any, m maskedMode, host, inject string) string {
	s.T.Helper()
	ends := map[string]any{}
	if m.extra {
		ends["extraCaCertPaths"] = []string{w.path("ca.pem")}
	}
	for _, entries := range masks {
		for _, entry := range entries {
			entry["mode"], entry["injectHosts"] = "mask", []string{inject}
		}
	}
	text, err := json.Marshal(testmode.Settings(map[string]any{
		"network":     map[string]any{"allowedDomains": []string{host, inject}, "deniedDomains": []string{}, "tlsTerminate": ends},
		"filesystem":  map[string]any{"denyRead": []string{}, "allowWrite": []string{s.Home, s.Temp}, "denyWrite": []string{}},
		"credentials": masks,
	}))
	s.Must(err)
	path := filepath.Join(s.Dir, "settings-"+rand.Text()+".json")
	s.File(path, string(text))
	return path
}

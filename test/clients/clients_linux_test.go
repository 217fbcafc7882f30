package clients

import (
	"crypto/rand"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	testmode "github.com/srt-sandbox/srt/test/mode"
	"github.com/srt-sandbox/srt/test/programs/stage"
)

// client is a program that has to reach one server. Its script runs in an empty directory with HOST and PORT set; it fails
// when the program does.
type client struct {
	name   string
	script string
	want   string // in what it prints
	// at is where its server is; without it, at a name of its own.
	at func(*testing.T, *world) endpoint
}

const sshOptions = ` -F "$W/ssh/client/config"`

// clientTable are the clients of the issue, each as its manual has it.
var clientTable = []client{
	{"curl http", `curl -fsS http://$HOST/`, greeting, nil},
	{"curl https", `curl -fsS --http1.1 https://$HOST/`, greeting + " by HTTP/1.1", nil},
	{"curl http2", `curl -fsS --http2 https://$HOST/`, greeting + " by HTTP/2", nil},
	// A curl with HTTP/3 tries QUIC first; every other one has nothing to fall back from, and get.py does what it would do.
	{"curl http3 falls back", `if curl -V | grep -q HTTP3; then curl -fsS --http3 https://$HOST/; else curl -fsS https://$HOST/; fi`, greeting, nil},
	{"curl dual stack", `curl -4fsS https://$HOST/; [ -z "$SIX" ] || curl -6fsS https://$HOST/`, greeting, nil},
	{"wget", `wget -t1 -qO- http://$HOST/; wget -t1 -qO- --ca-certificate=$SSL_CERT_FILE https://$HOST/`, greeting, nil},
	{"git https", `git clone -q https://$HOST/git/hello.git; cd hello; cat greeting; git push -q origin HEAD:refs/heads/$HOST; git ls-remote`,
		"refs/heads/h", nil},
	{"git ssh", `export GIT_SSH_COMMAND="${GIT_SSH_COMMAND:-ssh}` + strings.ReplaceAll(sshOptions, `"`, `\"`) + `"
		git clone -q ssh://$HOST$W/ssh/hello.git; cd hello; cat greeting; git push -q origin HEAD:refs/heads/$HOST; git ls-remote`, "refs/heads/h", nil},
	{"ssh", `ssh` + sshOptions + ` $HOST 'echo hello from $((6 * 7))'`, "hello from 42", nil},
	{"scp", `scp -q` + sshOptions + ` $HOST:$W/ca.pem copy; cmp copy $W/ca.pem; echo copied`, "copied", nil},
	{"node fetch", `node $W/get.js fetch http://$HOST/ https://$HOST/`, "fetch " + greeting, nil},
	{"node get", `node $W/get.js get http://$HOST/ https://$HOST/`, "get " + greeting, nil},
	{"python requests", `/usr/bin/python3 $W/get.py requests http://$HOST/ https://$HOST/`, "requests " + greeting, nil},
	{"python urllib", `/usr/bin/python3 $W/get.py urllib http://$HOST/ https://$HOST/`, "urllib " + greeting, nil},
	{"python asyncio", `/usr/bin/python3 $W/get.py asyncio $HOST 7 443`, greeting + ": asyncio", nil},
	{"python socket", `/usr/bin/python3 $W/get.py socket $HOST 7`, greeting + ": socket", nil},
	{"python epoll", `/usr/bin/python3 $W/get.py epoll $HOST 7`, greeting + ": epoll", nil},
	{"quic first", `/usr/bin/python3 $W/get.py quic_first $HOST 443`, "urllib " + greeting, nil},
	{"go net-http", `$W/goget http://$HOST/ https://$HOST/`, greeting + " by HTTP/2", nil},
	{"java", `java -Xshare:auto -XX:TieredStopAtLevel=1 -cp $W/java Get http://$HOST/ https://$HOST/`, "URLConnection " + greeting, nil},
	{"npm install", `npm install --no-audit --no-fund --fetch-retries=0 --registry=https://$HOST/npm/ srt-hello
		node -p 'require("srt-hello")'`, greeting, nil},
	{"pip download", `/usr/bin/python3 -m pip --retries 0 --disable-pip-version-check download -q --no-cache-dir --no-deps --index-url https://$HOST/simple srt-hello
		ls`, "srt_hello-1.0-py3-none-any.whl", nil},
	{"apt-get update", `chmod 755 .; mkdir -p state/lists/partial cache/archives/partial etc log # root's apt becomes _apt to fetch
		echo "deb [trusted=yes] http://$HOST/apt ./" >sources.list
		options="-o Dir::Etc=$PWD/etc -o Dir::Etc::SourceList=$PWD/sources.list -o Dir::State=$PWD/state -o Dir::Cache=$PWD/cache
			-o Dir::Log=$PWD/log -o Dir::State::Status=/dev/null -o Acquire::Languages=none -o Acquire::Retries=0"
		apt-get $options -q -o APT::Update::Error-Mode=any update
		apt-cache $options show srt-hello`, "Description: " + greeting, nil},
	// RSYNC_PROXY takes no credentials, so the connection is known by the listener it came to.
	{"rsync", `rsync rsync://$HOST/files/greeting copy; cat copy`, greeting, nil},
	{"nc", `echo nc | nc -N $HOST 7`, greeting + ": nc", nil},
	{"psql by name", `psql -h $HOST -U srt -d postgres -Atc 'select 6 * 7'`, "42", nil},
	{"psql on loopback", `psql -h $HOST -p $PORT -U srt -d postgres -Atc 'select 6 * 7'`, "42", loopback(postgresSocket)},
	{"redis-cli by name", `redis-cli -e -h $HOST echo "` + greeting + `"`, greeting, nil},
	{"redis-cli on loopback", `redis-cli -e -h $HOST -p $PORT echo "` + greeting + `"`, greeting, loopback(redisSocket)},

	// NO_PROXY lists the private ranges: clients that honour it for a range go to an allow-listed address directly.
	{"no_proxy curl", `curl -fsS http://$HOST/`, greeting, literal},
	{"no_proxy wget", `wget -t1 -qO- http://$HOST/`, greeting, literal},
	{"no_proxy requests", `/usr/bin/python3 $W/get.py requests http://$HOST/`, greeting, literal},
	{"no_proxy urllib", `/usr/bin/python3 $W/get.py urllib http://$HOST/`, greeting, literal},
	{"no_proxy go", `$W/goget http://$HOST/`, greeting, literal},
	{"no_proxy npm", `npm view --fetch-retries=0 --registry=http://$HOST/npm/ srt-hello version`, "1.0.0", literal},
	{"no_proxy node", `node $W/get.js fetch http://$HOST/`, greeting, literal},
	{"curl ipv6 literal", `curl -gfsS http://$HOST/`, greeting, func(t *testing.T, w *world) endpoint { return w.literal6(t) }},
}

func literal(_ *testing.T, w *world) endpoint { return w.literal() }

func loopback(socket string) func(*testing.T, *world) endpoint {
	return func(t *testing.T, w *world) endpoint { return w.onLoopback(t, w.relayTo(socket)) }
}

// noMode is the exit status of a run whose environment is not as its mode has it.
const noMode = 222

// mode is what a program finds in its environment.
type mode struct {
	name    string
	prelude string // shell text
	bare    bool
}

var modes = []mode{
	{"variables", `[ -n "$HTTP_PROXY" ] && [ -n "$no_proxy" ] || { echo "got no proxy variables" >&2; exit 222; }`, false},
	{"bare", `unset $(compgen -e | grep -i proxy) GIT_SSH_COMMAND GIT_CONFIG_PARAMETERS JAVA_TOOL_OPTIONS
		if env | grep -i proxy >&2; then exit 222; fi`, true},
}

// TestNet_RealClients: NET-7 and NET-90 with every client of the table, each as root and as an ordinary user, with srt's
// variables and without any; and of the limits that end the chapter, programs that ignore proxies, names, private
// addresses in NO_PROXY, and QUIC.
func TestNet_RealClients(t *testing.T) {
	stage.Need(t, "curl", "wget", "git", "ssh", "node", "npm", "javac", "psql", "redis-cli", "redis-server", "rsync", "nc", "ip", "apt-get")
	w := newWorld(t)
	w.gitRepositories(t)
	w.serveWeb(t)
	w.serveEcho(t)
	w.servePostgres(t)
	w.serveRedis(t)
	w.serveRsync(t)
	w.serveSSH(t)
	w.build(t)
	t.Run("clients", func(t *testing.T) {
		for _, c := range clientTable {
			t.Run(c.name, func(t *testing.T) {
				stage.EachAlong(t, func(s *stage.Stage) {
					w.sshKey(s)
					for _, m := range modes {
						s.T.Run(m.name, func(t *testing.T) { w.both(t, s, c, m) })
					}
				})
			})
		}
	})
	t.Run("errors of connect", func(t *testing.T) {
		stage.EachAlong(t, w.errorsOfConnect)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fault := range w.faults {
		t.Error(fault)
	}
}

// both runs a client where its server is listed, and where it is not.
func (w *world) both(t *testing.T, s *stage.Stage, c client, m mode) {
	at := c.at
	if at == nil {
		at = func(*testing.T, *world) endpoint { return w.named() }
	}
	listed, other := at(t, w), at(t, w)
	settings := w.settings(s, listed.allow)

	r := w.run(s, settings, m, c, listed)
	if r.Status != 0 || !strings.Contains(r.Stdout, c.want) {
		t.Errorf("listed, want status 0 and %q: %v", c.want, r)
	}
	if w.arrivals(listed) == 0 {
		t.Errorf("listed, yet nothing arrived at %s: %v", listed.host, r)
	}

	r = w.run(s, settings, m, c, other)
	if r.Status <= 0 || r.Status == noMode || strings.Contains(r.Stdout, c.want) {
		t.Errorf("not listed, want a failure: %v", r)
	}
	if n := w.arrivals(other); n != 0 {
		t.Errorf("not listed, yet %d connections arrived at %s: %v", n, other.host, r)
	}
}

// errorsOfConnect: a program that knows no proxy gets EACCES for a refusal, and otherwise what the host's own connect gave,
// whether it waits or not.
func (w *world) errorsOfConnect(s *stage.Stage) {
	listed, other := w.named(), w.named()
	c := client{script: `/usr/bin/python3 $W/get.py errno $HOST 443 $HOST 9 ` + unreachable + ` 80 ` + routeless + ` 80 ` +
		other.host + ` 443 ` + other.places[0] + ` 443`}
	const want = "0 0\nECONNREFUSED ECONNREFUSED\nEHOSTUNREACH EHOSTUNREACH\nENETUNREACH ENETUNREACH\nEACCES EACCES\nEACCES EACCES\n"
	r := w.run(s, w.settings(s, listed.allow, unreachable, routeless), modes[1], c, listed)
	if r.Status != 0 || r.Stdout != want {
		s.T.Errorf("want %q: %v", want, r)
	}
	if n := w.arrivals(other); n != 0 {
		s.T.Errorf("%d connections arrived at %s, which is not listed", n, other.host)
	}
}

// settings admits entries, and lets the account write its home and its temporary files.
func (w *world) settings(s *stage.Stage, allow ...string) string {
	s.T.Helper()
	text, err := json.Marshal(testmode.Settings(map[string]any{
		"network":    map[string]any{"allowedDomains": allow, "deniedDomains": []string{}},
		"filesystem": map[string]any{"denyRead": []string{}, "allowWrite": []string{s.Home, s.Temp}, "denyWrite": []string{}},
	}))
	s.Must(err)
	path := filepath.Join(s.Dir, "settings-"+rand.Text()+".json")
	s.File(path, string(text))
	return path
}

// run runs the script of a client in a sandbox.
func (w *world) run(s *stage.Stage, settings string, m mode, c client, e endpoint) stage.Result {
	s.T.Helper()
	script := "set -o pipefail\ncd \"$(mktemp -d)\"\n" + m.prelude + "\n" + c.script
	cmd := s.Command(plain(s.Srt(settings, stage.Shell(script)...))...)
	ca, six := w.path("ca.pem"), ""
	if w.six {
		six = "1"
	}
	cmd.Env = append(append([]string{}, s.Env...), "HOST="+e.host, "PORT="+e.port, "W="+w.dir, "SIX="+six,
		"SSL_CERT_FILE="+ca, "REQUESTS_CA_BUNDLE="+ca, "PIP_CERT="+ca, "GIT_SSL_CAINFO="+ca, "NODE_EXTRA_CA_CERTS="+ca,
		"CURL_CA_BUNDLE="+ca, "npm_config_cafile="+ca, "npm_config_update_notifier=false")
	return s.Finish(cmd)
}

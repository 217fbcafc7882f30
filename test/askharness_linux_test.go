package test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// A parent is a proxy behind srt's own to which every name exists: what it is asked for is what srt lets through.
type parent struct {
	url  string
	mu   sync.Mutex
	seen []string // host:port, in order
}

// parentProxy starts one that answers every request with "hello <host>".
func (b *box) parentProxy() *parent {
	b.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	b.t.Cleanup(func() { l.Close() })
	p := &parent{url: "http://" + l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *parent) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	host := req.Host
	if !strings.Contains(host, ":") {
		host += ":80"
	}
	p.mu.Lock()
	p.seen = append(p.seen, host)
	p.mu.Unlock()
	if req.Method == http.MethodConnect {
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
		if _, err = http.ReadRequest(r); err != nil {
			return
		}
	}
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello %s\n", host)
}

// got are the hosts that were let through.
func (p *parent) got() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.seen, " ")
}

// asked is a command under --ask on a terminal.
type asked struct {
	*terminal
	parent *parent
}

// ask runs shell text under --ask. The functions "get HOST", by the proxy, and "raw HOST", as a program does that knows no
// proxy, print "hello HOST:80" or "refused".
func (b *box) ask(options []string, text string, more ...cfg) *asked {
	b.t.Helper()
	return b.askAs(options, more, "bash", "-c", askFunctions+text)
}

const askFunctions = `
get() { curl -sS --max-time 50 -p http://$1/ || echo refused; }
socks() { curl -sS --max-time 50 -x "$FTP_PROXY" http://$1/ || echo refused; }
why() { curl -sSv -p http://$1/ 2>&1 | grep -a '^< HTTP'; }
raw() { { exec 3<>/dev/tcp/$1/80; } 2>/dev/null && { printf 'GET / HTTP/1.0\r\nHost: %s\r\n\r\n' $1 >&3; tail -n1 <&3; exec 3>&-; } || echo refused; }
`

func (b *box) askAs(options []string, more []cfg, args ...string) *asked {
	b.t.Helper()
	p := b.parentProxy()
	c := cfg{aw: list{"."}, net: object{"parentProxy": object{"http": p.url, "https": p.url}}}
	for _, m := range more {
		c.allow, c.deny = m.allow, m.deny
		for k, v := range m.net {
			c.net[k] = v
		}
	}
	line := append([]string{srtPath, "--ask", "-s", b.settings(c)}, options...)
	return &asked{b.onTerminal(append(append(line, "exec", "--"), args...)...), p}
}

// question waits for a question about a host and gives the code in it.
func (a *asked) question(host string) (code string) {
	a.b.t.Helper()
	a.expect("asks to connect to " + host + " port 80")
	a.expect("Answer within")
	a.mu.Lock()
	defer a.mu.Unlock()
	codes := askCode.FindAllStringSubmatch(a.seen.String(), -1)
	return codes[len(codes)-1][1]
}

var askCode = regexp.MustCompile(`once ([a-z]{4})  allow this time`)

// reached wants exactly these hosts to have been let through.
func (a *asked) reached(want string) {
	a.b.t.Helper()
	if got := a.parent.got(); got != want {
		a.b.t.Errorf("let through: %q, want %q", got, want)
	}
}

// asksNoMore wants no question from here to the end.
func (a *asked) asksNoMore() {
	a.b.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if rest := a.seen.String()[a.read:]; strings.Contains(rest, "asks to connect") {
		a.b.t.Errorf("asked again: %q", rest)
	}
}

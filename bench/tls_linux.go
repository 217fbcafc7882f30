package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/srt-sandbox/srt/bench/internal/local"
	"github.com/srt-sandbox/srt/proxy/mitm"
)

// terminated measures tunnels whose TLS ends in the sandbox's proxy, beside the same client and server with nothing but
// their own TLS between them, and beside a relay that does only what cannot be avoided: it ends TLS on one side, begins it
// on the other and copies. On a machine whose processors are all busy with client and server, that relay is the ceiling. The
// same sandbox with the tunnels left opaque tells what the way through a sandbox costs from what ending TLS adds to it.
func terminated(b *bed) []group {
	s, err := newTLSServer(b.folder)
	if err != nil {
		return []group{failed("TLS", err)}
	}
	defer s.close()
	host, _, err := net.SplitHostPort(s.address())
	if err != nil {
		return []group{failed("TLS", err)}
	}
	open := settings{domains: []string{host}}
	ended := open
	ended.authority = s.authority
	p, err1 := b.place("tls", b.people[0], ended, nil)
	opaque, err2 := b.place("tls-opaque", b.people[0], open, nil)
	relay, err3 := b.startRelay(s)
	if err := errors.Join(err1, err2, err3); err != nil {
		return []group{failed("TLS", err)}
	}
	defer relay.stop()
	trusting := []string{"env", "SSL_CERT_FILE=" + s.authority}
	plain := outside.in("plain TLS", trusting...)
	ideal := outside.in("bare TLS relay", trusting...)
	ideal.argv = replacing(ideal.argv, s.address(), relay.address)
	ideal.beside = relay.spent
	sandboxes := b.sandboxes()
	for i := range sandboxes { // the reference trusts what Node trusts
		sandboxes[i] = sandboxes[i].in(sandboxes[i].name, "env", "NODE_EXTRA_CA_CERTS="+s.authority)
	}
	left := sandboxes[0].in("srt, TLS left alone")
	left.argv = at(opaque, left.argv, trusting)
	peers := append([]peer{plain, ideal, left}, sandboxes...)
	groups := b.terminatedTransfers(p, peers, s.address())
	groups = append(groups, b.terminatedRequests(p, peers, s.address())...)
	groups = append(groups, b.tunnelMemory(p, sandboxes, s.address())...)
	return append(groups, b.terminatedStart(p, opaque)...)
}

// in is the peer behind words in front of its command line.
func (r peer) in(name string, words ...string) peer {
	argv := r.argv
	r.name = name
	r.argv = func(p place, command []string) []string { return append(slices.Clone(words), argv(p, command)...) }
	return r
}

// at runs a command elsewhere than where it is asked to, with words in front of it.
func at(elsewhere place, argv func(place, []string) []string, words []string) func(place, []string) []string {
	return func(_ place, command []string) []string { return argv(elsewhere, slices.Concat(words, command)) }
}

// replacing puts one word of a command for another.
func replacing(argv func(place, []string) []string, word, instead string) func(place, []string) []string {
	return func(p place, command []string) []string {
		words := argv(p, command)
		for i := range words {
			if words[i] == word {
				words[i] = instead
			}
		}
		return words
	}
}

func (b *bed) terminatedTransfers(p place, peers []peer, target string) []group {
	var groups []group
	for _, connections := range []int{1, 4} {
		for _, direction := range []string{"down", "up"} {
			groups = append(groups, b.move("load-tls-transfer", p, peers, direction, connections, target, "tls",
				"in requests of 64 MiB over TLS")...)
		}
	}
	return groups
}

func (b *bed) terminatedRequests(p place, peers []peer, target string) []group {
	rate := func(kind string, workers int) []string {
		return []string{b.self, "load-rate", kind, strconv.Itoa(workers), "1", target, "tls"}
	}
	var groups []group
	for _, m := range []struct {
		what, unit string
		args       []string
	}{
		{"small GETs over TLS, 1 client", "/s", rate("tls-get", 1)},
		{"small GETs over TLS, 16 clients", "/s", rate("tls-get", 16)},
		{"new TLS connections with a GET, 4 at once", "/s", rate("tls-new", 4)},
		{"GET over TLS, median", "us", []string{b.self, "load-latency", "tls-get", "2000", target, "tls"}},
		{"new TLS connection and a GET, median", "us", []string{b.self, "load-latency", "tls-new", "200", target, "tls"}},
	} {
		groups = append(groups, b.counted(m.what, m.unit, p, peers, m.args)...)
	}
	return groups
}

// counted runs a load whose first number is what is measured. If the load tells a count as well, a second group is what
// client and sandbox together spend on each: on a busy machine that says more than a rate.
func (b *bed) counted(what, unit string, p place, peers []peer, args []string) []group {
	spent := map[string][]float64{}
	rows := alternate(b.runs(6), peers, func(r peer) (float64, error) {
		got, err := r.run(p, args...)
		if err != nil {
			return 0, err
		}
		if n, err := parse(got.stdout, 1); err == nil && n > 0 {
			spent[r.name] = append(spent[r.name], got.cpu.Seconds()*1e6/n)
		}
		return parse(got.stdout, 0)
	})
	groups := []group{{what, unit, rows}}
	if len(spent) == 0 {
		return groups
	}
	return append(groups, group{what + ": processor time of both for each", "us", spentRows(rows, spent)})
}

// spentRows are rows with other samples, of the same runs; the first run, which warms caches, does not count.
func spentRows(rows []row, spent map[string][]float64) []row {
	others := make([]row, len(rows))
	for i, r := range rows {
		others[i] = row{who: r.who, note: r.note}
		if len(r.samples) > 0 {
			others[i].samples = spent[r.who][1:]
		}
	}
	return others
}

// tunnelMemory measures what a terminated tunnel adds to a sandbox: between two requests, and in the midst of a response
// that nobody reads.
func (b *bed) tunnelMemory(p place, peers []peer, target string) []group {
	pss := func(h *held) (float64, error) { return h.footprint("Pss") }
	return []group{
		b.addedBy("memory of an idle terminated tunnel, of 200", 200, p, peers, target, "tls", pss),
		b.addedBy("memory of a busy terminated tunnel, of 100", 100, p, peers, target, "tls-busy", pss),
	}
}

// terminatedStart measures what a session's authority and its bundle add to a start.
func (b *bed) terminatedStart(ended, opaque place) []group {
	with, without := b.srtPeer(), b.srtPeer()
	with.name, without.name = "srt with network.tlsTerminate", "srt without"
	places := map[string]place{with.name: ended, without.name: opaque}
	return []group{{"start of true", "ms", alternate(b.runs(40), []peer{without, with}, func(r peer) (float64, error) {
		got, err := r.run(places[r.name], "true")
		return milliseconds(got.took), err
	})}}
}

// tlsServer is the far end of every measurement over TLS.
type tlsServer struct {
	listener  net.Listener
	http      *http.Server
	authority string // the file of the certificate that it can be verified with, absolute
	pair      []byte // its certificate and key, as PEM
}

// newTLSServer listens on loopback. It puts the certificate of its authority into folder.
func newTLSServer(folder string) (*tlsServer, error) {
	ca, err := mitm.Generate(mitm.GenerateOptions{})
	if err != nil {
		return nil, err
	}
	const ip = "127.0.0.1"
	leaf, err := ca.Leaf(ip)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "authority.pem")
	if err := os.WriteFile(file, ca.PEM(), 0o644); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return nil, err
	}
	s := &tlsServer{listener: listener, authority: file, http: &http.Server{
		Handler:      http.HandlerFunc(serveBodies),
		TLSConfig:    &tls.Config{Certificates: []tls.Certificate{*leaf}, NextProtos: []string{"http/1.1"}},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2: nobody else here speaks it
	}}
	s.pair = append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	go s.http.ServeTLS(local.Only(listener, ip), "", "")
	return s, nil
}

func (s *tlsServer) address() string { return s.listener.Addr().String() }
func (s *tlsServer) close() error    { return s.http.Close() }

// serveBodies answers "GET /N" with N bytes, and other methods with the number of bytes that came.
func serveBodies(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r.Body}, make([]byte, chunk))
		if err == nil {
			fmt.Fprint(w, n) // a client that has gone is its own business
		}
		return
	}
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		http.Error(w, "how many bytes?", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(n))
	for block := make([]byte, min(n, chunk)); n > 0; n -= len(block) {
		block = block[:min(n, len(block))]
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// relayProcess is this program as a relay.
type relayProcess struct {
	address string
	pid     int
	stop    func()
}

// spent is the processor time of the relay so far (proc_pid_stat(5): utime and stime, in hundredths of a second).
func (r *relayProcess) spent() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.pid))
	if err != nil {
		return 0, err
	}
	const afterName, ticks = 11, 10 * time.Millisecond
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	utime, err1 := strconv.Atoi(fields[afterName])
	stime, err2 := strconv.Atoi(fields[afterName+1])
	return time.Duration(utime+stime) * ticks, errors.Join(err1, err2)
}

// startRelay starts the relay as a process of its own, as the proxies are.
func (b *bed) startRelay(s *tlsServer) (*relayProcess, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, b.self, "load-relay", s.address(), s.authority)
	cmd.Stdin = bytes.NewReader(s.pair)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	r := &relayProcess{pid: cmd.Process.Pid, stop: func() { cancel(); cmd.Wait() }} // it is killed, which is no failure
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		r.stop()
		return nil, fmt.Errorf("the relay did not start: %w", err)
	}
	r.address = strings.TrimSpace(line)
	return r, nil
}

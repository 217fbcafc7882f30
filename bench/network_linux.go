package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/bench/internal/local"
)

// network measures the same client and server with nothing between them, and through each sandbox.
func network(b *bed) []group {
	s, err := newServer("127.0.0.1")
	if err != nil {
		return []group{failed("network", err)}
	}
	defer s.close()
	p, err := b.place("network", b.people[0], settings{domains: []string{"127.0.0.1"}}, nil)
	if err != nil {
		return []group{failed("network", err)}
	}
	peers := append([]peer{outside}, b.sandboxes()...)
	groups := b.exchanges(p, peers, s, "proxy", "through the proxy")

	own, err := local.Address()
	if err != nil {
		return append(groups, failed("programs that ignore the proxy", err))
	}
	s2, err := newServer(own)
	if err != nil {
		return append(groups, failed("programs that ignore the proxy", err))
	}
	defer s2.close()
	if p, err = b.place("network-direct", b.people[0], settings{domains: []string{own}}, nil); err != nil {
		return append(groups, failed("programs that ignore the proxy", err))
	}
	srt := b.srtPeer()
	if srt.why == "" { // one line says why, not one for each load
		if _, err := srt.run(p, b.self, "load-latency", "connect", "10", s2.raw.Addr().String(), "direct"); err != nil {
			return append(groups, group{what: "programs that ignore the proxy", rows: []row{{who: srt.name, note: err.Error()}}})
		}
	}
	return append(groups, b.exchanges(p, []peer{outside, srt}, s2, "direct", "ignoring the proxy")...)
}

// exchanges measures everything over one way.
func (b *bed) exchanges(p place, peers []peer, s *server, way, how string) []group {
	raw, web := s.raw.Addr().String(), s.web.Addr().String()
	var groups []group
	for _, tunnels := range []int{1, 16} {
		for _, direction := range []string{"down", "up"} {
			groups = append(groups, b.transfer(p, peers, direction, tunnels, raw, way, how)...)
		}
	}
	for _, m := range []struct{ what, unit, mode, kind, amount, target string }{
		{"new tunnels, 16 at once", "/s", "load-rate", "connect", "", raw},
		{"small GETs, 16 at once", "/s", "load-rate", "get", "", web},
		{"round trip in an open tunnel, median", "us", "load-latency", "tunnel", "5000", raw},
		{"GET, median", "us", "load-latency", "get", "2000", web},
		{"new tunnel and a round trip, median", "us", "load-latency", "connect", "1000", raw},
	} {
		args := []string{b.self, m.mode, m.kind, m.amount, m.target, way}
		if m.mode == "load-rate" {
			args = []string{b.self, m.mode, m.kind, "16", "1", m.target, way}
		}
		groups = append(groups, group{m.what + ", " + how, m.unit, alternate(b.runs(6), peers, func(r peer) (float64, error) {
			got, err := r.run(p, args...)
			if err != nil {
				return 0, err
			}
			return parse(got.stdout, 0)
		})})
	}
	return groups
}

// transfer measures throughput, and what client and sandbox together spend on it. The server's part is the same for
// every peer and not counted.
func (b *bed) transfer(p place, peers []peer, direction string, tunnels int, target, way, how string) []group {
	return b.move("load-transfer", p, peers, direction, tunnels, target, way, how)
}

// move is transfer with a load of its own.
func (b *bed) move(load string, p place, peers []peer, direction string, tunnels int, target, way, how string) []group {
	what := fmt.Sprintf("tunnels %s, %d at once, %s", direction, tunnels, how)
	spent := map[string][]float64{}
	rows := alternate(b.runs(6), peers, func(r peer) (float64, error) {
		got, err := r.run(p, b.self, load, direction, strconv.Itoa(tunnels), "1", target, way)
		if err != nil {
			return 0, err
		}
		rate, err := parse(got.stdout, 0)
		if err != nil {
			return 0, err
		}
		gb, err := parse(got.stdout, 1)
		if err != nil {
			return 0, err
		}
		spent[r.name] = append(spent[r.name], got.cpu.Seconds()/gb)
		return rate, nil
	})
	return []group{{what, "MB/s", rows}, {what + ": processor time of both per GB", "s", spentRows(rows, spent)}}
}

// parse returns the i-th number that a mode has printed.
func parse(text string, i int) (float64, error) {
	words := strings.Fields(text)
	if i >= len(words) {
		return 0, fmt.Errorf("the load printed %q", text)
	}
	return strconv.ParseFloat(words[i], 64)
}

// somewhere is a server for loads that only need one to be there.
func somewhere() (*server, string, error) {
	s, err := newServer("127.0.0.1")
	if err != nil {
		return nil, "", err
	}
	host, _, err := net.SplitHostPort(s.raw.Addr().String())
	return s, host, err
}

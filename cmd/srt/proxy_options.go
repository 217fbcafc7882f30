package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// noFD is a descriptor that was not given.
const noFD = -1

// proxyOptions are the options of srt proxy (PRX-1). Of repeated ones the last wins, but names of headers add up.
type proxyOptions struct {
	listenFD, deciderFD, deciderIn, deciderOut, lifelineFD, caFD int // noFD: not given

	listen       listenAddress // its text is empty: not given
	anyInterface bool
	strip        []string
	plaintextSet bool
	debug        bool
	help         bool
	version      bool
}

// listenAddress is the value of --listen.
type listenAddress struct {
	text    string // as given
	bind    string // what is bound
	exposed bool   // it is not loopback (PRX-2)
}

// proxyOption is one option: set is given its value; flags are given none.
type proxyOption struct {
	name string
	flag bool
	set  func(o *proxyOptions, value string) error
}

// proxyOptionTable is PRX-1, but for --version, --help and the names of headers, of which several may follow one option.
func proxyOptionTable() []proxyOption {
	fd := func(field func(*proxyOptions) *int) func(*proxyOptions, string) error {
		return func(o *proxyOptions, value string) (err error) {
			*field(o), err = parseFD(value)
			return err
		}
	}
	flag := func(field func(*proxyOptions) *bool) func(*proxyOptions, string) error {
		return func(o *proxyOptions, _ string) error {
			*field(o) = true
			return nil
		}
	}
	return []proxyOption{
		{name: "--listen-fd", set: fd(func(o *proxyOptions) *int { return &o.listenFD })},
		{name: "--decider-fd", set: fd(func(o *proxyOptions) *int { return &o.deciderFD })},
		{name: "--decider-in", set: fd(func(o *proxyOptions) *int { return &o.deciderIn })},
		{name: "--decider-out", set: fd(func(o *proxyOptions) *int { return &o.deciderOut })},
		{name: "--lifeline-fd", set: fd(func(o *proxyOptions) *int { return &o.lifelineFD })},
		{name: "--ca-fd", set: fd(func(o *proxyOptions) *int { return &o.caFD })},
		{name: "--listen", set: func(o *proxyOptions, value string) (err error) {
			o.listen, err = parseListen(value)
			return err
		}},
		{name: "--listen-any-interface", flag: true, set: flag(func(o *proxyOptions) *bool { return &o.anyInterface })},
		{name: "--plaintext-header-set", flag: true, set: flag(func(o *proxyOptions) *bool { return &o.plaintextSet })},
		{name: "--debug", flag: true, set: flag(func(o *proxyOptions) *bool { return &o.debug })},
		{name: "-d", flag: true, set: flag(func(o *proxyOptions) *bool { return &o.debug })},
		{name: stripOption, set: func(o *proxyOptions, value string) error {
			o.strip = append(o.strip, value)
			return nil
		}},
	}
}

const stripOption = "--strip-response-header"

// parseProxy reads the words after "proxy". With help or version set nothing else counts.
func parseProxy(words []string) (proxyOptions, error) {
	o := proxyOptions{listenFD: noFD, deciderFD: noFD, deciderIn: noFD, deciderOut: noFD, lifelineFD: noFD, caFD: noFD}
	o.version = slices.Contains(words, "--version")
	o.help = !o.version && (slices.Contains(words, "--help") || slices.Contains(words, "-h"))
	if o.version || o.help {
		return o, nil
	}
	table := proxyOptionTable()
	for len(words) > 0 {
		var err error
		if words, err = o.take(table, words); err != nil {
			return o, err
		}
	}
	return o, o.complete()
}

// take reads the first option of words and returns the rest.
func (o *proxyOptions) take(table []proxyOption, words []string) ([]string, error) {
	name, value, attached := strings.Cut(words[0], "=")
	rest := words[1:]
	for _, option := range table {
		switch {
		case option.name != name:
			continue
		case option.flag && attached:
			return nil, fmt.Errorf("option '%s' takes no argument", name)
		case option.flag:
			return rest, option.set(o, "")
		case !attached && len(rest) == 0:
			return nil, fmt.Errorf("option '%s' argument missing", name)
		case !attached:
			value, rest = rest[0], rest[1:]
		}
		if err := option.set(o, value); err != nil {
			return nil, fmt.Errorf("option '%s' argument '%s' is invalid: %w", name, value, err)
		}
		for name == stripOption && !attached && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			o.strip, rest = append(o.strip, rest[0]), rest[1:]
		}
		return rest, nil
	}
	if strings.HasPrefix(words[0], "-") {
		return nil, fmt.Errorf("unknown option '%s'", name)
	}
	return nil, fmt.Errorf("unexpected argument '%s'; srt proxy takes options only", words[0])
}

// complete says what is missing or does not go together (PRX-2, PRX-3).
func (o *proxyOptions) complete() error {
	two := o.deciderIn != noFD && o.deciderOut != noFD
	switch {
	case o.deciderFD == noFD && !two:
		return errors.New("a decider is required (--decider-fd, or --decider-in and --decider-out)")
	case o.deciderFD != noFD && (o.deciderIn != noFD || o.deciderOut != noFD):
		return errors.New("--decider-fd excludes --decider-in and --decider-out: there is one decider")
	case o.listenFD == noFD && o.listen.text == "":
		return errors.New("a listener is required (--listen-fd or --listen)")
	case o.listenFD == noFD && o.listen.exposed && !o.anyInterface:
		return fmt.Errorf("--listen %s is not a loopback address, and whoever reaches it could use this proxy; "+
			"--listen-any-interface allows that", o.listen.text)
	}
	if two && o.deciderIn == o.deciderOut {
		o.deciderFD, o.deciderIn, o.deciderOut = o.deciderIn, noFD, noFD // one two-way stream
	}
	var seen []int
	for _, fd := range []int{o.listenFD, o.deciderFD, o.deciderIn, o.deciderOut, o.lifelineFD, o.caFD} {
		if fd != noFD && slices.Contains(seen, fd) {
			return fmt.Errorf("descriptor %d is given to two options", fd)
		}
		seen = append(seen, fd)
	}
	return nil
}

// parseFD takes decimal digits only.
func parseFD(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return noFD, errors.New("it must be the number of an inherited descriptor")
	}
	if n == 2 {
		return noFD, errors.New("descriptor 2 is standard error, where srt proxy reports")
	}
	return int(n), nil
}

// parseListen parses the address of --listen and tells whether it is loopback (PRX-2).
func parseListen(text string) (listenAddress, error) {
	l := listenAddress{text: text, bind: text, exposed: true}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return listenAddress{}, errors.New("it must be host:port, IPv6 in brackets")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return listenAddress{}, errors.New("the port must be a number from 0 to 65535")
	}
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1" // whatever a resolver says
		l.bind = net.JoinHostPort(host, port)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		l.exposed = !addr.IsLoopback() || addr.Is4In6() || addr.Zone() != ""
	}
	return l, nil
}

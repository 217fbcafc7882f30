package config

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// maxHostBytes is the longest host that is looked at at all (NET-9): the longest name DNS can carry (RFC 1035 2.3.4).
const maxHostBytes = 255

// ErrMalformedHost is the class of every error of [CanonicalHost]: the text names no host (NET-9).
var ErrMalformedHost = errors.New("malformed host")

// HostError says why a requested host is malformed. It matches [ErrMalformedHost] with errors.Is.
type HostError struct {
	Reason string // one clause, for example "it is empty"; it never repeats the host
}

// Error returns one sentence. It does not repeat the host, which may come from inside a sandbox (NET-75).
func (e *HostError) Error() string { return "malformed host: " + e.Reason }

// Unwrap returns [ErrMalformedHost].
func (e *HostError) Unwrap() error { return ErrMalformedHost }

// Host is a canonical host (NET-8): a name, or a literal address. The zero value names no host and matches no entry
// but "*". A Host is a plain value: it may be compared with == and shared between goroutines.
type Host struct {
	Name string     // lower-case ASCII without trailing dot or brackets; for a literal, Addr.String()
	Addr netip.Addr // valid for a literal only: without zone, an IPv4-mapped address already as IPv4
}

// IsLiteral reports whether the host is an address rather than a name.
func (h Host) IsLiteral() bool { return h.Addr.IsValid() }

// CanonicalHost canonicalises a requested host (NET-8) and refuses what is none (NET-9). Brackets are accepted only
// round an IPv6 literal, and every inet_aton(3) spelling of an IPv4 address is that address. A name whose last label
// is a number without being an address is malformed, because resolvers disagree about it (URL Standard, "ends in a
// number"). Every error matches [ErrMalformedHost].
func CanonicalHost(raw string) (Host, error) {
	switch {
	case raw == "":
		return Host{}, &HostError{"it is empty"}
	case len(raw) > maxHostBytes:
		return Host{}, &HostError{"it is longer than 255 bytes"}
	case strings.IndexByte(raw, '%') >= 0:
		return Host{}, &HostError{"it holds a % sign, and zone ids are not accepted"}
	}
	if inner, ok := strings.CutPrefix(raw, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return Host{}, &HostError{"its opening bracket is not closed at its end"}
		}
		return literal6(inner)
	}
	if strings.IndexByte(raw, ':') >= 0 {
		return literal6(raw)
	}
	return canonicalName(strings.TrimSuffix(raw, "."))
}

// literal6 parses an IPv6 literal without zone.
func literal6(s string) (Host, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return Host{}, &HostError{"it is not an IPv6 address"}
	}
	return literalHost(addr), nil
}

// literalHost makes the host of an address: zone dropped, IPv4-mapped turned into IPv4.
func literalHost(addr netip.Addr) Host {
	addr = addr.Unmap().WithZone("")
	return Host{Name: addr.String(), Addr: addr}
}

// canonicalName canonicalises an ASCII name or IPv4 literal whose trailing dot is already dropped.
func canonicalName(s string) (Host, error) {
	if s == "" {
		return Host{}, &HostError{"it is empty"}
	}
	if i := strings.IndexFunc(s, notHostByte); i >= 0 {
		return Host{}, &HostError{"it holds a byte other than letters, digits, '.', '_' and '-'"}
	}
	s = strings.ToLower(s)
	if s[0] == '.' || s[len(s)-1] == '.' || strings.Contains(s, "..") {
		return Host{}, &HostError{"it has an empty label"}
	}
	if !numericLabel(s[strings.LastIndexByte(s, '.')+1:]) {
		return Host{Name: s}, nil
	}
	addr, ok := parseInetAton(s)
	if !ok {
		return Host{}, &HostError{"it ends in a number and is not an IPv4 address"}
	}
	return Host{Name: addr.String(), Addr: addr}, nil
}

// notHostByte reports bytes that NET-9 refuses in a name. Invalid UTF-8 arrives as U+FFFD and is refused as well.
func notHostByte(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
		return false
	}
	return true
}

// numericLabel reports whether some resolver would take a lower-case label for a number: all digits, or 0x and hex
// digits (a bare "0x" included).
func numericLabel(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// parseInetAton parses the forms of inet_aton(3): one to four parts, each decimal, octal (0...) or hexadecimal
// (0x...), the last one filling the bytes that are left.
func parseInetAton(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, part := range parts {
		n, ok := parseAtonPart(part)
		last := i == len(parts)-1
		bits := 8
		if last {
			bits = 8 * (5 - len(parts))
		}
		if !ok || n >= 1<<bits {
			return netip.Addr{}, false
		}
		sum = sum<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}

// parseAtonPart parses one part of an inet_aton(3) address.
func parseAtonPart(s string) (uint64, bool) {
	base := 10
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		s, base = hex, 16
	} else if len(s) > 1 && s[0] == '0' {
		s, base = s[1:], 8
	}
	n, err := strconv.ParseUint(s, base, 64)
	return n, err == nil
}

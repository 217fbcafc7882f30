package policy

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/srt-sandbox/srt/runtime/config"
)

// Class says why an address must not be dialled for an allowed name. The values are in the order of NET-53, which is
// also the order of a refusal's text.
type Class uint8

// The classes of NET-53. The zero Class is none of them.
const (
	ClassDenyListed  Class = iota + 1 // a literal of deniedDomains with that port
	ClassLoopback                     // 127.0.0.0/8, ::1
	ClassUnspecified                  // 0.0.0.0/8, ::
	ClassLinkLocal                    // 169.254.0.0/16, fe80::/10
	ClassMulticast                    // 224.0.0.0/4, ff00::/8
	ClassBroadcast                    // 255.255.255.255
	ClassMetadata                     // where clouds hand out credentials
	ClassListed                       // in deniedResolvedAddresses
	ClassOwn                          // on an interface of this host
	ClassNonLoopback                  // a name under localhost that leaves the host (NET-57)
	ClassUnparsable                   // no address at all
)

var classNames = [...]string{
	ClassDenyListed:  "a deny-listed address",
	ClassLoopback:    "a loopback address",
	ClassUnspecified: "an unspecified address",
	ClassLinkLocal:   "a link-local address",
	ClassMulticast:   "a multicast address",
	ClassBroadcast:   "the broadcast address",
	ClassMetadata:    "a cloud metadata address",
	ClassListed:      "a listed address",
	ClassOwn:         "one of this host's addresses",
	ClassNonLoopback: "a non-loopback address",
	ClassUnparsable:  "an unparsable address",
}

// String is the class in the words of NET-53. It never holds the address itself (NET-52). A value that is no class reads
// as "an unparsable address".
func (c Class) String() string {
	if c == 0 || int(c) >= len(classNames) {
		c = ClassUnparsable
	}
	return classNames[c]
}

// ClassText joins the classes of all answers of one lookup for the text "resolved to ...": each named once, in the order
// of NET-53, with " / " between them. No classes give "".
func ClassText(classes ...Class) string {
	sorted := slices.Clone(classes)
	slices.Sort(sorted)
	var names []string
	for _, c := range slices.Compact(sorted) {
		if name := c.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " / ")
}

// addressClass is one line of the table of NET-53.
type addressClass struct {
	class  Class
	prefix netip.Prefix
}

// fixedClasses is the table of NET-53, without the classes that depend on settings or on this host. The ranges of RFC
// 1918, CGNAT and ULA are not in it: private services are for deniedResolvedAddresses to refuse. It is built on first
// use, because the start of a command needs none of it.
var fixedClasses = sync.OnceValue(func() []addressClass {
	table := []struct {
		class  Class
		prefix string
	}{
		{ClassLoopback, "127.0.0.0/8"},
		{ClassLoopback, "::1/128"},
		{ClassUnspecified, "0.0.0.0/8"},
		{ClassUnspecified, "::/128"},
		{ClassLinkLocal, "169.254.0.0/16"},
		{ClassLinkLocal, "fe80::/10"},
		{ClassMulticast, "224.0.0.0/4"},
		{ClassMulticast, "ff00::/8"},
		{ClassBroadcast, "255.255.255.255/32"},
		{ClassMetadata, "100.100.100.200/32"},     // Alibaba Cloud
		{ClassMetadata, "168.63.129.16/32"},       // Azure
		{ClassMetadata, "192.0.0.192/32"},         // Oracle Cloud
		{ClassMetadata, "fd00:ec2::/32"},          // Amazon EC2
		{ClassMetadata, "fd20:ce::254/128"},       // Google Compute Engine
		{ClassMetadata, "fd00:c1::a9fe:a9fe/128"}, // Oracle Cloud
		{ClassMetadata, "fd00:42::42/128"},        // Scaleway
		{ClassMetadata, "fd00:a9fe:a9fe::1/128"},  // Linode
		{ClassMetadata, "fd00:100::100:200/128"},  // Alibaba Cloud
	}
	classes := make([]addressClass, len(table))
	for i, row := range table {
		classes[i] = addressClass{row.class, netip.MustParsePrefix(row.prefix)}
	}
	return classes
})

// carrier is one form of an IPv6 address that stands for an IPv4 one (NET-55).
type carrier struct {
	prefix netip.Prefix
	at     int // the byte of the IPv6 address at which the four of the IPv4 address begin
}

// carriers is the table of NET-55. The IPv4-mapped form is not in it: a mapped address is the IPv4 address (NET-8), to
// the kernel as well, and is turned into it before anything is judged.
var carriers = sync.OnceValue(func() []carrier {
	return []carrier{
		{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible, RFC 4291 2.5.5.1
		{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated, RFC 2765
		{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64, RFC 6052
		{netip.MustParsePrefix("2002::/16"), 2},        // 6to4, RFC 3056
	}
})

// carried returns the IPv4 address that an IPv6 one stands for. "::1" is an address of its own although it lies in
// ::/96: read as 0.0.0.1, it would be "an unspecified address" as well.
func carried(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() || addr.IsLoopback() {
		return netip.Addr{}, false
	}
	for _, c := range carriers() {
		if c.prefix.Contains(addr) {
			b := addr.As16()
			return netip.AddrFrom4([4]byte(b[c.at : c.at+4])), true
		}
	}
	return netip.Addr{}, false
}

// JudgeAddress gives the classes, in the order of NET-53, for which one resolved address of an allowed host must not be
// dialled on a port; none: it may be dialled. It is for destinations that are dialled directly (NET-50).
//
// h is the host that Decide gave. If h is a literal, its own address is not judged again: the lists have decided it.
// addr is one answer of the resolver: a zone is ignored, an IPv4-mapped address is the IPv4 address. isOwn tells whether
// an address, without zone, is on an interface of this host; it is asked only where the answer matters, and a nil isOwn
// counts as "yes" to every question. A nil or zero *Network refuses every address.
func (n *Network) JudgeAddress(h config.Host, port uint16, addr netip.Addr, isOwn func(netip.Addr) bool) []Class {
	addr = addr.Unmap().WithZone("")
	switch {
	case !addr.IsValid():
		return []Class{ClassUnparsable}
	case n == nil || !n.ready:
		return []Class{ClassDenyListed}
	case h.Addr == addr:
		return nil
	}
	candidates := []netip.Addr{addr}
	if inner, ok := carried(addr); ok {
		candidates = append(candidates, inner)
	}
	var found classSet
	for _, a := range candidates {
		found.addIf(ClassDenyListed, n.denied.hasLiteral(a, port) || n.denied.hasLocalhost(a, port))
	}
	// NET-58, NET-55: only the address itself is exempt, never for what it carries; a deny entry wins.
	if n.allowed.hasLiteral(addr, port) {
		return found.list()
	}
	local := isLocalhost(h)
	if local && addr.IsLoopback() {
		return found.list() // NET-57: nothing but a deny entry overrides it
	}
	found.addIf(ClassNonLoopback, local)
	for _, a := range candidates {
		n.classify(&found, a, isOwn)
	}
	if local {
		found &^= 1 << ClassLoopback // of a carried address: under localhost no ground for a refusal
	}
	return found.list()
}

// classify adds the classes of one address that hold whatever name led to it.
func (n *Network) classify(found *classSet, a netip.Addr, isOwn func(netip.Addr) bool) {
	for _, row := range fixedClasses() {
		found.addIf(row.class, row.prefix.Contains(a))
	}
	for _, prefix := range n.ranges {
		found.addIf(ClassListed, prefix.Contains(a))
	}
	// Loopback is on an interface of every host. To say so beside "a loopback address" would tell nothing.
	if !a.IsLoopback() {
		found.addIf(ClassOwn, isOwn == nil || isOwn(a))
	}
}

// classSet is a set of classes, one bit each.
type classSet uint16

func (s *classSet) addIf(c Class, yes bool) {
	if yes {
		*s |= 1 << c
	}
}

func (s classSet) list() []Class {
	var out []Class
	for c := ClassDenyListed; c <= ClassUnparsable; c++ {
		if s&(1<<c) != 0 {
			out = append(out, c)
		}
	}
	return out
}

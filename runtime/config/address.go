package config

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// ErrInvalidAddress is the class of every error of [ParseAddressRange].
var ErrInvalidAddress = errors.New("invalid address or CIDR range")

// mappedBits is the length of the prefix ::ffff:0:0/96 that marks an IPv4-mapped address (RFC 4291 2.5.5.2).
const mappedBits = 96

// ParseAddressRange parses an entry of network.deniedResolvedAddresses (CFG-55, NET-56): an IPv4 or unbracketed IPv6
// literal, alone or with a prefix length. The result is masked (no host bits) and has no zone; an IPv4-mapped range
// becomes the IPv4 range. Errors match [ErrInvalidAddress] with errors.Is and are *[EntryError].
func ParseAddressRange(entry string) (netip.Prefix, error) {
	text, length, hasLength := strings.Cut(entry, "/")
	addr, ok := parseZonedAddr(text)
	if !ok {
		return netip.Prefix{}, addressError(entry, `it must be an IPv4 or unbracketed IPv6 address such as "10.0.0.1" `+
			`or "fd00::1", optionally with a prefix length ("10.0.0.0/8")`)
	}
	addr = addr.WithZone("")
	bits := addr.BitLen()
	if hasLength {
		n, ok := parsePrefixLength(length)
		if !ok || n > bits {
			return netip.Prefix{}, addressError(entry, "its prefix length must be a number from 0 to "+strconv.Itoa(bits))
		}
		bits = n
	}
	if addr.Is4In6() {
		if bits < mappedBits {
			return netip.Prefix{}, addressError(entry, "the prefix length of an IPv4-mapped range must be at least 96; "+
				"write the IPv4 range instead")
		}
		addr, bits = addr.Unmap(), bits-mappedBits
	}
	return netip.PrefixFrom(addr, bits).Masked(), nil
}

func addressError(entry, reason string) error {
	return &EntryError{Kind: ErrInvalidAddress, Entry: entry, Reason: reason}
}

// parsePrefixLength parses one to three digits, leading zeros allowed (CFG-55).
func parsePrefixLength(s string) (int, bool) {
	if s == "" || len(s) > 3 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// parseZonedAddr parses a literal whose zone id, if any, is spelled with the unreserved characters of RFC 6874.
func parseZonedAddr(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, false
	}
	for _, r := range addr.Zone() {
		if notHostByte(r) && r != '~' {
			return netip.Addr{}, false
		}
	}
	return addr, true
}

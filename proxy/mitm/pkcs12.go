package mitm

import (
	"encoding/binary"
	"fmt"
)

// A JVM reads whom it trusts from a PKCS#12 file (RFC 7292) and takes only certificates that carry an attribute of Oracle's,
// trustedKeyUsage. All of it is public, so it is neither encrypted nor authenticated, which JVMs from version 8 on accept
// when they are given no password; the file is as safe as the directory it is in. It comes to this:
//
//	PFX { version 3, ContentInfo { data, OCTET STRING of
//	    AuthenticatedSafe { ContentInfo { data, OCTET STRING of
//	        SafeContents { SafeBag { certBag, CertBag { x509Certificate, OCTET STRING of DER }, attributes } ... } } } } }

// The tags of what is in it (X.690).
const (
	derInteger   = 0x02
	derOctets    = 0x04
	derBMPString = 0x1e
	derSequence  = 0x30
	derSet       = 0x31
	derExplicit0 = 0xa0
)

// The object identifiers in it, as whole DER values.
const (
	oidData            = "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01"             // 1.2.840.113549.1.7.1, PKCS#7 data
	oidCertBag         = "\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03"     // 1.2.840.113549.1.12.10.1.3
	oidX509            = "\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01"         // 1.2.840.113549.1.9.22.1
	oidFriendlyName    = "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09\x14"             // 1.2.840.113549.1.9.20
	oidTrustedKeyUsage = "\x06\x0c\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01" // 2.16.840.1.113894.746875.1.1
	oidAnyKeyUsage     = "\x06\x04\x55\x1d\x25\x00"                                 // 2.5.29.37.0
)

// trustStore encodes certificates as a PKCS#12 trust store without password.
func trustStore(ders [][]byte) []byte {
	size := 0
	for _, der := range ders {
		size += len(der) + 192
	}
	bags := make([]byte, 0, size)
	for i, der := range ders {
		bags = append(bags, trustBag(i, der)...)
	}
	safe := derValue(derSequence, dataContent(derValue(derSequence, bags)))
	return derValue(derSequence, []byte{derInteger, 1, 3}, dataContent(safe))
}

// trustBag is the SafeBag of a certificate. Its name must differ from the others', or a JVM keeps one of them.
func trustBag(number int, der []byte) []byte {
	var name []byte
	for _, c := range fmt.Appendf(nil, "srt-%05d", number) {
		name = binary.BigEndian.AppendUint16(name, uint16(c))
	}
	certificate := derValue(derSequence, []byte(oidX509), derValue(derExplicit0, derValue(derOctets, der)))
	attributes := derValue(derSet,
		derValue(derSequence, []byte(oidFriendlyName), derValue(derSet, derValue(derBMPString, name))),
		derValue(derSequence, []byte(oidTrustedKeyUsage), derValue(derSet, []byte(oidAnyKeyUsage))))
	return derValue(derSequence, []byte(oidCertBag), derValue(derExplicit0, certificate), attributes)
}

// dataContent is a ContentInfo of type data (RFC 7292 section 4).
func dataContent(content []byte) []byte {
	return derValue(derSequence, []byte(oidData), derValue(derExplicit0, derValue(derOctets, content)))
}

// derValue is tag, length and parts (X.690 8.1.3, the shortest form).
func derValue(tag byte, parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	b := append(make([]byte, 0, size+6), tag)
	switch {
	case size < 0x80:
		b = append(b, byte(size))
	case size < 0x100:
		b = append(b, 0x81, byte(size))
	case size < 0x10000:
		b = append(b, 0x82, byte(size>>8), byte(size))
	case size < 0x1000000:
		b = append(b, 0x83, byte(size>>16), byte(size>>8), byte(size))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0x84), uint32(size))
	}
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

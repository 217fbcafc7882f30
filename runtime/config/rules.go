package config

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// This file holds the checks of single values. Each is a rule: it returns the reason for a person, or "".

func nonEmpty(s string) string {
	if s == "" {
		return "String must contain at least 1 character(s)"
	}
	return ""
}

// atMost20 is the limit of Windows account names, which counts UTF-16 units.
func atMost20(s string) string {
	if len(utf16.Encode([]rune(s))) > 20 {
		return "String must contain at most 20 character(s)"
	}
	return ""
}

func pathNotEmpty(s string) string {
	if s == "" {
		return "Path cannot be empty"
	}
	return ""
}

// withoutNUL is FS-4: the kernel ends a path at its first NUL, so the rest would be silently dropped.
func withoutNUL(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		return "Path cannot contain a NUL byte"
	}
	return ""
}

// absolutePath is CFG-35.
func absolutePath(goos string) rule[string] {
	return func(s string) string {
		switch {
		case s == "":
			return "Path cannot be empty"
		case !isAbsolute(s, goos):
			return "Binary path must be absolute"
		}
		return ""
	}
}

func addressRange(s string) string {
	if _, err := ParseAddressRange(s); err != nil {
		return err.Error()
	}
	return ""
}

func proxyURL(s string) string {
	if _, err := ParseProxyURL(s); err != nil {
		return "Invalid url"
	}
	return ""
}

func extractPattern(s string) string {
	if _, err := CompileExtract(s); err != nil {
		return err.Error()
	}
	return ""
}

// machService is CFG-32.
func machService(s string) string {
	if at := strings.IndexByte(s, '*'); at >= 0 && at != len(s)-1 {
		return `A service name may hold one "*", and only at its end ("com.example.*")`
	}
	return ""
}

// variableName is the portable form of a variable name: [A-Za-z_][A-Za-z0-9_]*.
func variableName(s string) string {
	ok := s != ""
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		ok = ok && (letter || i > 0 && '0' <= c && c <= '9')
	}
	if !ok {
		return "Invalid environment variable name " + quoteEntry(s) +
			": use letters, digits and underscores, and no digit in front"
	}
	return ""
}

// guid is the second half of CFG-36: 8-4-4-4-12 hexadecimal digits.
func guid(s string) string {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	ok := len(s) == len(form)
	for i := 0; ok && i < len(form); i++ {
		if form[i] == '-' {
			ok = s[i] == '-'
		} else {
			ok = strings.IndexByte("0123456789abcdefABCDEF", s[i]) >= 0
		}
	}
	if !ok {
		return "Invalid GUID: write " + form + " with hexadecimal digits and without braces"
	}
	return ""
}

// maxPortSpan is the widest windows.proxyPortRange: high minus low (CFG-36).
const maxPortSpan = 64

// portRangeNode is the schema of [low, high] (CFG-36).
func portRangeNode() node[PortRange] {
	port := integer(1, 65535)
	check := func(w *walk, path string, in *PortRange) {
		before := len(w.issues)
		port.check(w, join(path, "0"), &in.Low)
		port.check(w, join(path, "1"), &in.High)
		switch {
		case len(w.issues) > before:
		case in.Low > in.High:
			w.fail(path, "The low end must not be above the high end")
		case in.High-in.Low > maxPortSpan:
			w.fail(path, fmt.Sprintf("The range is too wide: high minus low must be at most %d", maxPortSpan))
		}
	}
	return node[PortRange]{
		decode: func(w *walk, path string, tree any, out *PortRange) {
			items, reason := readAs[[]any]("array")(tree)
			if reason == "" && len(items) != 2 {
				reason = fmt.Sprintf("Expected two ports, [low, high], received %d element(s)", len(items))
			}
			if reason != "" {
				w.fail(path, reason)
				return
			}
			before := len(w.issues)
			for i, end := range []*int{&out.Low, &out.High} {
				leaf(readInteger).decode(w, join(path, fmt.Sprint(i)), items[i], end)
			}
			if len(w.issues) == before {
				check(w, path, out)
			}
		},
		check:  check,
		absent: func(in *PortRange) bool { return *in == PortRange{} },
	}
}

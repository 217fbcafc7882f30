package hostfacts

import "strings"

// profileFile is where the profile goes; AppArmor loads what is there at each boot.
const profileFile = "/etc/apparmor.d/srt"

// profile grants user namespaces to this one program. It confines nothing else (apparmor.d(5), flags=(unconfined)), since srt
// confines by itself; the abi line is what the rule "userns" needs.
func profile(f Facts) Remedy {
	if f.Program == "" {
		return Remedy{Text: "AppArmor restricts unprivileged user namespaces here. As root", Commands: []string{
			"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"}}
	}
	return Remedy{Text: "AppArmor restricts unprivileged user namespaces here. As root, write a profile for " + f.Program + " that grants \"userns\" to " +
		profileFile + " (srt check prints it) and load it",
		Commands: []string{"apparmor_parser -r " + profileFile}, File: profileFile, Content: profileText(f.Program)}
}

func profileText(program string) string {
	return "abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile srt " + attachment(program) + " flags=(unconfined) {\n  userns,\n\n" +
		"  include if exists <local/srt>\n}\n"
}

// attachment spells a path as a profile's attachment: quoted, with the characters that AARE takes for patterns escaped
// (apparmor.d(5), "Globbing").
func attachment(path string) string {
	var b strings.Builder
	plain := true
	for _, r := range path {
		if strings.ContainsRune(`*?[]{}^\",@`, r) {
			b.WriteByte('\\')
			plain = false
		}
		plain = plain && r > ' ' && r < 0x7f
		b.WriteRune(r)
	}
	if plain {
		return path
	}
	return `"` + b.String() + `"`
}

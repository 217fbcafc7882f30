package runtime

import (
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// entryAt is the entry of a list as the settings have it, by its place ("filesystem.denyRead.0", "credentials.files.1.path",
// "network.deniedDomains.2"); empty where there is none.
func entryAt(cfg *config.Config, place string) string {
	list, rest, found := cutList(place)
	if !found || cfg == nil {
		return ""
	}
	at, err := strconv.Atoi(strings.TrimSuffix(rest, ".path"))
	if err != nil || at < 0 {
		return ""
	}
	f, n := &cfg.Filesystem, &cfg.Network
	switch list {
	case "filesystem.denyRead":
		return nth(f.DenyRead, at).Path
	case "filesystem.allowRead":
		return nth(f.AllowRead, at).Path
	case "filesystem.denyWrite":
		return nth(f.DenyWrite, at).Path
	case "filesystem.allowWrite":
		return nth(f.AllowWrite, at).Path
	case "network.allowedDomains":
		return nth(n.AllowedDomains, at)
	case "network.deniedDomains":
		return nth(n.DeniedDomains, at)
	case "network.allowUnixSockets":
		return nth(n.AllowUnixSockets, at)
	case "credentials.files":
		if cfg.Credentials != nil {
			return nth(cfg.Credentials.Files, at).Path
		}
	}
	return ""
}

// nth is an element of a list, the zero value where there is none.
func nth[T any](list []T, i int) (element T) {
	if i < len(list) {
		element = list[i]
	}
	return element
}

// cutList parts "section.list.rest".
func cutList(place string) (list, rest string, found bool) {
	section, tail, found := strings.Cut(place, ".")
	if !found {
		return "", "", false
	}
	name, rest, found := strings.Cut(tail, ".")
	return section + "." + name, rest, found
}

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
	paths := func(entries []config.PathEntry) string {
		if at >= len(entries) {
			return ""
		}
		return entries[at].Path
	}
	texts := func(entries []string) string {
		if at >= len(entries) {
			return ""
		}
		return entries[at]
	}
	switch list {
	case "filesystem.denyRead":
		return paths(cfg.Filesystem.DenyRead)
	case "filesystem.allowRead":
		return paths(cfg.Filesystem.AllowRead)
	case "filesystem.denyWrite":
		return paths(cfg.Filesystem.DenyWrite)
	case "filesystem.allowWrite":
		return paths(cfg.Filesystem.AllowWrite)
	case "network.allowedDomains":
		return texts(cfg.Network.AllowedDomains)
	case "network.deniedDomains":
		return texts(cfg.Network.DeniedDomains)
	case "network.allowUnixSockets":
		return texts(cfg.Network.AllowUnixSockets)
	case "credentials.files":
		if cfg.Credentials != nil && at < len(cfg.Credentials.Files) {
			return cfg.Credentials.Files[at].Path
		}
	}
	return ""
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

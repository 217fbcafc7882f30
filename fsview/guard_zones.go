package fsview

import "strings"

// zone is what the mounts of a plan make of the objects in a part of the view.
type zone uint8

const (
	zoneReadOnly zone = iota // objects of the host that cannot be changed
	zoneWritable             // objects of the host, writable as there
	zoneMemory               // objects that the sandbox holds in memory
	zoneReplaced             // one file of the sandbox's own in place of the host's
)

// stepZones are the zones that steps begin. A pin changes nothing.
var stepZones = [...]zone{Writable: zoneWritable, ReadOnly: zoneReadOnly, HideDir: zoneMemory, HideFile: zoneReplaced, Reveal: zoneReadOnly,
	RevealWritable: zoneWritable, Pin: zoneReadOnly, EmptyDir: zoneMemory, Mask: zoneReplaced, Supplied: zoneReplaced}

// zones are the zones of a plan by the locations at which they begin. The zero value is a tree that is shown read-only.
type zones struct {
	begin map[string]zone
	root  zone
}

func zonesOf(p *Plan) zones {
	z := zones{begin: make(map[string]zone, len(p.Steps))}
	if p.RootWritable {
		z.root = zoneWritable
	}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind != Pin {
			z.begin[s.Path] = stepZones[s.Kind]
		}
	}
	return z
}

// at is the zone of a location: that of the deepest step which covers it.
func (z *zones) at(location string) zone {
	for len(z.begin) > 0 && location != "" {
		if found, ok := z.begin[location]; ok {
			return found
		}
		location = above(location)
	}
	return z.root
}

// around is the zone of the directory that holds what lies at a location.
func (z *zones) around(location string) zone {
	return z.at(above(location))
}

// above is what is left of a path without its last component: "" for `/` and what lies in it.
func above(location string) string { return location[:max(0, strings.LastIndexByte(location, '/'))] }

package runtime

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/bpf"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// seen is what was at a path.
type seen uint8

const (
	seenUnknown seen = iota
	seenNothing
	seenLink  // a symbolic link
	seenOther // something else
)

// changeLog is what a sandbox changed about names, by their places in time. *bpf.History is one.
type changeLog interface {
	At(place uint64) bpf.Change
	Next(names []string, from uint64) (place uint64, c bpf.Change)
	Last(names []string, before uint64) (place uint64, ok bool)
}

// past tells what was at a path when a call was refused, from what is there now and what the sandbox has changed since: a
// link that a path led through may be gone, or be another, by the time somebody looks.
//
//	refused call          now
//	----x---------c---c---|     forward: what had the name then is called so now, or is gone
//	c------------------         backward, for what is gone: how it came to have its name
//
// What the journal does not tell, since it began later or has a gap, is unknown; what processes outside of the sandbox change
// is not in it.
type past struct {
	log changeLog
	end uint64 // of what is known; the present
	now func(location string) (target string, found seen)
	// names are the paths of changes without links in them, as they were then; they never change.
	names *changedNames
}

// changedNames are paths of changes by their place and which of the two.
type changedNames struct {
	known map[[2]uint64]string
}

// maxChangedNames bounds what is remembered; it is found out again.
const maxChangedNames = 16384

// carried is what one change did to a name.
type carried uint8

const (
	carriedNot  carried = iota // nothing
	carriedOn                  // the object has another name since
	carriedAway                // the object has no name any more, if there was one
	carriedNew                 // there was nothing
)

// at is what was at a location just before the change at a place. The location holds no link.
func (r *resolution) at(location string, since uint64) (target string, found seen) {
	p := r.past
	names := strings.Split(location, "/")
	for k, c := p.log.Next(names, since); k < p.end; k, c = p.log.Next(names, k+1) {
		if r.steps--; r.steps < 0 || c.Kind == bpf.ChangeUnknown {
			return "", seenUnknown
		}
		next, how := r.carry(location, k, &c)
		switch how {
		case carriedOn:
			location, names = next, strings.Split(next, "/")
		case carriedNew:
			return "", seenNothing
		case carriedAway:
			if c.Kind == bpf.ChangeGone && c.Directory {
				return "", seenOther
			}
			return r.before(location, k)
		}
	}
	if r.left--; r.left < 0 {
		return "", seenUnknown
	}
	return p.now(location)
}

// carry is what a change did to what has a location.
func (r *resolution) carry(location string, k uint64, c *bpf.Change) (next string, how carried) {
	if before := r.changed(location, k, 0, c.Old); before != "" {
		switch {
		case c.Kind == bpf.ChangeMove, c.Kind == bpf.ChangeSwap:
			if after := r.nameAt(k, 1, c.New); after != "" {
				return after + location[len(before):], carriedOn
			}
			return "", carriedAway
		case c.Kind == bpf.ChangeGone && before == location:
			return "", carriedAway
		case c.Kind == bpf.ChangeGone && c.Directory:
			return "", carriedNew // of an empty directory
		}
	}
	after := r.changed(location, k, 1, c.New)
	switch {
	case after == "":
		return "", carriedNot
	case c.Kind == bpf.ChangeSwap:
		if before := r.nameAt(k, 0, c.Old); before != "" {
			return before + location[len(after):], carriedOn
		}
		return "", carriedAway
	case c.Kind == bpf.ChangeMove && after == location:
		return "", carriedAway // if there was something, its name is another's now
	}
	return "", carriedNew // no link is made in the place of something, and beneath one there is nothing
}

// before is what had a location that it lost at a place, by how it got it.
func (r *resolution) before(location string, k uint64) (target string, found seen) {
	for {
		place, ok := r.past.log.Last(strings.Split(location, "/"), k)
		if !ok {
			return "", seenUnknown
		}
		k = place
		c := r.past.log.At(k)
		if r.steps--; r.steps < 0 || c.Kind == bpf.ChangeUnknown {
			return "", seenUnknown
		}
		after := r.changed(location, k, 1, c.New)
		before := r.changed(location, k, 0, c.Old)
		switch {
		case after != "" && c.Kind == bpf.ChangeLink:
			if after != location {
				return "", seenOther
			}
			return c.Target, seenLink
		case after != "" && c.Kind == bpf.ChangeName, after != "" && c.Kind == bpf.ChangeMove, after != "" && c.Kind == bpf.ChangeSwap:
			old := r.nameAt(k, 0, c.Old)
			if old == "" {
				return "", seenUnknown
			}
			location = old + location[len(after):]
		case before != "" && c.Kind == bpf.ChangeSwap:
			other := r.nameAt(k, 1, c.New)
			if other == "" {
				return "", seenUnknown
			}
			location = other + location[len(before):]
		case before != "" && (c.Kind == bpf.ChangeGone || c.Kind == bpf.ChangeMove):
			return "", seenOther // the name was free: what had it later was made by a call that makes no link
		}
	}
}

// changed is the path of a change, if a location is at or beneath it.
func (r *resolution) changed(location string, k uint64, which int, p bpf.TracedPath) string {
	if p.LastName() == "" {
		return ""
	}
	if found := r.nameAt(k, which, p); found != "" && policy.Covers(found, location) {
		return found
	}
	return ""
}

// nameAt is a path of a change without links, as it was then; empty if that cannot be told.
func (r *resolution) nameAt(k uint64, which int, p bpf.TracedPath) string {
	names := r.past.names
	key := [2]uint64{k, uint64(which)}
	if found, known := names.known[key]; known {
		return found
	}
	if r.left--; r.left < 0 {
		return ""
	}
	found, unknown := r.walk(p, k)
	if unknown {
		found = ""
	}
	if r.left < 0 || r.steps < 0 {
		return ""
	}
	if len(names.known) >= maxChangedNames || names.known == nil {
		names.known = map[[2]uint64]string{}
	}
	names.known[key] = found
	return found
}

// maxLinksWalked is how many links the kernel follows in one path (path_resolution(7)).
const maxLinksWalked = 40

// walk is where a path led just before the change at a place. unknown says that it cannot be told; the path is then as far as
// it could be.
func (r *resolution) walk(p bpf.TracedPath, since uint64) (found string, unknown bool) {
	follow := p.Follow || strings.HasSuffix(p.Text, "/")
	at, rest, links := path.Clean("/"+p.Dir), strings.Split(p.Text, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, name)
		last := strings.Trim(strings.Join(rest, ""), "/") == "" && !follow
		if r.visited != nil {
			r.visited[name] = struct{}{}
		}
		if at = next; last || strings.HasPrefix(next, "/proc/") {
			continue
		}
		target, what := r.at(next, since)
		switch {
		case what == seenUnknown:
			unknown = true
		case what == seenNothing: // there is no link beneath it
			return path.Join(append([]string{at}, rest...)...), unknown
		case what == seenLink && target != "":
			if links++; links > maxLinksWalked || len(rest) > unix.PathMax {
				return p.Path(), unknown
			}
			rest = append(strings.Split(target, "/"), rest...)
			if at = path.Dir(at); target[0] == '/' {
				at = "/"
			}
			if strings.HasSuffix(target, "/") {
				follow = true
			}
		}
	}
	return at, unknown
}

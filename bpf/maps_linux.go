package bpf

// mapSpec describes a map of the programs: their sources have the same, and a test compares them.
type mapSpec struct {
	name                       string
	kind, key, value, max, how uint32
}

// Indices into mapSpecs, which are the maps of the hooks (programs/judge.h).
const (
	mapSessions = iota
	mapDirs
	mapNames
	mapRefusals
	mapLost
	mapCount
)

const (
	kindHash, kindArray, kindPercpuArray, kindLRU, kindRingbuf = 1, 2, 6, 9, 27
	noPrealloc                                                 = 1
	maxRules                                                   = 65536 // of all sessions together, spellings counted
	ringSize                                                   = 65536 // bytes
)

var mapSpecs = [mapCount]mapSpec{
	mapSessions: {"sessions", kindHash, 4, 16, 4096, noPrealloc},
	mapDirs:     {"dirs", kindHash, dirKeySize, 8, maxRules, noPrealloc},
	mapNames:    {"names", kindHash, nameKeySize, 4, maxRules, noPrealloc},
	mapRefusals: {"refusals", kindRingbuf, 0, 0, ringSize, 0},
	mapLost:     {"lost", kindArray, 4, 8, 1, 0},
}

func mapIndex(specs []mapSpec, name string) int {
	for i := range specs {
		if specs[i].name == name {
			return i
		}
	}
	return -1
}

// Sizes of the structures in programs/judge.h.
const (
	dirKeySize  = 24
	nameKeySize = nameSize + 8
)

// Kinds of name.
const (
	namesExact  = 1
	namesFolded = 2
)

// dirKey is a directory as the kernel knows it, in one session.
type dirKey struct {
	session, ino uint64
	dev          uint32
}

func (k dirKey) encode() []byte {
	b := make([]byte, dirKeySize)
	le.PutUint64(b, k.session)
	le.PutUint64(b[8:], k.ino)
	le.PutUint32(b[16:], k.dev)
	return b
}

// nameKey is a name in a directory of one session.
type nameKey struct {
	name        string
	token, kind uint32
}

func (k nameKey) encode() []byte {
	b := make([]byte, nameKeySize)
	copy(b[:maxName], k.name)
	le.PutUint32(b[nameSize:], k.token)
	le.PutUint32(b[nameSize+4:], k.kind)
	return b
}

// words encodes 32-bit numbers one after another.
func words(numbers ...uint32) []byte {
	b := make([]byte, 0, 4*len(numbers))
	for _, n := range numbers {
		b = le.AppendUint32(b, n)
	}
	return b
}

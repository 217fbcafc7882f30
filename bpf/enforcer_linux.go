package bpf

import (
	_ "embed" // the object
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

//go:embed programs/names.o
var namesObject []byte

// hooks are the programs that refuse names, in the order in which they are attached.
var hooks = [...]string{"inode_create", "inode_mkdir", "inode_mknod", "inode_symlink", "inode_link", "inode_rename"}

// programSet is an object in the kernel: its maps, and the programs that are no hooks.
type programSet struct {
	object         *object
	loader         load
	find, identify *os.File
}

// newProgramSet makes the maps and the helping programs. Errors are of type *Unsupported.
func newProgramSet() (*programSet, error) {
	s, err := newFinder()
	if err != nil {
		return nil, err
	}
	if err := s.fill(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// newFinder makes a set that can find functions only.
func newFinder() (*programSet, error) {
	object, err := parseObject(namesObject, mapSpecs[:])
	if err != nil {
		return nil, refused("read the programs of this binary", err)
	}
	s := &programSet{object: object, loader: load{license: object.license, maps: make([]*os.File, mapCount)}}
	if s.find, err = s.load("find"); err != nil {
		if errors.Is(err, unix.EPERM) {
			return nil, powerless(err)
		}
		return nil, err
	}
	return s, nil
}

// fill makes what the hooks need.
func (s *programSet) fill() (err error) {
	for i, spec := range mapSpecs {
		if s.loader.maps[i], err = createMap(spec); err != nil {
			if errors.Is(err, unix.EPERM) && i == 0 {
				return powerless(err)
			}
			return refused("make the map "+spec.name, err)
		}
	}
	if s.loader.btf, err = loadBTF(s.object.btf); err != nil {
		return refused("load the types of the programs", err)
	}
	s.identify, err = s.load("identify")
	return err
}

// load loads one program. Errors are of type *Unsupported.
func (s *programSet) load(name string) (*os.File, error) {
	prog, there := s.object.programs[name]
	if !there {
		return nil, refused("find the program "+name, errObject)
	}
	l := s.loader
	if hook, isHook := strings.CutPrefix(prog.section, "lsm/"); isHook {
		id, err := s.functionID("bpf_lsm_" + hook)
		if err != nil {
			return nil, refused("find the hook "+hook, err)
		}
		l.kind, l.attach, l.attachID = progLSM, attachLSM, id
	} else {
		l.kind, l.flags = progSyscall, flagSleepable
	}
	file, err := l.program(name, prog)
	if err != nil {
		return nil, refused("load the program "+name, err)
	}
	return file, nil
}

// findSize is that of struct find in programs/names.bpf.c.
const findSize, findName = 72, 64

// functionID is the number of a function in the kernel's own type information.
func (s *programSet) functionID(name string) (uint32, error) {
	if len(name) >= findName {
		return 0, fmt.Errorf("%s: %w", name, unix.ENAMETOOLONG)
	}
	ctx := make([]byte, findSize)
	copy(ctx, name)
	if err := run(s.find, ctx); err != nil {
		return 0, err
	}
	id := int64(le.Uint64(ctx[findName:]))
	if id <= 0 || id >= 1<<32 { // an error, or a function of a module
		return 0, fmt.Errorf("%s: %w", name, unix.ENOENT)
	}
	return uint32(id), nil
}

func (s *programSet) close() {
	closeAll(s.loader.maps...)
	closeAll(s.loader.btf, s.find, s.identify)
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// Enforcer is the hooks of this process in the kernel, and the rules of all its sandboxes. Safe for concurrent use.
type Enforcer struct {
	set   *programSet
	links []*os.File

	mu       sync.Mutex
	closed   bool
	sessions map[uint64]*Session
	lastID   uint64
	token    uint32 // the last given to a directory
	reader   *reader
}

// Load loads and attaches the hooks. A process needs one Enforcer for all its sandboxes: hooks are asked by every
// creation of a name on the host, and the kernel takes a few dozen of each kind. It takes milliseconds. Errors are of type
// *[Unsupported].
func Load() (*Enforcer, error) {
	if err := prerequisites(); err != nil {
		return nil, err
	}
	set, err := newProgramSet()
	if err != nil {
		return nil, err
	}
	e := newEnforcer(set)
	for _, name := range hooks {
		if err := e.attach(name); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

// newEnforcer makes an Enforcer without hooks.
func newEnforcer(set *programSet) *Enforcer {
	return &Enforcer{set: set, sessions: map[uint64]*Session{}}
}

func (e *Enforcer) attach(name string) error {
	prog, err := e.set.load(name)
	if err != nil {
		return err
	}
	defer prog.Close() // the link holds it
	link, err := attach(prog, "")
	if err != nil {
		return refused("attach the hook "+name, err)
	}
	e.links = append(e.links, link)
	return nil
}

// Links are the descriptors that keep the hooks in the kernel, and with them the rules. They stay the Enforcer's to
// close. A sandbox whose first process holds copies of them keeps its rules even when this process is killed, for as long
// as that process lives; the command itself must not inherit them.
func (e *Enforcer) Links() []*os.File { return append([]*os.File(nil), e.links...) }

// Lost is how many refusals could not be reported, since the buffer was full. They were refused all the same.
func (e *Enforcer) Lost() (uint64, error) {
	value := make([]byte, 8)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return 0, ErrClosed
	}
	err := element(cmdMapLookup, e.set.loader.maps[mapLost], words(0), value)
	return le.Uint64(value), err
}

// Close takes the hooks away, and with them the rules of all sessions. No Report is called afterwards.
func (e *Enforcer) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return ErrClosed
	}
	e.closed = true
	r := e.reader
	e.mu.Unlock()
	closeAll(e.links...)
	if r != nil {
		r.close()
	}
	e.set.close()
	return nil
}

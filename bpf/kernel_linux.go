package bpf

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of bpf(2).
const (
	cmdMapCreate      = 0
	cmdMapLookup      = 1
	cmdMapUpdate      = 2
	cmdMapDelete      = 3
	cmdProgLoad       = 5
	cmdTestRun        = 10
	cmdRawTracepoint  = 17 // attaches LSM programs, too
	cmdBTFLoad        = 18
	cmdMapUpdateBatch = 26
	cmdMapDeleteBatch = 27
)

// Types of program and of attachment.
const (
	progRawTracepoint = 17
	progTracing       = 26
	progLSM           = 29
	progSyscall       = 31
	attachRawTP       = 23
	attachLSM         = 27
	flagSleepable     = 1 << 4
)

// call makes one bpf(2) with a structure of linux/bpf.h. What the structure points to must be pinned.
func call[T any](command uintptr, attr *T) (int, error) {
	for {
		r, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
		switch errno {
		case 0:
			return int(r), nil
		case unix.EINTR, unix.EAGAIN: // The verifier gives way to signals, which the runtime sends itself.
			continue
		}
		return -1, os.NewSyscallError("bpf", errno)
	}
}

// pinned is memory that the kernel is told the address of.
type pinned struct{ runtime.Pinner }

func (p *pinned) at(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	p.Pin(&b[0])
	return uint64(uintptr(unsafe.Pointer(&b[0])))
}

func label(name string) (b [16]byte) {
	copy(b[:15], name)
	return b
}

// newDescriptor wraps what bpf(2) returned, which is close-on-exec.
func newDescriptor(fd int, err error, name string) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "bpf "+name), nil
}

func createMap(s mapSpec) (*os.File, error) {
	attr := struct {
		kind, key, value, max, flags, inner, node uint32
		name                                      [16]byte
	}{kind: s.kind, key: s.key, value: s.value, max: s.max, flags: s.how, name: label(s.name)}
	fd, err := call(cmdMapCreate, &attr)
	return newDescriptor(fd, err, s.name)
}

func loadBTF(btf []byte) (*os.File, error) {
	var p pinned
	defer p.Unpin()
	attr := struct {
		btf, log                 uint64
		size, logSize, level, to uint32
	}{btf: p.at(btf), size: uint32(len(btf))}
	fd, err := call(cmdBTFLoad, &attr)
	return newDescriptor(fd, err, "types")
}

// progAttr is the part of union bpf_attr for BPF_PROG_LOAD.
type progAttr struct {
	kind, count    uint32
	insns, license uint64
	logLevel       uint32
	logSize        uint32
	log            uint64
	_              uint32 // kern_version
	flags          uint32
	name           [16]byte
	_              uint32 // prog_ifindex
	attach         uint32
	btf            uint32
	funcInfoSize   uint32
	funcInfo       uint64
	funcInfoCount  uint32
	_              uint32 // line_info_rec_size
	_              uint64 // line_info
	_              uint32 // line_info_cnt
	attachID       uint32
	_              uint32 // attach_prog_fd
	reloCount      uint32
	fds, relos     uint64
	reloSize, _    uint32 // core_relo_rec_size, log_true_size
}

// load is what is needed to load a program of an object.
type load struct {
	kind, flags, attach, attachID uint32
	btf                           *os.File   // nil for a program that needs no relocation
	maps                          []*os.File // as in the object's table; nil for one that the program does not use
	license                       string
	log                           []byte // what the verifier says, if not empty
}

func (l *load) program(name string, prog program) (*os.File, error) {
	var p pinned
	defer p.Unpin()
	var fds []byte
	for _, m := range l.maps {
		fd := ^uint32(0) // none
		if m != nil {
			fd = uint32(m.Fd())
		}
		fds = le.AppendUint32(fds, fd)
	}
	attr := progAttr{kind: l.kind, count: uint32(len(prog.code) / insnSize), insns: p.at(prog.code),
		license: p.at(append([]byte(l.license), 0)), flags: l.flags, name: label(name), attach: l.attach, attachID: l.attachID,
		fds: p.at(fds)}
	if l.btf != nil {
		attr.btf = uint32(l.btf.Fd())
		attr.funcInfoSize, attr.funcInfo, attr.funcInfoCount = funcInfoSize, p.at(prog.funcInfo), uint32(len(prog.funcInfo)/funcInfoSize)
		attr.reloSize, attr.relos, attr.reloCount = coreReloSize, p.at(prog.relos), uint32(len(prog.relos)/coreReloSize)
	}
	if len(l.log) > 0 {
		attr.logLevel, attr.logSize, attr.log = 1, uint32(len(l.log)), p.at(l.log)
	}
	fd, err := call(cmdProgLoad, &attr)
	runtime.KeepAlive(l)
	return newDescriptor(fd, err, name)
}

// attach makes a hook effective, as long as the returned descriptor or a copy of it is open. name is that of a raw
// tracepoint, and empty for programs that are loaded for a function or tracepoint.
func attach(prog *os.File, name string) (*os.File, error) {
	var p pinned
	defer p.Unpin()
	attr := struct {
		name   uint64
		fd, to uint32
		cookie uint64
	}{fd: uint32(prog.Fd())}
	if name != "" {
		attr.name = p.at(append([]byte(name), 0))
	}
	fd, err := call(cmdRawTracepoint, &attr)
	runtime.KeepAlive(prog)
	return newDescriptor(fd, err, "link")
}

// run runs a program of section "syscall" on ctx, which it may change.
func run(prog *os.File, ctx []byte) error {
	var p pinned
	defer p.Unpin()
	attr := struct {
		fd, result, sizeIn, sizeOut uint32
		in, out                     uint64
		repeat, duration            uint32
		ctxSizeIn, ctxSizeOut       uint32
		ctxIn, ctxOut               uint64
		flags, cpu, batch, pad      uint32
	}{fd: uint32(prog.Fd()), ctxSizeIn: uint32(len(ctx)), ctxIn: p.at(ctx)}
	_, err := call(cmdTestRun, &attr)
	runtime.KeepAlive(prog)
	return err
}

// element does one lookup, update or removal in a map. A lookup writes value.
func element(command uintptr, m *os.File, key, value []byte) error {
	var p pinned
	defer p.Unpin()
	attr := struct {
		fd, pad           uint32
		key, value, flags uint64
	}{fd: uint32(m.Fd()), key: p.at(key), value: p.at(value)}
	_, err := call(command, &attr)
	runtime.KeepAlive(m)
	return err
}

// batch does many updates or removals in a map. It reports how many were done.
func batch(command uintptr, m *os.File, count int, keys, values []byte) (int, error) {
	if count == 0 {
		return 0, nil
	}
	var p pinned
	defer p.Unpin()
	attr := struct {
		in, out, keys, values uint64
		count, fd             uint32
		elemFlags, flags      uint64
	}{keys: p.at(keys), values: p.at(values), count: uint32(count), fd: uint32(m.Fd())}
	_, err := call(command, &attr)
	runtime.KeepAlive(m)
	if errors.Is(err, unix.EFAULT) {
		return 0, err // count is not written then
	}
	return int(attr.count), err
}

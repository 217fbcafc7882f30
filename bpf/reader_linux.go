package bpf

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Layout of struct refusal in programs/judge.h.
const (
	refusalSize = 40 + nameSize
	refusalComm = 24
	refusalName = 40
)

// Layout of a ring buffer's record (kernel/bpf/ringbuf.c): a header of 8 bytes, its content, padding to 8 bytes.
const (
	ringHeader  = 8
	ringBusy    = 1 << 31
	ringDiscard = 1 << 30
)

// reader takes records out of a ring buffer that programs write to. The buffer bounds what is waiting.
type reader struct {
	file   *os.File
	raw    syscall.RawConn
	use    func(record []byte) // which must not keep it
	size   uint64
	ended  chan struct{}
	readUp *uint64 // written by this side
	filled *uint64 // by the kernel

	mu       sync.Mutex // one drains at a time
	consumer []byte
	producer []byte // the kernel's page, then the buffer twice in a row, so that no record is parted
}

// newReader starts to read a ring buffer of size bytes. The map stays the caller's.
func newReader(m *os.File, size uint64, use func(record []byte)) (*reader, error) {
	fd, err := unix.FcntlInt(m.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl F_DUPFD_CLOEXEC", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // has the runtime wait for it without a thread
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl F_SETFL", err)
	}
	r := &reader{file: os.NewFile(uintptr(fd), m.Name()), use: use, size: size, ended: make(chan struct{})}
	if err := r.start(fd); err != nil {
		r.unmap()
		r.file.Close()
		return nil, fmt.Errorf("read what the programs tell: %w", err)
	}
	go r.loop()
	return r, nil
}

func (r *reader) start(fd int) (err error) {
	page := os.Getpagesize()
	if r.raw, err = r.file.SyscallConn(); err != nil {
		return err
	}
	if r.consumer, err = unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	if r.producer, err = unix.Mmap(fd, int64(page), page+2*int(r.size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	r.readUp = (*uint64)(unsafe.Pointer(&r.consumer[0]))
	r.filled = (*uint64)(unsafe.Pointer(&r.producer[0]))
	return nil
}

func (r *reader) loop() {
	defer close(r.ended)
	for {
		// The poll is edge-triggered: what comes after the drain wakes it up, however early.
		err := r.raw.Read(func(uintptr) bool { return r.drain() > 0 })
		if err != nil {
			return
		}
	}
}

// drain uses all that is there, in order, and says how much that was.
func (r *reader) drain() (count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.producer == nil {
		return 0
	}
	data := r.producer[os.Getpagesize():]
	for at := atomic.LoadUint64(r.readUp); at < atomic.LoadUint64(r.filled); {
		record := data[at%r.size:]
		header := atomic.LoadUint32((*uint32)(unsafe.Pointer(&record[0])))
		if header&ringBusy != 0 {
			break // its writer will wake us up
		}
		size := header &^ (ringBusy | ringDiscard)
		if header&ringDiscard == 0 {
			r.use(record[ringHeader : ringHeader+size])
		}
		count++
		at += uint64(ringHeader+size+7) &^ 7
		atomic.StoreUint64(r.readUp, at)
	}
	return count
}

// settle uses all that was written by now, behind what another processor is still writing, too.
func (r *reader) settle() {
	r.mu.Lock()
	var end uint64
	if r.producer != nil {
		end = atomic.LoadUint64(r.filled)
	}
	r.mu.Unlock()
	for r.drainedTo() < end {
		if r.drain() == 0 {
			// No event tells when a writer is done; it holds no lock, and gives way to nobody.
			time.Sleep(20 * time.Microsecond) //nolint:forbidigo // as said
		}
	}
}

// drainedTo is up to where the buffer has been used, or all of it once it is closed.
func (r *reader) drainedTo() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.producer == nil {
		return ^uint64(0)
	}
	return atomic.LoadUint64(r.readUp)
}

func decodeRefusal(b []byte) (session uint64, refusal Refusal) {
	name := b[refusalName : refusalName+min(int(le.Uint16(b[22:])), maxName)]
	return le.Uint64(b), Refusal{Rule: int(le.Uint32(b[8:])), Pid: int(le.Uint32(b[12:])), Tid: int(le.Uint32(b[16:])),
		Operation: Operation(le.Uint16(b[20:])), Process: text(b[refusalComm:][:16]), Name: string(name)}
}

// close ends the reading, what is there by then included.
func (r *reader) close() {
	r.drain()
	if err := r.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return // cannot be: a file of the poller closes
	}
	<-r.ended
	r.unmap()
}

func (r *reader) unmap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range [][]byte{r.consumer, r.producer} {
		if m != nil {
			// It fails for wrong arguments alone.
			_ = unix.Munmap(m)
		}
	}
	r.consumer, r.producer = nil, nil
}

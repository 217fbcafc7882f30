package bpf

import (
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// eventRecord is a record as the program writes it.
func eventRecord(call uint32, errno syscall.Errno, flags uint64, parts ...string) []byte {
	b := le.AppendUint64(le.AppendUint64(le.AppendUint64(nil, 7), 99), flags)
	b = append(b, words(12, 13)...)
	b = le.AppendUint16(le.AppendUint16(le.AppendUint16(le.AppendUint16(b, uint16(call)), uint16(errno)), 0), 0)
	b = append(le.AppendUint64(b, 5), words(6, 0)...)
	b = append(b, "comm\x00garbage....."[:16]...)
	for _, i := range []int{0, 2, 1, 3} {
		b = le.AppendUint16(b, uint16(len(parts[i])))
	}
	return append(b, strings.Join(parts, "")...)
}

func tracerOfCalls() *Tracer {
	t := &Tracer{calls: tracedCalls()}
	for i, c := range t.calls {
		t.byCall[c.number] = uint16(i + 1)
	}
	return t
}

// VIO-10: a path is absolute and has no "." or "..".
func TestEvent_Decode_VIO10(t *testing.T) {
	e, ok := decodeEvent(eventRecord(unix.SYS_RENAMEAT2, unix.EROFS, unix.RENAME_EXCHANGE, "c/b/a/", "../x/./y", "", "/new"))
	if !ok || e.session != 7 || e.pid != 12 || e.tid != 13 || e.time != 99 || e.comm != "comm" {
		t.Fatalf("%v, %+v", ok, e)
	}
	r, ok := tracerOfCalls().refused(&e)
	if !ok || r.Call != "renameat2" || r.Errno != unix.EROFS || len(r.Paths) != 2 {
		t.Fatalf("%v, %+v", ok, r)
	}
	if got := r.Paths[0].Path(); got != "/a/b/x/y" {
		t.Error(got)
	}
	if got := r.Paths[1].Path(); got != "/new" || r.Paths[1].Follow {
		t.Error(got)
	}
	for _, p := range r.Paths {
		if len(p.Effects) != 2 || p.Effects[0] != EffectRemove {
			t.Errorf("an exchange does %v", p.Effects)
		}
	}
}

// The flags of an open say what it would have done, and whether it follows a link.
func TestEvent_Opens(t *testing.T) {
	for _, tt := range []struct {
		flags  int
		want   Effect
		follow bool
	}{
		{unix.O_RDONLY, EffectRead, true},
		{unix.O_RDONLY | unix.O_NOFOLLOW, EffectRead, false},
		{unix.O_RDONLY | unix.O_TRUNC, EffectChange, true},
		{unix.O_WRONLY, EffectChange, true},
		{unix.O_RDWR, EffectChange, true},
		{unix.O_RDONLY | unix.O_CREAT, EffectCreate, true},
		{unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, EffectCreate, false},
		{unix.O_WRONLY | unix.O_EXCL, EffectChange, true},
		{unix.O_RDWR | unix.O_TMPFILE, EffectChange, true},
	} {
		for _, number := range []uint32{unix.SYS_OPENAT, unix.SYS_OPENAT2} {
			e, ok := decodeEvent(eventRecord(number, unix.EACCES, uint64(tt.flags), "", "/x", "", ""))
			if !ok {
				t.Fatal("not decoded")
			}
			r, ok := tracerOfCalls().refused(&e)
			if !ok || r.Paths[0].Effects[0] != tt.want || r.Paths[0].Follow != tt.follow {
				t.Errorf("%#x: %v, %+v", tt.flags, ok, r)
			}
		}
	}
}

// Each call is in the table once, within the program's bounds, and says what it does.
func TestCalls_Table(t *testing.T) {
	numbers, names := map[uint32]bool{}, map[string]bool{}
	for _, c := range tracedCalls() {
		if c.number >= maxCalls || numbers[c.number] || names[c.name] {
			t.Errorf("%s, %d: twice, or too large", c.name, c.number)
		}
		numbers[c.number], names[c.name] = true, true
		if b := c.encode(); len(b) != 8 || b[0] == 0 {
			t.Errorf("%s: %v", c.name, b)
		}
		if len(c.effectsOf(0, 0)) == 0 || len(c.effects[1]) > 0 && c.path[1] == none {
			t.Errorf("%s: effects %v", c.name, c.effects)
		}
	}
	if tracedArchitecture && len(names) < 29 {
		t.Errorf("%d calls", len(names))
	}
}

// Whatever is in a record is read within its bounds, and gives absolute paths.
func FuzzEvent_Decode(f *testing.F) {
	f.Add(eventRecord(unix.SYS_OPENAT, unix.EACCES, 0, "b/a/", "c", "", ""))
	f.Add(eventRecord(unix.SYS_RENAMEAT2, unix.EROFS, 2, "", "/c", "x/", ""))
	f.Add(make([]byte, eventHeader))
	tracer := tracerOfCalls()
	f.Fuzz(func(t *testing.T, b []byte) {
		e, ok := decodeEvent(b)
		if !ok {
			return
		}
		if total := len(e.base[0]) + len(e.text[0]) + len(e.base[1]) + len(e.text[1]); total+eventHeader > len(b) || len(e.comm) > 16 {
			t.Errorf("%d bytes of text of %d", total, len(b))
		}
		r, ok := tracer.refused(&e)
		if !ok {
			return
		}
		for _, p := range r.Paths {
			if !strings.HasPrefix(p.Path(), "/") || !strings.HasPrefix(p.Dir, "/") || len(p.Effects) == 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}

package fsview

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// procNames are the names in /proc as package os reads them.
func procNames(t *testing.T) (names []string) {
	t.Helper()
	list, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.Trim(e.Name(), "0123456789") != "" && (e.IsDir() || e.Type().IsRegular()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// What is remembered of /proc counts only as long as the kernel says the same.
func TestProcEntries_FS47(t *testing.T) {
	want := procNames(t)
	ask := func(what string) {
		t.Helper()
		got, err := ProcEntries()
		got = slices.Clone(got)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", what, got, err, want)
		}
	}
	lastProc.Store(nil)
	ask("first")
	known := lastProc.Load()
	if known == nil {
		t.Fatal("nothing is remembered")
	}
	ask("again")
	if lastProc.Load() != known {
		t.Error("an unchanged /proc was taken apart again")
	}
	end := lastRecord(known.raw)
	wrong := []string{"wrong"}
	for what, raw := range map[string][]byte{
		"a name gone":      slices.Concat(known.raw[:len(known.raw)-len(end)-len(lastRecord(known.raw[:len(known.raw)-len(end)]))], end),
		"another name":     bytes.Replace(known.raw, []byte("cpuinfo"), []byte("cpuinfa"), 1),
		"a name more":      slices.Concat(known.raw, end),
		"nothing at all":   {},
		"more than it has": append(slices.Clone(known.raw), make([]byte, 4096)...),
	} {
		lastProc.Store(&procList{raw: raw, names: wrong})
		ask(what)
	}
}

// lastRecord is the last struct linux_dirent64 of a list.
func lastRecord(raw []byte) (last []byte) {
	for len(raw) > 0 {
		record, ok := firstRecord(raw)
		if !ok {
			return nil
		}
		last, raw = record, raw[len(record):]
	}
	return last
}

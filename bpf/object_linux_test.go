package bpf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// The reader of objects is compared with a library that knows all of the format.
func TestObject_AgreesWithLibrary(t *testing.T) {
	for file, of := range map[string]struct {
		content []byte
		maps    []mapSpec
	}{"names.o": {namesObject, mapSpecs[:]}, "probe.o": {probeObject, mapSpecs[:]}, "trace.o": {traceObject, tracerMaps[:]}} {
		content := of.content
		o, err := parseObject(content, of.maps)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if len(spec.Programs) != len(o.programs) {
			t.Errorf("%s: %d programs, want %d", file, len(o.programs), len(spec.Programs))
		}
		for name, want := range spec.Programs {
			got, functions := o.programs[name], 1
			if name == "finished" {
				functions = 2 // and one that it hands to the kernel
			}
			if got.section != want.SectionName || o.license != want.License || len(got.funcInfo) != functions*funcInfoSize ||
				le.Uint32(got.funcInfo) != 0 || len(got.relos) == 0 && !strings.HasPrefix(name, "find") && name != "ask" {
				t.Errorf("%s, %s: section %q, license %q, %d bytes about functions, %d about relocations", file, name, got.section,
					o.license, len(got.funcInfo), len(got.relos))
			}
			compareCode(t, file+", "+name, got.code, want.Instructions, of.maps)
		}
		for _, s := range of.maps {
			m := spec.Maps[s.name]
			if m == nil || uint32(m.Type) != s.kind || m.KeySize != s.key || m.ValueSize != s.value || m.MaxEntries != s.max || m.Flags != s.how {
				t.Errorf("%s, map %s: %+v, want %+v", file, s.name, s, m)
			}
		}
		if len(spec.Maps) != len(of.maps) {
			t.Errorf("%s: %d maps, want %d", file, len(of.maps), len(spec.Maps))
		}
	}
}

// compareCode compares all but the place of a map in an instruction, which each side says in its own way.
func compareCode(t *testing.T, what string, got []byte, want asm.Instructions, maps []mapSpec) {
	t.Helper()
	at := 0
	for _, ins := range want {
		if ins.IsLoadFromMap() {
			index := le.Uint32(got[at+4:])
			if got[at+1]>>4 != pseudoMapIdx || index >= uint32(len(maps)) || maps[index].name != ins.Reference() {
				t.Errorf("%s, instruction %d: map %d, want %s", what, at/insnSize, index, ins.Reference())
			}
			at += 2 * insnSize
			continue
		}
		if ins.IsLoadOfFunctionPointer() { // the library says which function, and puts it behind the program as this reader does
			if to := at + insnSize*(1+int(int32(le.Uint32(got[at+4:])))); got[at+1]>>4 != pseudoFunc || to <= at || to >= len(got) {
				t.Errorf("%s, instruction %d: refers to byte %d", what, at/insnSize, to)
			}
			at += 2 * insnSize
			continue
		}
		var b bytes.Buffer
		if _, err := ins.Marshal(&b, le); err != nil {
			t.Fatalf("%s, instruction %d: %v", what, at/insnSize, err)
		}
		// A jump to a label has no distance yet in the library's form.
		one := b.Bytes()
		if ins.OpCode.Class().IsJump() {
			one, b = append([]byte{one[0], one[1]}, got[at+2:at+4]...), bytes.Buffer{}
			one = append(one, got[at+4:at+8]...)
		}
		if !bytes.Equal(got[at:at+len(one)], one) {
			t.Errorf("%s, instruction %d: %x, want %x", what, at/insnSize, got[at:at+len(one)], one)
		}
		at += len(one)
	}
	if at != len(got) {
		t.Errorf("%s: %d bytes, want %d", what, len(got), at)
	}
}

// The kernel's verifier takes each hook: as a program of another type where it takes no hooks.
func TestObject_HooksVerify(t *testing.T) {
	k := newTestKernel(t)
	for _, name := range hooks {
		l := k.set.loader
		l.kind = progRawTracepoint
		prog, err := l.program(name, k.set.object.programs[name])
		if err != nil {
			l.log = make([]byte, 1<<22)
			_, err = l.program(name, k.set.object.programs[name])
			t.Errorf("%s: %v\n%s", name, err, text(bytes.TrimRight(l.log, "\x00")))
			continue
		}
		prog.Close()
		if _, err := k.set.functionID("bpf_lsm_" + name); err != nil {
			t.Errorf("the kernel has no hook %s: %v", name, err)
		}
	}
	if _, err := k.set.functionID("bpf_lsm_there_is_no_such_hook"); err == nil {
		t.Error("a hook that does not exist is found")
	}
}

// A hook may answer 0 or an error number only (check_return_code in the verifier); these answer 0 or EROFS.
func TestObject_HooksAnswer(t *testing.T) {
	o, err := parseObject(namesObject, mapSpecs[:])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range hooks {
		answers := map[int32]bool{}
		code := o.programs[name].code
		for at := 0; at < len(code); at += insnSize {
			if op := code[at]; (op == 0xb4 || op == 0xb7) && code[at+1]&0xf == 0 { // w0 = constant, r0 = constant
				answers[int32(le.Uint32(code[at+4:]))] = true
			}
		}
		if !answers[0] || !answers[-30] || len(answers) != 2 {
			t.Errorf("%s answers %v", name, answers)
		}
	}
}

func TestObject_Damaged(t *testing.T) {
	for _, file := range [][]byte{nil, []byte("\x7fELF"), []byte("#!/bin/sh"), namesObject[:64], namesObject[:len(namesObject)/2]} {
		if _, err := parseObject(file, mapSpecs[:]); !errors.Is(err, errObject) {
			t.Errorf("%d bytes: %v", len(file), err)
		}
	}
}

// Whoever changes a source must compile it (build/bpf.sh), with or without a compiler in sight here.
func TestObject_IsOfItsSources(t *testing.T) {
	sums, err := os.ReadFile("programs/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("programs/*.[ch]")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	for _, source := range sources {
		b, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if line := hex.EncodeToString(sum[:]) + "  ./" + filepath.Base(source); !strings.Contains(string(sums), line+"\n") {
			t.Errorf("the objects were made of another %s: run build/bpf.sh", source)
		}
	}
	if got := strings.Count(string(sums), "\n"); got != len(sources) {
		t.Errorf("the objects were made of %d sources, not of %d: run build/bpf.sh", got, len(sources))
	}
}

// The library would cost every start of srt 0.2 ms: it is for tests.
func TestPackage_StartsNothing(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			if path := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(path, "github.com/") || path == "debug/elf" {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}

package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// object is a compiled file of programs, ready for the kernel, which itself finds out where the members of its structures
// lie (CO-RE, Linux 5.17). Only the objects that are committed with this package are read: what is checked here is that
// they are what this reader understands.
type object struct {
	btf      []byte
	license  string
	programs map[string]program
}

// program is one function of an object.
type program struct {
	section  string // what it is for: "lsm/HOOK", "syscall", "raw_tp/NAME"
	code     []byte // instructions; the maps in it are indices into the object's table
	funcInfo []byte // struct bpf_func_info
	relos    []byte // struct bpf_core_relo
}

// Sizes and numbers of ELF (elf(5)), of BPF instructions and of BTF (linux/bpf.h, linux/btf.h).
const (
	insnSize        = 8
	symbolSize      = 24
	relocationSize  = 16
	symbolFunction  = 2
	sectionSymbols  = 2
	sectionRelocate = 9
	opLoadDouble    = 0x18 // BPF_LD | BPF_IMM | BPF_DW
	pseudoMapIdx    = 5    // BPF_PSEUDO_MAP_IDX
	funcInfoSize    = 8
	coreReloSize    = 16
)

var errObject = errors.New("not an object of this package")

var le = binary.LittleEndian

// elfSection is a section header with its content.
type elfSection struct {
	name       string
	kind       uint32
	data       []byte
	link, info uint32
}

// elfSymbol is a line of the symbol table.
type elfSymbol struct {
	name        string
	kind        byte
	section     uint16
	value, size uint64
}

// parseObject reads a 64-bit little-endian relocatable file of clang, whose maps are those of a table.
func parseObject(file []byte, maps []mapSpec) (o *object, err error) {
	defer func() {
		// The file is a constant of the binary: an index that is out of bounds is a mistake of the build.
		if r := recover(); r != nil {
			o, err = nil, fmt.Errorf("%w: %v", errObject, r)
		}
	}()
	if !bytes.HasPrefix(file, []byte("\x7fELF\x02\x01")) {
		return nil, errObject
	}
	sections := elfSections(file)
	symbols := elfSymbols(sections)
	o = &object{programs: map[string]program{}}
	ext, callbacks := []byte(nil), []callback(nil)
	for i, s := range sections {
		switch {
		case s.name == ".BTF":
			o.btf = bytes.Clone(s.data)
		case s.name == ".BTF.ext":
			ext = s.data
		case s.name == "license":
			o.license = text(s.data)
		case s.kind == sectionRelocate:
			found, err := relocate(sections[s.info].data, s.data, symbols, maps, sections)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			for i := range found {
				found[i].section = int(s.info)
			}
			callbacks = append(callbacks, found...)
		}
		for _, symbol := range symbols {
			if int(symbol.section) == i && symbol.kind == symbolFunction {
				o.programs[symbol.name] = program{section: s.name, code: s.data[symbol.value : symbol.value+symbol.size]}
			}
		}
	}
	if o.btf == nil || ext == nil || o.license == "" {
		return nil, errObject
	}
	repairBTF(o.btf, sections, symbols)
	o.addInfo(ext, symbols)
	o.link(callbacks, symbols)
	return o, nil
}

func elfSections(file []byte) []elfSection {
	at, size, count, names := le.Uint64(file[40:]), uint64(le.Uint16(file[58:])), uint64(le.Uint16(file[60:])), le.Uint16(file[62:])
	sections := make([]elfSection, count)
	nameAt := make([]uint32, count)
	for i := range sections {
		h := file[at+uint64(i)*size:]
		offset, length := le.Uint64(h[24:]), le.Uint64(h[32:])
		nameAt[i] = le.Uint32(h)
		s := elfSection{kind: le.Uint32(h[4:]), link: le.Uint32(h[40:]), info: le.Uint32(h[44:])}
		if s.kind != 8 { // SHT_NOBITS
			s.data = bytes.Clone(file[offset : offset+length])
		}
		sections[i] = s
	}
	for i := range sections {
		sections[i].name = text(sections[names].data[nameAt[i]:])
	}
	return sections
}

func elfSymbols(sections []elfSection) []elfSymbol {
	var symbols []elfSymbol
	for _, s := range sections {
		if s.kind != sectionSymbols {
			continue
		}
		for at := 0; at < len(s.data); at += symbolSize {
			d := s.data[at:]
			symbols = append(symbols, elfSymbol{name: text(sections[s.link].data[le.Uint32(d):]), kind: d[4] & 0xf,
				section: le.Uint16(d[6:]), value: le.Uint64(d[8:]), size: le.Uint64(d[16:])})
		}
	}
	return symbols
}

// relocate puts the indices of maps into instructions, and gives those that refer to a function. Nothing else needs
// relocation: there are no calls between functions.
func relocate(code, relocations []byte, symbols []elfSymbol, maps []mapSpec, sections []elfSection) (found []callback, err error) {
	for at := 0; at < len(relocations); at += relocationSize {
		offset, symbol := le.Uint64(relocations[at:]), symbols[le.Uint64(relocations[at+8:])>>32]
		if code[offset] == opLoadDouble && sections[symbol.section].name == functionSection {
			found = append(found, callback{at: offset, function: symbol.value + uint64(le.Uint32(code[offset+4:]))})
			continue
		}
		index := mapIndex(maps, symbol.name)
		if index < 0 || code[offset] != opLoadDouble {
			return nil, fmt.Errorf("%w: %q is no map", errObject, symbol.name)
		}
		code[offset+1] = code[offset+1]&0x0f | pseudoMapIdx<<4
		le.PutUint32(code[offset+4:], uint32(index))
	}
	return found, nil
}

// The kinds of BTF type that carry data after their header, and how much for each of vlen elements.
var btfExtra = [32]struct{ fixed, each int }{
	1: {fixed: 4}, 3: {fixed: 12}, 4: {each: 12}, 5: {each: 12}, 6: {each: 8}, 13: {each: 8}, 14: {fixed: 4}, 15: {each: 12},
	17: {fixed: 4}, 19: {each: 12},
}

// repairBTF writes the sizes and places of global variables into their sections (BTF_KIND_DATASEC), which a compiler
// leaves to the linker and without which the kernel refuses the whole.
func repairBTF(btf []byte, sections []elfSection, symbols []elfSymbol) {
	header := int(le.Uint32(btf[4:]))
	types := btf[header+int(le.Uint32(btf[8:])):][:le.Uint32(btf[12:])]
	names := btf[header+int(le.Uint32(btf[16:])):]
	nameOf := []uint32{0} // by type
	for at := 0; at < len(types); {
		info := le.Uint32(types[at+4:])
		kind, vlen := info>>24&0x1f, int(info&0xffff)
		nameOf = append(nameOf, le.Uint32(types[at:]))
		if kind == 15 {
			section := sectionNamed(sections, text(names[le.Uint32(types[at:]):]))
			le.PutUint32(types[at+8:], uint32(len(sections[section].data)))
			for i := range vlen {
				entry := types[at+12+12*i:]
				for _, symbol := range symbols {
					if symbol.name == text(names[nameOf[le.Uint32(entry)]:]) {
						le.PutUint32(entry[4:], uint32(symbol.value))
					}
				}
			}
		}
		at += 12 + btfExtra[kind].fixed + vlen*btfExtra[kind].each
	}
}

func sectionNamed(sections []elfSection, name string) int {
	for i := range sections {
		if sections[i].name == name {
			return i
		}
	}
	panic("no section " + name)
}

// addInfo takes from .BTF.ext what belongs to each program: which function it is, and what is to be relocated.
func (o *object) addInfo(ext []byte, symbols []elfSymbol) {
	names := o.btf[le.Uint32(o.btf[4:])+le.Uint32(o.btf[16:]):]
	body := ext[le.Uint32(ext[4:]):]
	part := func(field int) []byte { return body[le.Uint32(ext[field:]):][:le.Uint32(ext[field+4:])] }
	o.eachInfo(part(8), names, symbols, func(p *program, record []byte, offset uint32) {
		le.PutUint32(record, offset/insnSize)
		p.funcInfo = append(p.funcInfo, record[:funcInfoSize]...)
	})
	o.eachInfo(part(24), names, symbols, func(p *program, record []byte, offset uint32) {
		le.PutUint32(record, offset)
		p.relos = append(p.relos, record[:coreReloSize]...)
	})
}

// eachInfo walks the records of one kind. offset is where a record points to in its program, in bytes.
func (o *object) eachInfo(part, names []byte, symbols []elfSymbol, use func(p *program, record []byte, offset uint32)) {
	size := int(le.Uint32(part))
	for part = part[4:]; len(part) > 0; {
		section, count := text(names[le.Uint32(part):]), int(le.Uint32(part[4:]))
		part = part[8:]
		for range count {
			record, at := bytes.Clone(part[:size]), uint64(le.Uint32(part))
			part = part[size:]
			for _, symbol := range symbols {
				p, there := o.programs[symbol.name]
				if there && p.section == section && at >= symbol.value && at < symbol.value+symbol.size {
					use(&p, record, uint32(at-symbol.value))
					o.programs[symbol.name] = p
				}
			}
		}
	}
}

// text is the string up to a NUL byte.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b[:min(len(b), 256)]), "\x00")
	return s
}

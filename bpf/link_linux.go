package bpf

import "bytes"

// functionSection is where the functions are that programs hand to the kernel (bpf_loop in bpf-helpers(7)).
const functionSection = ".text"

// pseudoFunc marks an instruction that loads the address of a function (BPF_PSEUDO_FUNC).
const pseudoFunc = 4

// callback is an instruction that loads the address of a function.
type callback struct {
	section  int    // where the instruction is
	at       uint64 // in the section, in bytes
	function uint64 // where the function begins in functionSection
}

// link puts behind each program the functions that it refers to, and takes them off the list of programs.
func (o *object) link(callbacks []callback, symbols []elfSymbol) {
	for _, program := range symbols {
		p, there := o.programs[program.name]
		if !there || program.kind != symbolFunction || p.section == functionSection {
			continue
		}
		p.code = bytes.Clone(p.code)
		places := map[uint64]int{} // of functions in code
		for _, c := range callbacks {
			if c.section != int(program.section) || c.at < program.value || c.at >= program.value+program.size {
				continue
			}
			place, known := places[c.function]
			if !known {
				place = len(p.code)
				p.attach(o.function(c.function, symbols))
				places[c.function] = place
			}
			at := int(c.at - program.value)
			p.code[at+1] = p.code[at+1]&0x0f | pseudoFunc<<4
			le.PutUint32(p.code[at+4:], uint32((place-at)/insnSize-1))
		}
		o.programs[program.name] = p
	}
	for name, p := range o.programs {
		if p.section == functionSection {
			delete(o.programs, name)
		}
	}
}

// function is the one that begins at a place in functionSection.
func (o *object) function(at uint64, symbols []elfSymbol) program {
	for _, s := range symbols {
		if p, there := o.programs[s.name]; there && p.section == functionSection && s.kind == symbolFunction && s.value == at {
			return p
		}
	}
	panic("no such function")
}

// attach appends a function, and what is known about it, moved to its new place.
func (p *program) attach(f program) {
	base := uint32(len(p.code))
	p.code = append(p.code, f.code...)
	for at := 0; at < len(f.funcInfo); at += funcInfoSize {
		record := bytes.Clone(f.funcInfo[at : at+funcInfoSize])
		le.PutUint32(record, le.Uint32(record)+base/insnSize)
		p.funcInfo = append(p.funcInfo, record...)
	}
	for at := 0; at < len(f.relos); at += coreReloSize {
		record := bytes.Clone(f.relos[at : at+coreReloSize])
		le.PutUint32(record, le.Uint32(record)+base)
		p.relos = append(p.relos, record...)
	}
}

package main

import (
	"errors"
	"io"
)

// maxAnswer is the length of the longest line that is read; what is typed beyond is dropped.
const maxAnswer = 40

// errEndOfInput is the end-of-file key on an empty line.
var errEndOfInput = errors.New("end of input")

// keys are the special characters of a terminal (termios(3)); 0 is none.
type keys struct{ interrupt, quit, erase, kill, eof byte }

// The keys that every terminal may send, whatever its own are.
const (
	backspace, del = 0x08, 0x7f
	escape         = 0x1b
	bell           = 0x07
)

// How far a sequence of the terminal has been read (ECMA-48 5.3 and 5.4). Function keys, pasted text's brackets and the
// answers of a terminal to what a program asked it are such; none is an answer of the person.
const (
	outside       = iota
	afterEscape   // one character more
	inControl     // CSI: until a final byte
	inString      // OSC, DCS, APC, PM, SOS: until BEL or ST
	inStringEnd   // ESC within: a backslash makes it ST
	afterThatOne  // SS2, SS3: one character more
	finalByteFrom = 0x40
	finalByteTo   = 0x7e
)

// lineReader reads what a person types on a terminal that gives single keys and shows none by itself.
type lineReader struct {
	tty   io.ReadWriter
	keys  keys
	line  []byte
	state int
	ready []byte // read and not looked at
}

// read gives the next line, without its end. A line break within a sequence ends that too, and drops the line.
func (r *lineReader) read() (string, error) {
	buf := make([]byte, 64)
	for {
		for len(r.ready) > 0 {
			b := r.ready[0]
			r.ready = r.ready[1:]
			line, done, err := r.key(b)
			if done || err != nil {
				return line, err
			}
		}
		n, err := r.tty.Read(buf)
		if n == 0 && err != nil {
			return "", err
		}
		r.ready = buf[:n]
	}
}

// key takes one byte.
func (r *lineReader) key(b byte) (line string, done bool, err error) {
	switch {
	case b == '\r' || b == '\n':
		line = string(r.line)
		if r.state != outside {
			line = ""
		}
		r.line, r.state = nil, outside
		return line, true, nil
	case b != 0 && b == r.keys.interrupt:
		return "", false, &keyboardInterrupt{}
	case b != 0 && b == r.keys.quit:
		return "", false, &keyboardInterrupt{quit: true}
	case r.state != outside || b == escape:
		r.state = follow(r.state, b)
		return "", false, nil
	case b != 0 && b == r.keys.eof:
		if len(r.line) == 0 {
			return "", false, errEndOfInput
		}
		return "", false, nil
	}
	return "", false, r.edit(b)
}

// edit changes the line, and shows that.
func (r *lineReader) edit(b byte) (err error) {
	const rubOut = "\b \b"
	switch {
	case b == backspace || b == del || b != 0 && b == r.keys.erase:
		if len(r.line) > 0 {
			r.line = r.line[:len(r.line)-1]
			_, err = io.WriteString(r.tty, rubOut)
		}
	case b != 0 && b == r.keys.kill:
		for range r.line {
			if _, err = io.WriteString(r.tty, rubOut); err != nil {
				return err
			}
		}
		r.line = nil
	case b >= ' ' && b < del && len(r.line) < maxAnswer:
		r.line = append(r.line, b)
		_, err = r.tty.Write([]byte{b})
	}
	return err
}

// follow gives the state after one more byte of a sequence.
func follow(state int, b byte) int {
	switch state {
	case inControl:
		if b >= finalByteFrom && b <= finalByteTo {
			return outside
		}
		return inControl
	case inString:
		switch b {
		case bell:
			return outside
		case escape:
			return inStringEnd
		}
		return inString
	case inStringEnd:
		if b == '\\' {
			return outside
		}
		return inString
	case afterEscape:
		switch b {
		case '[':
			return inControl
		case ']', 'P', '_', '^', 'X':
			return inString
		case 'N', 'O':
			return afterThatOne
		}
		return outside
	case afterThatOne:
		return outside
	}
	return afterEscape
}

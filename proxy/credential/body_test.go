package credential

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// replaced is the whole of text through Body.
func replaced(t testing.TB, i *Injection, text string) string {
	t.Helper()
	out, err := io.ReadAll(i.Body(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// pieces returns its parts one Read at a time.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	return n, nil
}

// readBy reads all of r with a buffer of size bytes.
func readBy(r io.Reader, size int) (string, error) {
	var out []byte
	buf := make([]byte, size)
	for {
		n, err := r.Read(buf)
		out = append(out, buf[:n]...)
		if err == io.EOF {
			return string(out), nil
		}
		if err != nil {
			return string(out), err
		}
	}
}

func bodyStore(t testing.TB) *Injection {
	t.Helper()
	s := newStore(t)
	plant(t, s, "A", tokenFake, "secret-a", "h.example")
	plant(t, s, "B", otherFake, "", "h.example")
	plant(t, s, "C", longFake, strings.Repeat("long", 50), "h.example")
	// What a value holds is never looked through again.
	plant(t, s, "J", jwtFake, tokenFake+jwtFake, "h.example")
	return at(t, s, "h.example")
}

var bodyCases = []struct{ name, in, want string }{
	{"empty", "", ""},
	{"none", "nothing here", "nothing here"},
	{"alone", tokenFake, "secret-a"},
	{"start", tokenFake + " end", "secret-a end"},
	{"end", "start " + tokenFake, "start secret-a"},
	{"side by side", tokenFake + tokenFake + otherFake + longFake, "secret-asecret-a" + strings.Repeat("long", 50)},
	{"value holds sentinels", "<" + jwtFake + ">", "<" + tokenFake + jwtFake + ">"},
	{"beginning only", "x " + tokenFake[:46], "x " + tokenFake[:46]},
	{"beginning, then another", tokenFake[:30] + tokenFake, tokenFake[:30] + "secret-a"},
	{"shared beginnings", "fake_value_fake_value_" + tokenFake[11:], "fake_value_secret-a"},
	{"another's beginning inside", tokenFake[:46] + "9" + jwtFake[:20] + tokenFake, tokenFake[:46] + "9" + jwtFake[:20] + "secret-a"},
	{"unknown", "fake_value_00000000-0000-4000-8000-000000000009", "fake_value_00000000-0000-4000-8000-000000000009"},
	{"other case", strings.ToUpper(tokenFake), strings.ToUpper(tokenFake)},
	{"binary", "\x00\xff" + tokenFake + "\xff", "\x00\xffsecret-a\xff"},
}

// TestCRED25_EverySplit is case 24: wherever the body is parted, and however it is read.
func TestCRED25_EverySplit(t *testing.T) {
	i := bodyStore(t)
	for _, tc := range bodyCases {
		for _, size := range []int{1, 7, 64, directBytes, 1 << 16} {
			for split := range len(tc.in) + 1 {
				src := pieces{[]byte(tc.in[:split]), []byte(tc.in[split:])}
				if got, err := readBy(i.Body(&src), size); got != tc.want || err != nil {
					t.Fatalf("%s, split at %d, read by %d: %q, %v", tc.name, split, size, got, err)
				}
			}
			for wrap, reader := range map[string]func(io.Reader) io.Reader{
				"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data with error": iotest.DataErrReader,
			} {
				if got, err := readBy(i.Body(reader(strings.NewReader(tc.in))), size); got != tc.want || err != nil {
					t.Fatalf("%s, %s, read by %d: %q, %v", tc.name, wrap, size, got, err)
				}
			}
		}
	}
}

func TestCRED25_Conforms(t *testing.T) {
	i := bodyStore(t)
	in, want := strings.Repeat("x", 5000), strings.Repeat("x", 5000)
	in, want = in+tokenFake+in+jwtFake[:30], want+"secret-a"+want+jwtFake[:30]
	if err := iotest.TestReader(i.Body(strings.NewReader(in)), []byte(want)); err != nil {
		t.Error(err)
	}
}

// drip returns its parts one Read at a time, and nothing at all when it has none.
type drip struct{ pieces }

func (d *drip) Read(b []byte) (int, error) {
	n, err := d.pieces.Read(b)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// TestCRED25_HoldsBack: what cannot become a sentinel goes on at once, however little of it there is, and what can waits.
func TestCRED25_HoldsBack(t *testing.T) {
	i := bodyStore(t)
	for _, size := range []int{1, 64, 1 << 16} {
		src := &drip{}
		body, buf := i.Body(src), make([]byte, size)
		for k, step := range []struct{ in, want string }{
			{"question 1\n", "question 1\n"},
			{"off", "of"},
			{"of", "fo"},
			{"x", "fx"},
			{"a" + tokenFake[:46], "a"},
			{"1", "secret-a"},
			{"eyJ", ""},
			{"!" + tokenFake + "fake", "eyJ!secret-a"},
			{"r", "faker"},
		} {
			src.pieces = append(src.pieces, []byte(step.in))
			got := ""
			for {
				n, err := body.Read(buf)
				got += string(buf[:n])
				if errors.Is(err, io.ErrNoProgress) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got != step.want {
				t.Fatalf("read by %d, step %d: %q, want %q", size, k, got, step.want)
			}
		}
	}
}

func TestCRED25_Errors(t *testing.T) {
	i := bodyStore(t)
	broken := errors.New("broken")
	for _, size := range []int{1, 64, 1 << 16} {
		src := io.MultiReader(strings.NewReader("a"+tokenFake+tokenFake[:20]), iotest.ErrReader(broken))
		if got, err := readBy(i.Body(src), size); got != "asecret-a"+tokenFake[:20] || !errors.Is(err, broken) {
			t.Errorf("read by %d: %q, %v", size, got, err)
		}
		if _, err := readBy(i.Body(silent{}), size); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("read by %d, silent source: %v", size, err)
		}
	}
	if n, err := i.Body(iotest.ErrReader(broken)).Read(nil); n != 0 || err != nil {
		t.Errorf("empty buffer: %d, %v", n, err)
	}
}

// silent returns nothing, again and again.
type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

// TestCRED25_Changed: a value that goes away while it is written ends the body, so that the request does not look
// complete; before that, the fake goes out.
func TestCRED25_Changed(t *testing.T) {
	for name, away := range map[string]func(*Store, *secret){
		"closed":    func(s *Store, _ *secret) { _ = s.Close() },
		"shortened": func(_ *Store, x *secret) { change(t, x, "v") },
	} {
		s := newStore(t)
		x := plant(t, s, "A", tokenFake, "secret-a", "h.example")
		body := at(t, s, "h.example").Body(strings.NewReader("12" + tokenFake + "end"))
		buf := make([]byte, 5)
		if n, err := io.ReadFull(body, buf); err != nil || string(buf[:n]) != "12sec" {
			t.Fatalf("%q, %v", buf[:n], err)
		}
		away(s, x)
		if n, err := body.Read(buf); n != 0 || !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %q, %v", name, buf[:n], err)
		}
	}
	s := newStore(t)
	plant(t, s, "A", tokenFake, "secret-a", "h.example")
	i := at(t, s, "h.example")
	_ = s.Close()
	if got, err := readBy(i.Body(strings.NewReader("1"+tokenFake+"2")), 3); got != "1"+tokenFake+"2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestCRED25_Memory: nothing is allocated for a body without a sentinel beyond the reader itself.
func TestCRED25_Memory(t *testing.T) {
	i := bodyStore(t)
	data, buf := bytes.Repeat([]byte("fake values and other text, eyJ and so on\n"), 10000), make([]byte, 32<<10)
	allocs := testing.AllocsPerRun(10, func() {
		body := i.Body(bytes.NewReader(data))
		for {
			if _, err := body.Read(buf); err != nil {
				return
			}
		}
	})
	if allocs > 6 {
		t.Errorf("%v allocations", allocs)
	}
}

// reference is what Body does, said in another way: at each place the shortest sentinel that stands there.
func reference(text string, values map[string]string) string {
	var out strings.Builder
	for p := 0; p < len(text); {
		best := ""
		for sentinel := range values {
			if strings.HasPrefix(text[p:], sentinel) && (best == "" || len(sentinel) < len(best)) {
				best = sentinel
			}
		}
		if best == "" {
			out.WriteByte(text[p])
			p++
			continue
		}
		out.WriteString(values[best])
		p += len(best)
	}
	return out.String()
}

func BenchmarkBody(b *testing.B) {
	text := strings.Repeat("Of all the files that were kept, the key ones took effect first; {\"kind\": \"value_of_fact\"}\n", 10<<10)
	random := make([]byte, len(text))
	_, _ = rand.Read(random)
	for _, bc := range []struct {
		name string
		data []byte
		jwt  bool
	}{
		{"text", []byte(text), false},
		{"text/two families", []byte(text), true},
		{"binary", random, false},
		{"base64", []byte(base64.StdEncoding.EncodeToString(random)), false},
		{"zeroes", make([]byte, len(text)), false},
		{"dense", bytes.Repeat([]byte(tokenFake), 20<<10), false},
		{"one byte of the beginning", bytes.Repeat([]byte("k"), len(text)), false},
		{"the beginning", bytes.Repeat([]byte("fake_value_"), 90<<10), false},
	} {
		b.Run(bc.name, func(b *testing.B) {
			s := newStore(b)
			plant(b, s, "A", tokenFake, "ghp_0123456789012345678901234567890123456", "h.example")
			if bc.jwt {
				plant(b, s, "J", jwtFake, "j", "h.example")
			}
			i, buf := at(b, s, "h.example"), make([]byte, 32<<10)
			b.SetBytes(int64(len(bc.data)))
			b.ReportAllocs()
			for b.Loop() {
				body := i.Body(bytes.NewReader(bc.data))
				for {
					if _, err := body.Read(buf); err != nil {
						break
					}
				}
			}
		})
	}
}

// FuzzBody: however a body is parted and read, what comes out is what replacing in the whole of it gives. The sentinels
// are short and overlap, which those of srt never do.
func FuzzBody(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string, splits []byte, size uint16, first, second, third string) {
		s := newStore(t)
		values := map[string]string{}
		for k, sentinel := range []string{first, second, third} {
			if _, known := values[sentinel]; known || sentinel == "" {
				continue
			}
			values[sentinel] = strings.Repeat(string(rune('0'+k)), k) + first
			plant(t, s, "S", sentinel, values[sentinel], "h.example")
		}
		if len(values) == 0 {
			return
		}
		var src pieces
		rest := []byte(text)
		for _, n := range splits {
			n := min(int(n), len(rest))
			if n == 0 {
				continue
			}
			src, rest = append(src, rest[:n:n]), rest[n:]
		}
		src = append(src, rest)
		got, err := readBy(at(t, s, "h.example").Body(&src), int(size)+1)
		if want := reference(text, values); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	})
}

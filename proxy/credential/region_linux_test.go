package credential

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/runtime/config"
)

// TestMappingCRED35: no child inherits the memory and no core file holds it, which the kernel says of it in smaps (man
// proc_pid_smaps: dc is "do not copy area on fork", dd "do not include area into core dump").
func TestMappingCRED35(t *testing.T) {
	for _, size := range []int{1, chunkSize, maxFile + 1} {
		memory, err := newScratch(size)
		if err != nil {
			t.Fatal(err)
		}
		// Only ours and those of other tests have both flags.
		if flags := protectedMappings(t); flags == 0 {
			t.Errorf("CRED-35: %d bytes: no mapping has the flags dc and dd", size)
		}
		if len(memory.mapping) != size || bytes.Count(memory.mapping, []byte{0}) != size {
			t.Errorf("%d bytes of memory, or not zero, want %d", len(memory.mapping), size)
		}
		memory.release()
		memory.release()
	}
}

// protectedMappings counts the anonymous mappings of this process that are neither inherited nor dumped.
func protectedMappings(t *testing.T) int {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(smaps)) {
		flags, ok := strings.CutPrefix(line, "VmFlags:")
		if ok && strings.Contains(flags, " dc ") && strings.Contains(flags, " dd ") {
			count++
		}
	}
	return count
}

// TestRegion: places are apart, grow, are used again and never hold what was in them before.
func TestRegion(t *testing.T) {
	var r region
	var spots [][]byte
	for i := range 3000 {
		spot, err := r.place(bytes.Repeat([]byte{byte(i)}, i%700))
		if err != nil {
			t.Fatal(err)
		}
		spots = append(spots, spot)
	}
	large, err := r.place(bytes.Repeat([]byte{7}, 5*chunkSize))
	if err != nil {
		t.Fatal(err)
	}
	for i, spot := range spots {
		if len(spot) != i%700 || bytes.Count(spot, []byte{byte(i)}) != i%700 {
			t.Fatalf("place %d holds something else", i)
		}
	}
	chunks := len(r.chunks)
	for _, spot := range append(spots, large) {
		r.release(spot)
		if whole := spot[:cap(spot)]; bytes.Count(whole, []byte{0}) != len(whole) {
			t.Fatal("a released place still holds something")
		}
	}
	for i := range 3000 {
		spot, err := r.place(make([]byte, i%700))
		if err != nil {
			t.Fatal(err)
		}
		if free := spot[:cap(spot)]; bytes.Count(free, []byte{0}) != len(free) {
			t.Fatal("a place holds what was in it before")
		}
	}
	if len(r.chunks) > chunks+1 {
		t.Errorf("%d mappings, %d before everything was released: places are not used again", len(r.chunks), chunks)
	}
	if err := r.destroy(); err != nil || r.chunks != nil {
		t.Errorf("destroy: %v", err)
	}
}

// helperVariable makes the test binary play the host side: see TestMemoryCRED35.
const helperVariable = "SRT_TEST_CREDENTIAL_HELPER"

// TestMemoryCRED35: a process that masks a file holds its values once, a child of it not at all, and after Close neither
// does. Another process looks, so that looking leaves no copies; the values come from files alone.
func TestMemoryCRED35(t *testing.T) {
	if dir := os.Getenv(helperVariable); dir != "" {
		helper(t, dir)
		return
	}
	dir := realTemp(t)
	// Unlike anything else in memory, and not in the environment or the arguments of the helper.
	secret := "planted" + hex.EncodeToString([]byte(randomSentinel(0)[len(sentinelPrefix):]))[:40]
	write(t, filepath.Join(dir, "whole"), secret+"w\n")
	write(t, filepath.Join(dir, "captured"), strings.Repeat("# é\n", 100)+"token="+secret+"c\n")
	write(t, filepath.Join(dir, "jwt"), jwt(plainHeader, `{"sub":"`+secret+`j"}`, "c2ln"))
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryCRED35$")
	cmd.Env = append(os.Environ(), helperVariable+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewScanner(out)
	lines.Scan()
	child, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "child "))
	if err != nil {
		t.Fatalf("the helper says %q", lines.Text())
	}
	for _, kind := range []string{"w", "c", "j"} {
		if n := occurrences(t, cmd.Process.Pid, secret+kind); n != 1 {
			t.Errorf("CRED-35: the process that masks holds %s %d times, want once", kind, n)
		}
	}
	if n := occurrences(t, child, "fake_value_"); n == 0 {
		t.Error("the child's memory cannot be seen")
	}
	if n := occurrences(t, child, secret); n != 0 {
		t.Errorf("CRED-35: a child of the process that masks holds values, %d times", n)
	}
	fmt.Fprintln(in, "close")
	lines.Scan()
	if lines.Text() != "closed" {
		t.Fatalf("the helper says %q", lines.Text())
	}
	if n := occurrences(t, cmd.Process.Pid, secret); n != 0 {
		t.Errorf("CRED-35: after Close values are there %d times", n)
	}
}

// helper masks the files of TestMemoryCRED35, makes a child that is a copy of it, waits, and closes its store.
func helper(t *testing.T, dir string) {
	s, err := NewStore()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"whole", "captured", "jwt"}
	c := &config.Credentials{Files: []config.FileCredential{
		{Credential: config.Credential{Mode: config.ModeMask}},
		{Credential: config.Credential{Mode: config.ModeMask, Extract: `token=(\S+)`}},
		{Credential: config.Credential{Mode: config.ModeMask, Decode: config.DecodeJWT, MaskClaims: []string{"sub"}}},
	}}
	m := mustLaunch(t, s, c, nil)
	for i, name := range names {
		if _, err := m.File(i, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	child := cloneAndPause()
	fmt.Printf("child %d\n", child)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(child, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	if _, err := unix.Wait4(child, nil, 0, nil); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	fmt.Println("closed")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// cloneAndPause makes a child that is a copy of this process, as fork(2) does, and does nothing.
//
//go:norace
//go:nosplit
func cloneAndPause() int {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && errno == 0 {
		for {
			unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	return int(pid)
}

// occurrences counts how often text is in the memory of a process: as bytes, and as the runes that patterns are run on.
func occurrences(t *testing.T, pid int, text string) int {
	t.Helper()
	return occurrencesOf(t, pid, text)[0]
}

// occurrencesOf is occurrences for several texts at once.
func occurrencesOf(t *testing.T, pid int, texts ...string) []int {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	wide := make([][]byte, len(texts))
	for k, text := range texts {
		for _, unit := range utf16.Encode([]rune(text)) {
			wide[k] = append(wide[k], byte(unit), byte(unit>>8), 0, 0)
		}
	}
	counts, read := make([]int, len(texts)), 0
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var access string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &access); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(access, "r") || to-from > 1<<30 || from > math.MaxInt64 {
			continue // what nothing was ever written to, or reserved address space
		}
		content := make([]byte, to-from)
		n, err := mem.ReadAt(content, int64(from))
		if err != nil && n == 0 {
			continue // [vvar], and areas beyond the end of a file
		}
		read += n
		for k, text := range texts {
			counts[k] += bytes.Count(content[:n], []byte(text)) + bytes.Count(content[:n], wide[k])
		}
	}
	if read == 0 {
		t.Fatalf("nothing of process %d can be read", pid)
	}
	return counts
}

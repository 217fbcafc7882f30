package credential

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// TestCRED35_SigningLeavesNoKey: a process that has signed holds the key where it always lay and nowhere else, and none
// of the keys that were derived from it. Another process looks, so that looking leaves no copies.
func TestCRED35_SigningLeavesNoKey(t *testing.T) {
	if dir := os.Getenv(helperVariable); dir != "" {
		signingHelper(t, dir)
		return
	}
	for _, size := range []int{40, 100} { // longer than a block with AWS4 before it, the key is hashed first
		dir := realTemp(t)
		secret := strings.Repeat(hex.EncodeToString([]byte(randomSentinel(0)[len(sentinelPrefix):])), 2)[:size]
		write(t, filepath.Join(dir, "key"), secret)
		cmd := exec.Command(os.Args[0], "-test.run=^TestCRED35_SigningLeavesNoKey$")
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
		lines := bufio.NewScanner(out)
		lines.Scan()
		step := func(key []byte, message string) []byte {
			h := hmac.New(sha256.New, key)
			_, _ = io.WriteString(h, message)
			return h.Sum(nil)
		}
		derived := []byte("AWS4" + secret)
		keys := []string{secret}
		for _, part := range []string{"20150830", "us-east-1", "service", scopeEnd} {
			derived = step(derived, part)
			keys = append(keys, string(derived))
		}
		toSign := step(derived, signingText(lines.Text()))
		if got := hex.EncodeToString(toSign); !strings.HasSuffix(lines.Text(), "Signature="+got) {
			t.Errorf("the helper signed %q, not with %s", lines.Text(), got)
		}
		counts := occurrencesOf(t, cmd.Process.Pid, keys...)
		if !slices.Equal(counts, []int{1, 0, 0, 0, 0}) {
			t.Errorf("CRED-35: key of %d bytes: it and the four derived from it are there %d times, want the first once", size, counts)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// signingText is the string to sign of the request of case 32, which the helper signs.
func signingText(authorization string) string {
	if !strings.Contains(authorization, "Credential=AKIDEXAMPLE"+serviceFor) {
		return ""
	}
	request := "GET\n/\n\nhost:" + awsHost + "\nx-amz-date:" + amzDate + "\n\nhost;x-amz-date\n" + emptyHash
	return hmacAlgorithm + "\n" + amzDate + "\n" + strings.TrimPrefix(serviceFor, "/") + "\n" + hashHex([]byte(request))
}

// signingHelper signs with the key in a file, tells the signature and waits.
func signingHelper(t *testing.T, dir string) {
	s := newStore(t)
	p := awsPair(t, s, realID, "", "")
	m := mustLaunch(t, s, &config.Credentials{Files: []config.FileCredential{{Credential: config.Credential{Mode: config.ModeMask}}}}, nil)
	if _, err := m.File(0, filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	p.key = s.secrets[len(s.secrets)-1]
	s.pairs = []pair{p}
	h := awsRequest(idFake+serviceFor, "host;x-amz-date")
	got, _ := resign(t, at(t, s, awsHost), "GET", "/", awsHost, h, "").Get("Authorization")
	fmt.Println(got)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

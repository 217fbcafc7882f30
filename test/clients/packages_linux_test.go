package clients

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// servePackages puts a package of npm, one of pip and a repository of apt on the web servers.
func (w *world) servePackages(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	w.npm(t, mux, "")
	w.pip(t, mux)
	w.apt(t, mux)
}

// fixed answers a path with the same bytes always.
func fixed(mux *http.ServeMux, path, kind string, data []byte) {
	mux.HandleFunc(path, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", kind)
		_, _ = out.Write(data) // the client may be gone
	})
}

// npm serves one package in a registry beneath /npm/, which clients see beneath top.
func (w *world) npm(t *testing.T, mux *http.ServeMux, top string) {
	t.Helper()
	var archive bytes.Buffer
	packed := gzip.NewWriter(&archive)
	files := tar.NewWriter(packed)
	for name, text := range map[string]string{
		"package/package.json": `{"name":"srt-hello","version":"1.0.0","main":"index.js"}`,
		"package/index.js":     "module.exports = '" + greeting + "';\n",
	} {
		must(t, files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Format: tar.FormatUSTAR}))
		_, err := files.Write([]byte(text))
		must(t, err)
	}
	must(t, files.Close())
	must(t, packed.Close())
	sum := sha512.Sum512(archive.Bytes())
	mux.HandleFunc("/npm/srt-hello", func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(map[string]any{ // the client may be gone
			"name": "srt-hello", "dist-tags": map[string]any{"latest": "1.0.0"},
			"versions": map[string]any{"1.0.0": map[string]any{"name": "srt-hello", "version": "1.0.0",
				"dist": map[string]any{"tarball": "https://" + r.Host + top + "/npm/srt-hello.tgz",
					"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}}},
		})
	})
	fixed(mux, "/npm/srt-hello.tgz", "application/octet-stream", archive.Bytes())
}

// pip serves one package in an index beneath /simple/.
func (w *world) pip(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	const file = "srt_hello-1.0-py3-none-any.whl"
	var wheel bytes.Buffer
	files := zip.NewWriter(&wheel)
	for _, f := range [][2]string{
		{"srt_hello.py", "greeting = '" + greeting + "'\n"},
		{"srt_hello-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: srt-hello\nVersion: 1.0\n"},
		{"srt_hello-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"srt_hello-1.0.dist-info/RECORD", "srt_hello.py,,\n"},
	} {
		out, err := files.Create(f[0])
		must(t, err)
		_, err = out.Write([]byte(f[1]))
		must(t, err)
	}
	must(t, files.Close())
	fixed(mux, "/simple/srt-hello/", "text/html", fmt.Appendf(nil, `<!DOCTYPE html><a href="../../wheels/%s#sha256=%x">%[1]s</a>`,
		file, sha256.Sum256(wheel.Bytes())))
	fixed(mux, "/wheels/"+file, "application/octet-stream", wheel.Bytes())
}

// apt serves a flat repository beneath /apt/.
func (w *world) apt(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	index := lines("Package: srt-hello", "Version: 1.0", "Architecture: all", "Maintainer: Nobody <nobody@"+domain+">",
		"Filename: ./srt-hello.deb", "Size: 1", "SHA256: "+strings.Repeat("0", 64), "Description: "+greeting)
	fixed(mux, "/apt/Packages", "text/plain", index)
	fixed(mux, "/apt/Release", "text/plain", lines("Origin: test", "Suite: ./", "Date: Thu, 01 Jan 2026 00:00:00 UTC",
		"SHA256:", fmt.Sprintf(" %x %d Packages", sha256.Sum256(index), len(index))))
}

// gitRepositories makes a repository for the web servers, which run as the test, and one for ssh, which runs as the account
// of the daemons.
func (w *world) gitRepositories(t *testing.T) {
	t.Helper()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", w.dir}, args...)...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=n@" + domain,
			"GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=n@" + domain}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
		}
	}
	run("init", "-q", "-b", "main", "tree")
	w.write(t, "tree/greeting", []byte(greeting+"\n"))
	run("-C", "tree", "add", "greeting")
	run("-C", "tree", "commit", "-q", "-m", "First")
	for _, dir := range []string{"git", "ssh"} {
		run("clone", "-q", "--bare", "tree", dir+"/hello.git")
		run("-C", dir+"/hello.git", "config", "http.receivepack", "true")
	}
	w.own(t, "ssh")
}

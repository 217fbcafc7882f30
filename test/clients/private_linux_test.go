package clients

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
)

// account is what the web servers want for what lies beneath /private/, as the user "me" with a password or as a bearer.
const account = "me"

// fakePrefix starts every sentinel (CRED-5).
const fakePrefix = "fake_value_"

// visits are the requests for something private that came to a server by one name.
type visits struct {
	secret   string // what they had to bring
	admitted int    // that brought it
	faked    int    // that brought a sentinel
}

// guard lets nobody read what is private at a host without a secret.
func (w *world) guard(host, secret string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.private[host] = &visits{secret: secret}
}

// visited is what has come to a host so far.
func (w *world) visited(host string) visits {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *w.private[host]
}

// judge counts a request, and gives the secret of its host when it brought that.
func (w *world) judge(r *http.Request) (secret string, ok bool) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.private[host]
	if v == nil {
		return "", false
	}
	user, password, basic := r.BasicAuth()
	switch line := r.Header.Get("Authorization"); {
	case v.secret != "" && (line == "Bearer "+v.secret || basic && user == account && password == v.secret):
		v.admitted++
		return v.secret, true
	case strings.Contains(line+password, fakePrefix):
		v.faked++
	}
	return "", false
}

// servePrivate serves the repositories once more, and what judges uploads, for requests that bring the secret of their host.
func (w *world) servePrivate(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	inner := http.NewServeMux()
	inner.HandleFunc("/{$}", func(out http.ResponseWriter, _ *http.Request) { fmt.Fprintln(out, greeting) })
	inner.Handle("/git/", w.gitServer(t))
	w.npm(t, inner, "/private")
	w.pip(t, inner)
	goModule(t, inner)
	inner.HandleFunc("PUT /npm/srt-made", func(out http.ResponseWriter, r *http.Request) {
		var sent struct {
			Attachments map[string]struct{ Data []byte } `json:"_attachments"`
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || len(sent.Attachments["srt-made-1.0.0.tgz"].Data) == 0 {
			w.fault("%s: npm publishes %+v (%v), want an archive", r.Host, sent, err)
		}
		out.WriteHeader(http.StatusCreated)
	})
	for path, check := range uploads {
		inner.HandleFunc(path, func(out http.ResponseWriter, r *http.Request) {
			secret, _ := w.judge(r)
			if err := check(r, secret); err != nil {
				w.fault("%s%s: %v", r.Host, path, err)
				http.Error(out, err.Error(), http.StatusUnprocessableEntity)
				return
			}
			fmt.Fprintln(out, "arrived as meant")
		})
	}
	inner.Handle("/socket", websocket.Server{Handler: func(conn *websocket.Conn) {
		for {
			var text string
			if websocket.Message.Receive(conn, &text) != nil || websocket.Message.Send(conn, text) != nil {
				return // the client has left
			}
		}
	}})
	mux.Handle("/private/", http.StripPrefix("/private", http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if _, ok := w.judge(r); !ok {
			out.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			http.Error(out, "no entry", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(out, r)
	})))
}

// goModule serves one version of one module as a proxy of Go has it (go.dev/ref/mod#goproxy-protocol).
func goModule(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	const name, version = "srt.test/hello", "v1.0.0"
	var archive bytes.Buffer
	files := zip.NewWriter(&archive)
	for file, text := range map[string]string{"go.mod": "module " + name + "\n", "hello.go": "package hello\n\n// " + greeting + "\n"} {
		out, err := files.Create(name + "@" + version + "/" + file)
		must(t, err)
		_, err = out.Write([]byte(text))
		must(t, err)
	}
	must(t, files.Close())
	at := "/go/" + name + "/@v/" + version
	fixed(mux, at+".info", "application/json", []byte(`{"Version":"`+version+`"}`))
	fixed(mux, at+".mod", "text/plain", []byte("module "+name+"\n"))
	fixed(mux, at+".zip", "application/zip", archive.Bytes())
}

// uploads are paths that say whether what was sent is what a program would have sent that knows the secret.
var uploads = map[string]func(r *http.Request, secret string) error{
	"/lines": uploadedLines, "/json": uploadedJSON, "/form": uploadedForm, "/packed": uploadedPacked,
}

// uploadedLines wants the lines "0:secret", "1:secret" and so on, as many as the query says.
func uploadedLines(r *http.Request, secret string) error {
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil {
		return err
	}
	want, got := sha256.New(), sha256.New()
	var size int64
	for i := range n {
		wrote, _ := fmt.Fprintf(want, "%d:%s\n", i, secret) // a hash never fails
		size += int64(wrote)
	}
	read, err := io.Copy(got, r.Body)
	if err == nil && (read != size || !bytes.Equal(want.Sum(nil), got.Sum(nil))) {
		err = fmt.Errorf("%d bytes, want other %d", read, size)
	}
	return err
}

func uploadedJSON(r *http.Request, secret string) error {
	var sent struct{ Token string }
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		return err
	}
	return same(sent.Token, secret)
}

func uploadedForm(r *http.Request, secret string) error {
	if err := r.ParseMultipartForm(1 << 20); err != nil {
		return err
	}
	f, _, err := r.FormFile("file")
	if err != nil {
		return err
	}
	text, err := io.ReadAll(f)
	return errors.Join(err, same(r.FormValue("token"), secret), same(string(text), secret))
}

// uploadedPacked: CRED-25 leaves an encoded body as it is.
func uploadedPacked(r *http.Request, _ string) error {
	packed, err := gzip.NewReader(r.Body)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(packed)
	if err == nil && !strings.HasPrefix(string(text), fakePrefix) {
		err = fmt.Errorf("got %q, want the sentinel as it was packed", text)
	}
	return err
}

// same says that a text is not the one that is wanted, and which it is.
func same(got, want string) error {
	if got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

// spellings are the ways in which a program may tell a secret.
func spellings(secret string) []string {
	all := []string{secret}
	for _, prefix := range []string{"", account + ":", "Bearer "} {
		all = append(all, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(prefix+secret)), "="))
	}
	return all
}

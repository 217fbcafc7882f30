package test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/test/internal/s3stand"
)

// awsKey is the key that the stand-in knows, and that no command ever has.
var awsKey = s3stand.Key{ID: "AKIAPLANTED0123456789", Secret: "planted/secret+0123456789abcdefghijklmno", Token: "planted-session-token-0123456789/+="}

// cloud is a stand-in for AWS, and the settings under which a command may use it with fakes.
type cloud struct {
	*s3stand.Server
	b    *box
	url  string
	host string // with its port
}

// cloud starts one on the host's loopback. The real key is in the environment of srt.
func (b *box) cloud(key s3stand.Key) *cloud {
	b.t.Helper()
	ca := newAuthority(b.t, "srt test cloud", time.Hour)
	cert, private := ca.sign(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, ca.cert)
	c := &cloud{Server: s3stand.New(key), b: b}
	server := httptest.NewUnstartedServer(c.Server)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: private}}}
	server.StartTLS()
	b.t.Cleanup(server.Close)
	c.host = "localhost" + server.URL[strings.LastIndex(server.URL, ":"):]
	c.url = "https://" + c.host
	b.trusts(ca)
	b.env = append(b.env, "AWS_ACCESS_KEY_ID="+key.ID, "AWS_SECRET_ACCESS_KEY="+key.Secret, "AWS_DEFAULT_REGION=eu-central-1",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1", "AWS_PAGER=")
	if key.Token != "" {
		b.env = append(b.env, "AWS_SESSION_TOKEN="+key.Token)
	}
	return c
}

// cfg masks the key; sigv4 is what the settings say about shapes that cannot be signed again.
func (c *cloud) cfg(sigv4 object) cfg {
	entries := object{"envVars": list{object{"name": "AWS_ACCESS_KEY_ID"}, object{"name": "AWS_SECRET_ACCESS_KEY"}, object{"name": "AWS_SESSION_TOKEN"}}}
	if sigv4 != nil {
		entries["sigv4"] = sigv4
	}
	return cfg{aw: list{"."}, allow: list{c.host}, net: ends(nil), top: masks(entries)}
}

// verified wants that requests came, that each was signed with the real key, and that nothing in one was a fake.
func (c *cloud) verified(r result) []s3stand.Arrival {
	c.b.t.Helper()
	list := c.Arrived()
	if len(list) == 0 {
		c.b.t.Errorf("no request arrived; %v", r)
	}
	for _, a := range list {
		if a.Fault != nil {
			c.b.t.Errorf("%s %s: %v; %v", a.Method, a.Target, a.Fault, a.Header)
		}
		if text := fmt.Sprint(a.Target, a.Header); strings.Contains(text, "fake_value") {
			c.b.t.Errorf("a fake arrived: %s", text)
		}
	}
	if strings.Contains(r.stdout+r.stderr, "planted") {
		c.b.t.Errorf("the command has a real value: %v", r)
	}
	return list
}

// awsModules is a directory of Python modules, botocore, boto3 and awscli among them, that every account can read.
var awsModules = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import awscli, boto3, os; print(os.path.dirname(os.path.dirname(awscli.__file__)))").Output()
	if err != nil {
		return "", err
	}
	from := strings.TrimSpace(string(out))
	open := true
	for path := from; path != "/" && open; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		open = info.Mode()&0o001 != 0
	}
	if open {
		return from, nil
	}
	to := filepath.Join(filepath.Dir(srtPath), "aws-modules")
	if err := os.Mkdir(to, 0o755); err != nil {
		return "", err
	}
	args := []string{"-r", "--"}
	for _, name := range strings.Fields("awscli boto3 botocore colorama dateutil docutils jmespath pyasn1 rsa s3transfer six.py urllib3 yaml") {
		args = append(args, filepath.Join(from, name))
	}
	if text, err := exec.Command("cp", append(args, to)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cp: %w: %s", err, text)
	}
	return to, exec.Command("chmod", "-R", "a+rX", to).Run()
})

// python gives the box what AWS's clients for Python need, and "aws", or skips the test where they are not installed.
func (b *box) python() {
	b.t.Helper()
	dir, err := awsModules()
	b.must(err)
	script, err := os.ReadFile("testdata/aws/client.py")
	b.must(err)
	b.file("client.py", string(script))
	b.file("bin/aws", "#!/bin/sh\nexec /usr/bin/python3 -m awscli \"$@\"\n")
	b.must(os.Chmod(b.abs("bin/aws"), 0o755))
	b.env = append(b.env, "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1", "PATH="+b.work+"/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
}

// needAWS skips, or fails in CI, where AWS's command line and library for Python are not installed.
func needAWS(t *testing.T) {
	t.Helper()
	need(t, "aws", "python3", "/usr/bin/python3")
}

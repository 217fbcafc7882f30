package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"
)

// secure serves HTTPS on a free port of 127.0.0.1, with a certificate of its own making, and tells each client whether it
// brought the token that this process has in API_TOKEN. The certificate goes to FILE.pem before the port goes to FILE.
func secure(file string) error {
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	if err := os.WriteFile(file+".pem", text, 0o600); err != nil {
		return err
	}
	listener, err := listen(file)
	if err != nil {
		return err
	}
	want := sha256.Sum256([]byte("Bearer " + os.Getenv("API_TOKEN")))
	server := &http.Server{
		ReadHeaderTimeout: timeout,
		ErrorLog:          log.New(io.Discard, "", 0), // connections without a request: srt dials before it judges one
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
			if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, "that is not the token\n")
				return
			}
			_, _ = io.WriteString(w, "the real token has arrived\n")
		}),
	}
	return server.ServeTLS(listener, "", "")
}

// selfSigned is a certificate for localhost that is its own authority.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "the demonstration's server"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// login asks URL with the token of its environment, as a program of the sandbox does that thinks it has one. It trusts what
// the file named by SSL_CERT_FILE holds, and goes straight to the host: srt makes the connection in its place.
func login(address string) error {
	text, err := os.ReadFile(os.Getenv("SSL_CERT_FILE"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bytes.TrimSpace(text)) {
		return fmt.Errorf("%s holds no certificate", os.Getenv("SSL_CERT_FILE"))
	}
	request, err := http.NewRequest(http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("API_TOKEN"))
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
	return show(client.Do(request))
}

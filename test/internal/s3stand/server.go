package s3stand

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// MaxBody is the longest body in bytes that a Server takes.
const MaxBody = 128 << 20

// Arrival is a request that arrived.
type Arrival struct {
	Method, Target string      // as spelled in the request line
	Header         http.Header // without Host
	Length         int64       // of the body, in bytes
	Signed         Signed      // zero if Fault is not nil
	Fault          *Fault      // why it was refused
}

// Server answers for one account, whose key it knows. It is an http.Handler and safe for concurrent use.
type Server struct {
	key Key

	mu      sync.Mutex
	now     func() time.Time
	arrived []Arrival
	objects map[string][]byte
	uploads map[string]map[int][]byte
}

// New makes a server with no objects.
func New(key Key) *Server {
	return &Server{key: key, now: time.Now, objects: map[string][]byte{}, uploads: map[string]map[int][]byte{}}
}

// SetClock gives the server another idea of the time.
func (s *Server) SetClock(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// Arrived are the requests since the last call, and forgets them.
func (s *Server) Arrived() []Arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.arrived
	s.arrived = nil
	return list
}

// Object is what is stored by a name, with its bucket: "bucket/key".
func (s *Server) Object(name string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.objects[name]
	return data, ok
}

// ServeHTTP checks the signature of a request and answers it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil || len(body) > MaxBody {
		http.Error(w, "no body could be read", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Arrival{Method: r.Method, Target: r.RequestURI, Header: r.Header, Length: int64(len(body))}
	a.Signed, a.Fault = Verify(r, body, s.key, s.now())
	s.arrived = append(s.arrived, a)
	if a.Fault == nil {
		w.Header().Set("Stand-Verified", "yes") // whatever the service then says
	}
	switch {
	case a.Fault != nil:
		a.Fault.write(w, r)
	case a.Signed.Service != "s3":
		serveOther(w, r, a.Signed.Service, body)
	default:
		s.serveS3(w, r, a.Signed, body)
	}
}

// write answers as the service does that the client meant to reach: S3, one with a query API, or one with JSON.
func (f *Fault) write(w http.ResponseWriter, r *http.Request) {
	switch kind := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "application/x-amz-json"):
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(f.Status)
		fmt.Fprintf(w, `{"__type":%q,"message":%q}`, f.Code, f.Message)
	case strings.HasPrefix(kind, "application/x-www-form-urlencoded"):
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(f.Status)
		fmt.Fprintf(w, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>", f.Code, f.Message)
	default:
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(f.Status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", f.Code, f.Message)
	}
}

// writeXML answers with a document.
func writeXML(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(document)
}

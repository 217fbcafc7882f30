package s3stand

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
)

// serveS3 answers a request for a bucket or an object, path-style. The lock is held.
func (s *Server) serveS3(w http.ResponseWriter, r *http.Request, signed Signed, body []byte) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	name := decode(strings.TrimPrefix(path, "/"))
	bucket, key, _ := strings.Cut(name, "/")
	q := map[string]string{}
	for _, p := range parameters(query) {
		q[p.name] = p.value
	}
	if strings.HasPrefix(signed.Payload, "STREAMING-") {
		var fault *Fault
		if body, fault = unchunk(signed.Payload, body); fault != nil {
			fault.write(w, r)
			return
		}
	}
	_, batch := q["delete"]
	switch {
	case key == "" && r.Method == http.MethodPut:
		w.Header().Set("Location", "/"+encode(bucket, true))
	case key == "" && r.Method == http.MethodPost && batch:
		s.deleteMany(w, bucket, body)
	case key == "" && r.Method == http.MethodGet:
		s.list(w, bucket, q)
	case key == "" && r.Method == http.MethodHead:
	case isUpload(q):
		s.serveUpload(w, r, name, q, body)
	default:
		s.serveObject(w, r, name, body)
	}
}

// serveObject puts, gives or deletes one object.
func (s *Server) serveObject(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	data, there := s.objects[name]
	switch {
	case r.Method == http.MethodPut:
		s.objects[name] = body
		w.Header().Set("ETag", tag(body))
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		(&Fault{http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource."}).write(w, r)
	case !there:
		(&Fault{http.StatusNotFound, "NoSuchKey", "The specified key does not exist."}).write(w, r)
	default:
		w.Header().Set("ETag", tag(data))
		w.Header().Set("Content-Type", "binary/octet-stream")
		http.ServeContent(w, r, "", time.Unix(1_700_000_000, 0), bytes.NewReader(data))
	}
}

// tag is the mark of a content. Clients only compare it.
func tag(data []byte) string { return `"` + sha256Hex(data)[:32] + `"` }

// unchunk undoes aws-chunked with unsigned chunks: size in hex, CRLF, data, CRLF; after the last, of size 0, trailers.
func unchunk(algorithm string, body []byte) ([]byte, *Fault) {
	if algorithm != "STREAMING-UNSIGNED-PAYLOAD-TRAILER" {
		return nil, &Fault{http.StatusNotImplemented, "NotImplemented", "signed chunks are not known here"}
	}
	var out []byte
	for {
		line, rest, ok := bytes.Cut(body, []byte("\r\n"))
		n, err := strconv.ParseUint(string(line), 16, 32)
		switch {
		case !ok || err != nil || uint64(len(rest)) < n:
			return nil, badRequest("IncompleteBody", "a chunk is malformed")
		case n == 0:
			return out, nil
		}
		out = append(out, rest[:n]...)
		if body, ok = bytes.CutPrefix(rest[n:], []byte("\r\n")); !ok {
			return nil, badRequest("IncompleteBody", "a chunk does not end")
		}
	}
}

// list answers ListObjectsV2 with everything in one page.
func (s *Server) list(w http.ResponseWriter, bucket string, q map[string]string) {
	type content struct {
		Key, LastModified, ETag, StorageClass string
		Size                                  int
	}
	document := struct {
		XMLName      xml.Name `xml:"ListBucketResult"`
		Name, Prefix string
		EncodingType string `xml:",omitempty"`
		KeyCount     int
		MaxKeys      int
		IsTruncated  bool
		Contents     []content
	}{Name: bucket, Prefix: q["prefix"], EncodingType: q["encoding-type"], MaxKeys: 1000}
	var names []string
	for name := range s.objects {
		if strings.HasPrefix(name, bucket+"/"+q["prefix"]) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		key := strings.TrimPrefix(name, bucket+"/")
		if q["encoding-type"] == "url" {
			key = encode(key, false)
		}
		document.Contents = append(document.Contents, content{Key: key, LastModified: "2023-11-14T22:13:20.000Z", ETag: tag(s.objects[name]),
			StorageClass: "STANDARD", Size: len(s.objects[name])})
	}
	document.KeyCount = len(names)
	writeXML(w, document)
}

// deleteMany answers DeleteObjects.
func (s *Server) deleteMany(w http.ResponseWriter, bucket string, body []byte) {
	var asked struct {
		Object []struct{ Key string }
	}
	if err := xml.Unmarshal(body, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	document := struct {
		XMLName xml.Name `xml:"DeleteResult"`
		Deleted []struct{ Key string }
	}{Deleted: asked.Object}
	for _, o := range asked.Object {
		delete(s.objects, bucket+"/"+o.Key)
	}
	writeXML(w, document)
}

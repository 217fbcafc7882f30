package s3stand

import (
	"encoding/xml"
	"net/http"
	"strconv"
)

// isUpload tells whether a query is about a multipart upload.
func isUpload(q map[string]string) bool {
	_, starts := q["uploads"]
	_, goesOn := q["uploadId"]
	return starts || goesOn
}

// serveUpload starts an upload, takes a part, or ends it. The lock is held.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request, name string, q map[string]string, body []byte) {
	id := q["uploadId"]
	parts, known := s.uploads[id]
	switch {
	case id == "" && r.Method == http.MethodPost:
		id = "upload-" + strconv.Itoa(len(s.uploads)+1)
		s.uploads[id] = map[int][]byte{}
		writeXML(w, struct {
			XMLName       xml.Name `xml:"InitiateMultipartUploadResult"`
			Key, UploadId string
		}{Key: name, UploadId: id})
	case !known:
		(&Fault{http.StatusNotFound, "NoSuchUpload", "The specified multipart upload does not exist."}).write(w, r)
	case r.Method == http.MethodPut:
		number, err := strconv.Atoi(q["partNumber"])
		if err != nil {
			badRequest("InvalidArgument", "partNumber").write(w, r)
			return
		}
		parts[number] = body
		w.Header().Set("ETag", tag(body))
	case r.Method == http.MethodPost:
		s.complete(w, r, name, parts, body)
	case r.Method == http.MethodDelete:
		s.uploads[id] = nil
		w.WriteHeader(http.StatusNoContent)
	}
}

// complete joins the parts that the client lists, each of which must be what it thinks.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, name string, parts map[int][]byte, body []byte) {
	var asked struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := xml.Unmarshal(body, &asked); err != nil {
		badRequest("MalformedXML", err.Error()).write(w, r)
		return
	}
	var whole []byte
	for _, p := range asked.Part {
		data, ok := parts[p.PartNumber]
		if !ok || tag(data) != p.ETag {
			badRequest("InvalidPart", "One or more of the specified parts could not be found.").write(w, r)
			return
		}
		whole = append(whole, data...)
	}
	s.objects[name] = whole
	writeXML(w, struct {
		XMLName   xml.Name `xml:"CompleteMultipartUploadResult"`
		Key, ETag string
	}{Key: name, ETag: tag(whole)})
}

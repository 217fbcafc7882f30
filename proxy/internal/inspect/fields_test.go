package inspect

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

func TestTLS32_FieldsThatConnectionNames(t *testing.T) {
	got := endToEnd(httphead.Header{
		{Name: "X-Gone", Value: "1"}, {Name: "Connection", Value: "close, X-GONE ,,content-length"}, {Name: "Content-Length", Value: "3"},
		{Name: "connection", Value: "\tx-too"}, {Name: "X-Too", Value: "2"}, {Name: "Close", Value: "4"}, {Name: "X-Stays", Value: "5"},
	})
	want := httphead.Header{
		{Name: "Content-Length", Value: "3"}, {Name: "Close", Value: "4"}, {Name: "X-Stays", Value: "5"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTLS45_FieldsCostWhatTheyAre: a head of 2 MiB, as large as srt proxy takes them, of fields and of names that Connection
// lists. Were each field compared with each name, this would run for minutes.
func TestTLS45_FieldsCostWhatTheyAre(t *testing.T) {
	const n = 150_000
	var names strings.Builder
	h := make(httphead.Header, 0, n+1)
	for i := range n {
		names.WriteString("," + strconv.Itoa(i))
		h = append(h, httphead.Field{Name: "a", Value: "b"})
	}
	if got := endToEnd(append(h, httphead.Field{Name: "Connection", Value: names.String()})); len(got) != n {
		t.Errorf("%d fields, want %d", len(got), n)
	}
}

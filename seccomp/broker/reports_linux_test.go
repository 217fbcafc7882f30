package broker

import (
	"strconv"
	"testing"
)

// Reports come one after another in their order, and those beyond the limit are counted: whoever reports waits for nobody.
func TestReportsWaitUpToTheLimit(t *testing.T) {
	var got []string
	begun, goOn := make(chan struct{}), make(chan struct{})
	r := reports{tell: func(d Denial) {
		if d.Path == "0" {
			close(begun)
			<-goOn
		}
		got = append(got, d.Path)
	}}
	r.add(Denial{Path: "0"})
	<-begun
	for i := range maxReports + 5 {
		r.add(Denial{Path: strconv.Itoa(i + 1)})
	}
	close(goOn)
	r.finish()
	if len(got) != maxReports+1 || r.lost() != 5 {
		t.Fatalf("%d were handed on and %d lost; want %d and 5", len(got), r.lost(), maxReports+1)
	}
	for i, path := range got {
		if path != strconv.Itoa(i) {
			t.Fatalf("number %d is %s", i, path)
		}
	}
	r.add(Denial{Path: "last"}) // it begins anew after a pause
	r.finish()
	if got[len(got)-1] != "last" {
		t.Errorf("the last one is %s", got[len(got)-1])
	}
	(&reports{}).add(Denial{}) // nobody wants to hear
}

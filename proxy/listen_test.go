package proxy

import (
	"errors"
	"fmt"
	"net"
	"testing"
)

func TestNET6_Listen(t *testing.T) {
	taken := listen(t).Addr().(*net.TCPAddr).Port
	for _, tc := range []struct {
		exclude []int
		want    string
	}{
		{nil, fmt.Sprintf("No free port in range %d-%d", taken, taken)},
		{[]int{taken, 7}, fmt.Sprintf("No free port in range %d-%d (excluding %d, 7)", taken, taken, taken)},
	} {
		if _, err := Listen(taken, taken, tc.exclude...); !errors.Is(err, ErrNoFreePort) || err.Error() != tc.want {
			t.Errorf("%v: %v", tc.exclude, err)
		}
	}
	free := closedPort(t)
	if _, err := Listen(free, free, free); !errors.Is(err, ErrNoFreePort) {
		t.Errorf("an excluded port: %v", err)
	}
	for _, port := range []int{0, free} {
		l, err := Listen(port, port)
		if err != nil {
			t.Fatal(err)
		}
		if addr := l.Addr().(*net.TCPAddr); addr.IP.String() != "127.0.0.1" || port != 0 && addr.Port != port {
			t.Errorf("listens on %v", addr)
		}
		l.Close()
	}
}

package bpf

import (
	"errors"
	"testing"
)

func TestChoose_FS30_FS54(t *testing.T) {
	unsupported := &Unsupported{Reason: ErrInactive, Detail: "Detail."}
	names := Need{Names: true}
	tests := []struct {
		what      string
		need      Need
		supported error
		want      Mechanism
	}{
		{"FS-30 names alone", names, nil, Kernel},
		{"FS-30 names, no support", names, unsupported, Broker},
		{"FS-30 any error is no support", names, errors.New("other"), Broker},
		{"FS-55 patterns", Need{Names: true, Patterns: true}, nil, Broker},
		{"FS-55 patterns alone", Need{Patterns: true}, nil, Broker},
		{"FS-10 reads", Need{Names: true, Reads: true}, nil, Broker},
		{"FS-36 nothing", Need{}, nil, None},
		{"FS-36 nothing, no support", Need{}, unsupported, None},
	}
	for _, tt := range tests {
		got, why := Choose(tt.need, tt.supported)
		if got != tt.want || (why != "") != (tt.want == Broker) {
			t.Errorf("%s: %v, %q, want %v", tt.what, got, why, tt.want)
		}
	}
	var zero Mechanism
	if zero != Broker {
		t.Error("the zero value enforces every kind of rule")
	}
}

func TestUnsupported_Sentence(t *testing.T) {
	cause := errors.New("cause")
	err := error(&Unsupported{Reason: ErrRefused, Err: cause, Detail: "It failed to load."})
	if !errors.Is(err, ErrRefused) || !errors.Is(err, cause) || errors.Is(err, ErrInactive) {
		t.Errorf("%v does not unwrap to its reason and cause", err)
	}
	const want = "names cannot be refused in the kernel (BPF LSM): the kernel refuses the programs: cause. It failed to load."
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if (&Unsupported{Reason: ErrOldKernel}).Err != nil || errors.Is(&Unsupported{Reason: ErrOldKernel}, cause) {
		t.Error("a reason without a cause")
	}
}

func TestStrings(t *testing.T) {
	for i, want := range mechanismNames {
		if got := Mechanism(i).String(); got != want {
			t.Errorf("Mechanism(%d) is %q", i, got)
		}
	}
	for i, want := range operationNames {
		if got := Operation(i).String(); got != want {
			t.Errorf("Operation(%d) is %q", i, got)
		}
	}
	if Mechanism(99).String() != "unknown" || Operation(99).String() != "unknown" {
		t.Error("numbers without a name")
	}
}

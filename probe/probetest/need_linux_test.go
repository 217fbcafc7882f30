package probetest

import (
	"testing"

	"github.com/srt-sandbox/srt/probe"
)

func TestExcused(t *testing.T) {
	absent := func(f *probe.Feature, why probe.Reason) probe.Result {
		return probe.Result{Err: &probe.AbsentError{Feature: f, Reason: why}}
	}
	for name, c := range map[string]struct {
		feature *probe.Feature
		result  probe.Result
		version int
		kernel  [2]int
		want    bool
	}{
		"an old kernel":           {probe.PidfdGetfd, absent(probe.PidfdGetfd, probe.ReasonKernel), 1, [2]int{5, 5}, true},
		"a new kernel lacks it":   {probe.PidfdGetfd, absent(probe.PidfdGetfd, probe.ReasonKernel), 1, [2]int{5, 6}, false},
		"a newer one":             {probe.PidfdGetfd, absent(probe.PidfdGetfd, probe.ReasonKernel), 1, [2]int{6, 0}, false},
		"refused":                 {probe.PidfdGetfd, absent(probe.PidfdGetfd, probe.ReasonRefused), 1, [2]int{6, 18}, true},
		"forced":                  {probe.FreshProc, absent(probe.FreshProc, probe.ReasonForced), 1, [2]int{6, 18}, true},
		"the question failed":     {probe.FreshProc, absent(probe.FreshProc, probe.ReasonUnknown), 1, [2]int{6, 18}, false},
		"ABI 6 on 6.1":            {probe.Landlock, probe.Result{Value: 2}, 6, [2]int{6, 1}, true},
		"ABI 2 on 6.1":            {probe.Landlock, probe.Result{Value: 1}, 2, [2]int{6, 1}, false},
		"ABI 6 on 6.12":           {probe.Landlock, probe.Result{Value: 5}, 6, [2]int{6, 12}, false},
		"an ABI of no kernel yet": {probe.Landlock, probe.Result{Value: 7}, 8, [2]int{5, 10}, true},
	} {
		if forced, _ := probe.Forced(); forced && !c.want {
			continue // under SRT_WITHOUT everything is excused
		}
		if got := excused(c.feature, c.result, c.version, c.kernel); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if v := release(); v[0] < 3 || v[0] == 1<<30 {
		t.Errorf("this kernel is of version %v", v)
	}
}

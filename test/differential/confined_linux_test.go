package differential

import "testing"

// confinedCases is how many cases TestConfined goes through.
const confinedCases = 60

// TestConfined: without namespaces and mounts (docs/modes.md) the write rules come to the same, answers included, as every
// account. What is hidden differs there by the table of that page (deny-read, names-beside-hidden, hidden-writable), so these cases
// hide nothing.
func TestConfined(t *testing.T) {
	seed, count := number(t, "SRT_DIFF_SEED", defaultSeed), number(t, "SRT_CONFINED_COUNT", confinedCases)
	done, refused := counts.ok.Load(), counts.refused.Load()
	for i := range count {
		who := accounts[i%uint64(len(accounts))]
		d := newDraw(seed+2000, i)
		sc := d.scenario(who.Root())
		sc.Confined = true
		sc.Policy.DenyRead, sc.Policy.AllowRead, sc.Policy.Credential = nil, nil, nil
		out, err := run(who, sc, d.ops(sc, opsOfACase))
		if err != nil {
			t.Fatalf("seed %d, case %d: %v", seed, i, err)
		}
		if out.difference != "" {
			sc.Ops = out.ops
			sc, difference := shrink(who, sc, out.difference, shrinkRuns)
			t.Fatalf("seed %d, case %d:\n%s", seed, i, report(who, sc, difference))
		}
	}
	done, refused = counts.ok.Load()-done, counts.refused.Load()-refused
	if count >= 50 && (done < 5*int64(count) || refused < 2*int64(count)) {
		t.Errorf("the cases say little: of %d cases' operations, %d were done and %d refused", count, done, refused)
	}
}

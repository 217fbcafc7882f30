package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// oneDomain is what a real settings file always has: the network is there, but restricted.
var oneDomain = settings{domains: []string{"example.com"}}

// many is how many starts at once are measured.
const many = 20

// starts measures what a start costs: alone, many at once, one after another.
func starts(b *bed) []group {
	var groups []group
	peers := append([]peer{bwrap()}, b.sandboxes()...)
	for _, who := range b.people {
		for _, kind := range []struct {
			name string
			fill func(string) error
		}{{"empty", nil}, {"repository", fillRepository}} {
			what := fmt.Sprintf("start of true, %s folder, %s", kind.name, who.name)
			p, err := b.place("start-"+kind.name, who, oneDomain, kind.fill)
			if err != nil {
				groups = append(groups, failed(what, err))
				continue
			}
			groups = append(groups, group{what, "ms", alternate(b.runs(100), peers, func(r peer) (float64, error) {
				got, err := r.run(p, "true")
				return milliseconds(got.took), err
			})})
		}
	}
	p, err := b.place("start-many", b.people[0], oneDomain, func(folder string) error {
		for i := range many {
			if err := os.Mkdir(filepath.Join(folder, strconv.Itoa(i)), 0o755); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return append(groups, failed("many starts", err))
	}
	return append(groups,
		group{fmt.Sprintf("%d starts at once, until the last is done", many), "ms", alternate(b.runs(15), peers, func(r peer) (float64, error) {
			return atOnce(r, p, many)
		})},
		group{"starts one after another", "/s", alternate(b.runs(10), peers, func(r peer) (float64, error) {
			return oneAfterAnother(r, p, 500*time.Millisecond)
		})})
}

// failed is a group that could not be prepared.
func failed(what string, err error) group {
	return group{what: what, rows: []row{{who: "all", note: err.Error()}}}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// atOnce starts n commands together, each in a folder of its own (the reference's placeholder files collide in a shared
// one), and returns the milliseconds until the last one has ended.
func atOnce(r peer, p place, n int) (float64, error) {
	errs := make([]error, n)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range n {
		own := p
		own.folder = filepath.Join(p.folder, strconv.Itoa(i))
		wg.Go(func() { _, errs[i] = r.run(own, "true") })
	}
	wg.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return milliseconds(took), nil
}

// oneAfterAnother returns how many commands a second start and end within about d.
func oneAfterAnother(r peer, p place, d time.Duration) (float64, error) {
	start := time.Now()
	n := 0
	for time.Since(start) < d || n < 3 {
		if _, err := r.run(p, "true"); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

// fillRepository makes a git repository of 2,000 files in 40 folders.
func fillRepository(folder string) error {
	for i := range 2000 {
		dir := filepath.Join(folder, fmt.Sprintf("d%02d", i%40), "src")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%04d.txt", i)), []byte("text\n"), 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."},
		{"-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", "files"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// entries measures what long lists cost.
func entries(b *bed) []group {
	var groups []group
	for _, n := range []int{1000, 10000} {
		for _, absent := range []bool{false, true} {
			groups = append(groups, entriesOf(b, n, absent))
		}
	}
	return append(groups, masksOf(b, 8000))
}

// masksOf starts with n masked credential files.
func masksOf(b *bed, n int) group {
	what := fmt.Sprintf("start with %d masked files", n)
	s := oneDomain
	for i := range n {
		s.masks = append(s.masks, filepath.Join("keys", fmt.Sprintf("f%05d", i)))
	}
	p, err := b.place("masks", b.people[0], s, func(folder string) error {
		if err := os.Mkdir(filepath.Join(folder, "keys"), 0o755); err != nil {
			return err
		}
		for _, f := range s.masks {
			if err := os.WriteFile(filepath.Join(folder, f), []byte("secret\n"), 0o600); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return failed(what, err)
	}
	return group{what, "ms", alternate(b.runs(15), []peer{b.srtPeer()}, func(r peer) (float64, error) {
		got, err := r.run(p, "true")
		return milliseconds(got.took), err
	})}
}

// entriesOf starts with n denyWrite entries, of files that exist or not.
func entriesOf(b *bed, n int, absent bool) group {
	what := fmt.Sprintf("start with %d denyWrite entries", n)
	name := fmt.Sprintf("entries-%d-%t", n, absent)
	if absent {
		what += ", none exists"
	}
	s := oneDomain
	var files []string
	for i := range n {
		files = append(files, filepath.Join(fmt.Sprintf("d%02d", i%100), fmt.Sprintf("f%05d", i)))
	}
	s.denyWrite = files
	p, err := b.place(name, b.people[0], s, func(folder string) error {
		for i, f := range files {
			f = filepath.Join(folder, f)
			if i < 100 {
				if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
					return err
				}
			}
			if absent {
				continue
			}
			if err := os.WriteFile(f, nil, 0o644); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return failed(what, err)
	}
	peers := []peer{b.srtPeer()}
	if n == 1000 && !absent { // with more, the command line of bwrap is too long or its work quadratic
		var extra []string
		for _, f := range files {
			f = filepath.Join(p.folder, f)
			extra = append(extra, "--ro-bind", f, f)
		}
		r := bwrap(extra...)
		r.slow = true
		peers = append([]peer{r}, peers...)
	}
	return group{what, "ms", alternate(b.runs(15), peers, func(r peer) (float64, error) {
		got, err := r.run(p, "true")
		return milliseconds(got.took), err
	})}
}

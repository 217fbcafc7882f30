package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

// machine is what a boot needs.
type machine struct {
	kernel, ramdisk, userland, tests string // files
	boot                             string // more words for the kernel
	guest                            []string
	log                              string // file for what the kernel and the programs print
}

// One thread emulates both processors: with one for each, a 6.12 has stopped at a breakpoint of its own code patching.
//
// run runs the machine until it switches itself off or the limit is reached, and hands on each record that it made. The disks are not
// changed.
func (m machine) run(limit time.Duration, each func(record.Line)) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	records := m.log + ".records"
	words := "console=ttyS0 panic=-1 quiet " + m.boot + " srt.guest=" + strings.Join(m.guest, "|")
	cmd := exec.CommandContext(ctx, "nice", "qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2", "-m", "2048",
		"-display", "none", "-monitor", "none", "-nodefaults", "-no-reboot", "-nic", "none",
		"-serial", "file:"+m.log, "-serial", "file:"+records,
		"-drive", "file="+m.userland+",if=virtio,format=raw,snapshot=on,cache=unsafe", "-drive", "file="+m.tests+",if=virtio,format=raw,readonly=on",
		"-kernel", m.kernel, "-initrd", m.ramdisk, "-append", words)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(m.log)) // for what snapshots hold
	cmd.Stderr = os.Stderr
	err := cmd.Run()
	cut := errors.Is(ctx.Err(), context.DeadlineExceeded)
	if err != nil && !cut {
		return fmt.Errorf("qemu: %w; what the machine printed is in %s", err, m.log)
	}
	file, err := os.Open(records)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := read(file, m.log, each); !cut || !errors.Is(err, errEarly) {
		return err
	}
	each(record.Line{Kind: record.KindCut})
	return nil
}

// errEarly says that a guest has not told all.
var errEarly = errors.New("the guest has ended early")

// read takes records to the last one, which has to be there.
func read(from io.Reader, log string, each func(record.Line)) error {
	lines := bufio.NewReader(from)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w; what it printed is in %s", errEarly, log)
		}
		if err != nil {
			return err
		}
		var line record.Line
		if err := json.Unmarshal(text, &line); err != nil {
			return fmt.Errorf("the guest wrote %q: %w", text, err)
		}
		if line.Kind == record.KindEnd {
			return nil
		}
		each(line)
	}
}

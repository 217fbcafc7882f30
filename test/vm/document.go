package main

import (
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

// accountNames are who looked, in the order of the document.
var accountNames = []string{"root", "srt-test"}

// writeDocument writes docs/kernels.md from what was kept.
func writeDocument() error {
	all, err := results()
	if err != nil {
		return err
	}
	return os.WriteFile(documentFile, []byte(document(all)), 0o644)
}

const intro = `# Kernels

What srt has of the kernels that Debian ships, and what it says where a kernel gives too little. Each of them is booted in a virtual machine
that has nothing but Debian's packages, srt, and the test programs of the packages that meet the kernel, run as root and as an ordinary user.

This page is written by ` + "`make vm-test`" + `, from [results.json](../test/vm/results.json). To have it again:

` + "```sh" + `
apt-get install qemu-system-x86 debootstrap kmod cpio e2fsprogs xz-utils
make vm-test                                  # all of them, as root
make vm-test KERNELS="bookworm sid"           # some
make vm-test KERNELS=sid SUITES="ns runtime"  # and some of the tests
make vm-test WHOLE=1                          # every test of every folder as both accounts: hours
make vm-test LIMIT=10m                        # no machine runs longer; what it has told by then counts
` + "```" + `

Kernels and the guests' file system are fetched once, by an apt with a state of its own, so that signatures are checked and the machine's own
settings stay as they are. They lie in ` + "`$XDG_CACHE_HOME/srt-vm`" + ` (` + "`VM_CACHE=`" + ` chooses another directory), 1.5 GB in all. The
processor is emulated: no hardware support is needed, and nothing here says how fast srt is.

`

// document is the page.
func document(all []result) string {
	var w strings.Builder
	w.WriteString(intro)
	writeOverview(&w, all)
	writeFeatures(&w, all)
	writeVariants(&w, all)
	writeSuites(&w, all)
	return w.String()
}

// table writes a table's rows, the first of which is its head.
func table(w *strings.Builder, rows [][]string) {
	for i, row := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.ReplaceAll(strings.Join(row, " | "), "\n", " "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	w.WriteString("\n")
}

// writeOverview is one line for each kernel.
func writeOverview(w *strings.Builder, all []result) {
	rows := [][]string{{"Debian", "kernel", "why it is here", "mode for root", "mode for a user", "active security modules"}}
	for _, r := range all {
		row := []string{r.Suite, r.System.Release + " (" + r.Package + ")", ""}
		for _, k := range kernels {
			if k.Suite == r.Suite {
				row[2] = k.Why
			}
		}
		for _, account := range accountNames {
			s, _ := r.sight(defaults, account)
			row = append(row, s.Check.Mode)
		}
		rows = append(rows, append(row, strings.ReplaceAll(r.System.LSM, ",", ", ")))
	}
	table(w, rows)
}

// writeFeatures is a table of what "srt check" finds, feature by feature.
func writeFeatures(w *strings.Builder, all []result) {
	w.WriteString("## Features\n\nWhat `srt check` finds of each feature that srt uses; it says itself what each is for.\n\n")
	head, rows := []string{"feature"}, [][]string(nil)
	for _, r := range all {
		head = append(head, r.System.Release)
	}
	rows = append(rows, head)
	for _, name := range featureNames(all) {
		row := []string{name}
		for _, r := range all {
			row = append(row, r.feature(name))
		}
		rows = append(rows, row)
	}
	table(w, rows)
}

// featureNames are those of all results, in srt's order.
func featureNames(all []result) []string {
	var names []string
	for _, r := range all {
		for _, s := range r.Sights {
			for _, f := range s.Check.Features {
				if !slices.Contains(names, f.Name) {
					names = append(names, f.Name)
				}
			}
		}
	}
	return names
}

// feature is what was found of a feature, by root and by the user where they differ.
func (r *result) feature(name string) string {
	var found []string
	for _, account := range accountNames {
		s, _ := r.sight(defaults, account)
		i := slices.IndexFunc(s.Check.Features, func(f record.Feature) bool { return f.Name == name })
		if i >= 0 {
			found = append(found, strings.TrimSuffix(s.Check.Features[i].Found, "."))
		}
	}
	switch {
	case len(found) == 0:
		return ""
	case len(found) == 1 || found[0] == found[1]:
		return found[0]
	}
	return "root: " + found[0] + "; user: " + found[1]
}

// writeVariants is what srt says under each configuration, once for all kernels and accounts to which it says the same.
func writeVariants(w *strings.Builder, all []result) {
	w.WriteString("## What srt says\n\nThe mode that `srt check` gives, and what `srt exec -- echo works` prints.\n\n")
	for _, v := range variants {
		fmt.Fprintf(w, "### %s\n\n", strings.ToUpper(v.What[:1])+v.What[1:])
		var order []string
		who := map[string][]string{}
		for _, r := range all {
			for text, accounts := range r.saidTo(v.Name) {
				if !slices.Contains(order, text) {
					order = append(order, text)
				}
				who[text] = append(who[text], r.Suite+accounts)
			}
		}
		for _, text := range order {
			fmt.Fprintf(w, "%s:\n\n%s\n", strings.Join(who[text], ", "), text)
		}
	}
}

// saidTo gives what srt says under a variant, and to whom: all accounts where it says the same.
func (r *result) saidTo(variant string) iter.Seq2[string, string] {
	return func(yield func(text, accounts string) bool) {
		var texts []string
		for _, account := range accountNames {
			if s, ok := r.sight(variant, account); ok {
				texts = append(texts, said(s))
			}
		}
		if len(texts) == 2 && texts[0] == texts[1] {
			yield(texts[0], "")
			return
		}
		for i, text := range texts {
			if !yield(text, " for "+accountNames[i]) {
				return
			}
		}
	}
}

// said is one sight as text.
func said(s record.Sight) string {
	if s.Unset {
		return "> This kernel has no such setting.\n"
	}
	var w strings.Builder
	fmt.Fprintf(&w, "> Mode %s; the command ends with status %d and prints\n>\n> ```\n> %s\n> ```\n", s.Check.Mode, s.ExecExit, strings.ReplaceAll(s.Exec, "\n", "\n> "))
	if !s.Works() && s.Weaker != "" { // a command prints something, whatever comes of it; earlier runs did not ask
		fmt.Fprintf(&w, ">\n> With `enableWeakerNestedSandbox` it ends with status %d", s.WeakerExit)
		if s.Weaker != s.Exec {
			fmt.Fprintf(&w, " and prints\n>\n> ```\n> %s\n> ```\n", strings.ReplaceAll(s.Weaker, "\n", "\n> "))
		} else {
			w.WriteString(", and prints the same.\n")
		}
	}
	for _, reason := range s.Check.Reasons {
		fmt.Fprintf(&w, ">\n> Why: %s.\n", strings.TrimSuffix(reason, "."))
	}
	if s.Check.Remedy != nil {
		fmt.Fprintf(&w, ">\n> To do: %s", strings.TrimSuffix(s.Check.Remedy.Text, "."))
		for i, command := range s.Check.Remedy.Commands {
			fmt.Fprintf(&w, "%s `%s`", []string{":", ";"}[min(i, 1)], command)
		}
		w.WriteString(".\n")
	}
	return w.String()
}

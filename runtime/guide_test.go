package runtime

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// exportedNames are the package's exported options and functions, and its errors: variables and types.
func exportedNames(t *testing.T) (options, errs []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && strings.HasPrefix(d.Name.Name, "With") {
					options = append(options, d.Name.Name)
				}
			case *ast.GenDecl:
				errs = append(errs, errorNames(d)...)
			}
		}
	}
	return options, errs
}

// errorNames are the exported errors among declarations.
func errorNames(d *ast.GenDecl) (list []string) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && strings.HasSuffix(spec.Name.Name, "Error") {
				list = append(list, "*"+spec.Name.Name)
			}
		case *ast.ValueSpec:
			for _, n := range spec.Names {
				if strings.HasPrefix(n.Name, "Err") {
					list = append(list, n.Name)
				}
			}
		}
	}
	return list
}

// TestTheGuideNamesEveryOptionAndError: docs/library.md has each option in the table of sessions, and each error in that of
// errors.
func TestTheGuideNamesEveryOptionAndError(t *testing.T) {
	text, err := os.ReadFile("../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	options, errs := exportedNames(t)
	if len(options) < 5 || len(errs) < 5 {
		t.Fatalf("options %v, errors %v", options, errs)
	}
	for section, names := range map[string][]string{"Sessions": options, "Errors": errs} {
		_, part, found := strings.Cut(string(text), "\n## "+section+"\n")
		part, _, _ = strings.Cut(part, "\n## ")
		if !found {
			t.Errorf("no section %s", section)
		}
		var first []string // cells
		for line := range strings.Lines(part) {
			if cells := strings.Split(line, "|"); len(cells) > 2 {
				first = append(first, cells[1])
			}
		}
		for _, name := range names {
			if !slices.ContainsFunc(first, func(cell string) bool { return strings.Contains(cell, "`"+name+"`") }) {
				t.Errorf("the table of %s does not have %s", section, name)
			}
		}
	}
}

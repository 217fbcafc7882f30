package hostfacts

import (
	"os"
	"strings"
)

// System is what facts are read from. Tests put a [Fake] in its place.
type System interface {
	// Read gives the text of a file without its last line end, empty if it cannot be read.
	Read(path string) string
	// Exists tells whether there is something at a path.
	Exists(path string) bool
	// Getenv gives a variable of this process, empty if it is not set.
	Getenv(name string) string
	// UID is the effective user id of this process.
	UID() int
	// Program is the absolute path of this program, without links; empty if it cannot be told.
	Program() string
}

// Here is the system that this process runs on. Safe for concurrent use.
var Here System = here{}

type here struct{}

// Read implements System.
func (here) Read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Exists implements System.
func (here) Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Getenv implements System.
func (here) Getenv(name string) string { return os.Getenv(name) }

// UID implements System.
func (here) UID() int { return os.Geteuid() }

// Program implements System.
func (here) Program() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}

// Fake is a System that answers what it is told. Its zero value is one of root's, outside of everything.
type Fake struct {
	Files   map[string]string // by path
	Env     map[string]string
	User    int
	Path    string // of the program
	Present map[string]bool
}

// Read implements System.
func (f Fake) Read(path string) string { return f.Files[path] }

// Exists implements System.
func (f Fake) Exists(path string) bool {
	_, isFile := f.Files[path]
	return isFile || f.Present[path]
}

// Getenv implements System.
func (f Fake) Getenv(name string) string { return f.Env[name] }

// UID implements System.
func (f Fake) UID() int { return f.User }

// Program implements System.
func (f Fake) Program() string { return f.Path }

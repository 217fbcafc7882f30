package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
)

// homeVariable names the variable that holds the home directory (CLI-50).
func homeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// homeDirectory returns the absolute path of the user's home directory: the environment's, or the account database's
// where the variable is unset or empty. It is never guessed, so that no project can supply the policy (CLI-50).
func (a *app) homeDirectory() (string, error) {
	name := homeVariable()
	if home := a.getenv(name); home != "" {
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("%s is %q, which is not an absolute path; set it to your home directory, "+
				"or name a settings file with --settings", name, home)
		}
		return home, nil
	}
	home, err := accountHome()
	if err == nil && !filepath.IsAbs(home) {
		err = errors.New("it has no home directory for you")
	}
	if err != nil {
		return "", fmt.Errorf("%s is not set and the account database does not help (%w); set %s, "+
			"or name a settings file with --settings", name, err, name)
	}
	return home, nil
}

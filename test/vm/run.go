package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// output runs a program in a directory ("": this one) and gives what it printed on standard output.
func output(dir, name string, args ...string) (string, error) {
	return outputWith(dir, nil, name, args...)
}

// outputWith is output with more variables in the environment.
func outputWith(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if len(env) > 0 {
		cmd.Env = append(os.Environ(), env...)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return string(text), nil
}

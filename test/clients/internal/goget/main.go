// Command goget prints what each URL of its arguments answers, as Go's net/http gets it with its usual settings. It exits 1
// at the first that fails.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	for _, url := range os.Args[1:] {
		if err := get(url); err != nil {
			fmt.Fprintln(os.Stderr, "goget:", err)
			os.Exit(1)
		}
	}
}

func get(url string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

// Command goget prints what each URL of its arguments answers, as Go's net/http gets it with its usual settings. TOKEN, where it
// is set, is sent as a bearer token. It exits 1 at the first URL that fails.
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
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token := os.Getenv("TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(request)
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

// Command count prints the words of its standard input with their numbers.
package main

import (
	"io"
	"os"
	"slices"
	"strconv"

	"example.com/count/words"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		println("count:", err.Error())
		os.Exit(1)
	}
	counts := words.Count(string(text))
	names := make([]string, 0, len(counts))
	for w := range counts {
		names = append(names, w)
	}
	slices.Sort(names)
	for _, w := range names {
		os.Stdout.WriteString(strconv.Itoa(counts[w]) + " " + w + "\n")
	}
}

package main

import "strings"

// plain holds the bytes that never need quoting in a word of bash (CLI-8).
const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=@+,-"

// shellWords joins words into one line that bash splits into exactly these words again (CLI-8). Words of harmless bytes
// stay bare, so that the first may be a builtin, a keyword or an assignment.
func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quoteWord(word)
	}
	return strings.Join(quoted, " ")
}

// quoteWord quotes one word. A leading "=" is quoted because zsh, should it stand in for bash, expands it.
func quoteWord(word string) string {
	if word != "" && word[0] != '=' && strings.Trim(word, plain) == "" {
		return word
	}
	// Nothing is special between single quotes but the quote itself, which is closed, escaped and opened again.
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

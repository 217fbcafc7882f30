// Package words counts words.
package words

import "strings"

// Count tells how often each word is in text.
func Count(text string) map[string]int {
	counts := map[string]int{}
	for _, w := range strings.Fields(text) {
		counts[w]++
	}
	return counts
}

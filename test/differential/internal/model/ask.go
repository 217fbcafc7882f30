package model

// Exists reports whether an entry of a list leads to something in a tree at the start.
func Exists(items []Item, e Entry, readList bool) bool {
	text, pattern := e.text(readList)
	if pattern {
		return false
	}
	at := follow(Plant(items), text, true, plain)
	return at.obj != nil || (at.file != "" && !readList)
}

package policy

// MayWrite reports whether the write lists let commands change a path, which is absolute and without links: whether a write
// root covers it and no deny does. unlinked follows the links in the path of an entry. A pattern counts as all beneath its
// longest literal directory where it allows, and as nothing where it denies: a caller that warns does so too often rather
// than too rarely. home is as for DefaultWritePaths.
func MayWrite(p, home string, rules PathRules, unlinked func(string) string) bool {
	for _, deny := range rules.DenyWrite {
		if !deny.Pattern && Covers(unlinked(deny.Path), p) {
			return false
		}
	}
	for _, allow := range rules.AllowWrite {
		if Covers(unlinked(literalDirectory(allow)), p) {
			return true
		}
	}
	for _, root := range DefaultWritePaths(home, rules) {
		if Covers(unlinked(root), p) {
			return true
		}
	}
	return false
}

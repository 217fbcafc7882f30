package config

import (
	"slices"
	"strconv"
	"strings"
)

// A schema is a tree of nodes. One table serves both ways in: decode reads a generic JSON tree into a typed value and
// checks it, check does the same checks on a value that was built in Go code (LIB-2). So the two cannot drift apart.

// node is the schema of a T.
type node[T any] struct {
	decode func(w *walk, path string, tree any, out *T)
	check  func(w *walk, path string, in *T)
	absent func(in *T) bool // whether a value built in Go code means that the key is not given
}

// rule is one check of a value whose type is right. It returns the reason for a person, or "".
type rule[T any] func(T) string

// walk collects what one pass over a schema finds.
type walk struct {
	issues  []Issue
	unknown []UnknownKey
}

func (w *walk) fail(path, reason string) {
	if path == "" {
		path = "(root)" // CFG-7
	}
	w.issues = append(w.issues, Issue{Path: path, Reason: reason})
}

// apply runs rules; the first that fails is the one reported, because a later one may rest on it.
func apply[T any](w *walk, path string, value T, rules []rule[T]) {
	for _, r := range rules {
		if reason := r(value); reason != "" {
			w.fail(path, reason)
			return
		}
	}
}

// join appends a key to a dotted path. A key with control characters is quoted, since paths end up on a terminal.
func join(path, key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return !strconv.IsPrint(r) }) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// leaf makes the node of a value without inner keys. read returns the value or the type error.
func leaf[T comparable](read func(tree any) (T, string), rules ...rule[T]) node[T] {
	return node[T]{
		decode: func(w *walk, path string, tree any, out *T) {
			value, reason := read(tree)
			if reason != "" {
				w.fail(path, reason)
				return
			}
			*out = value
			apply(w, path, value, rules)
		},
		check:  func(w *walk, path string, in *T) { apply(w, path, *in, rules) },
		absent: func(in *T) bool { var zero T; return *in == zero },
	}
}

// list makes the node of an array. A decoded list is never nil.
func list[T any](elem node[T], rules ...rule[int]) node[[]T] {
	return node[[]T]{
		decode: func(w *walk, path string, tree any, out *[]T) {
			items, reason := readAs[[]any]("array")(tree)
			if reason != "" {
				w.fail(path, reason)
				return
			}
			*out = make([]T, len(items))
			for i, item := range items {
				elem.decode(w, join(path, strconv.Itoa(i)), item, &(*out)[i])
			}
			apply(w, path, len(items), rules)
		},
		check: func(w *walk, path string, in *[]T) {
			for i := range *in {
				elem.check(w, join(path, strconv.Itoa(i)), &(*in)[i])
			}
			apply(w, path, len(*in), rules)
		},
		absent: func(in *[]T) bool { return *in == nil },
	}
}

// dictionary makes the node of an object whose keys are data. Keys are walked in sorted order.
func dictionary[T any](elem node[T]) node[map[string]T] {
	return node[map[string]T]{
		decode: func(w *walk, path string, tree any, out *map[string]T) {
			members, reason := readAs[map[string]any]("object")(tree)
			if reason != "" {
				w.fail(path, reason)
				return
			}
			*out = make(map[string]T, len(members))
			for _, key := range sortedKeys(members) {
				var value T
				elem.decode(w, join(path, key), members[key], &value)
				(*out)[key] = value
			}
		},
		check: func(w *walk, path string, in *map[string]T) {
			for _, key := range sortedKeys(*in) {
				value := (*in)[key]
				elem.check(w, join(path, key), &value)
			}
		},
		absent: func(in *map[string]T) bool { return *in == nil },
	}
}

// present makes the node of a value whose presence says something. What is inside is built when it is needed: most
// files leave most sections out, and a cold start should not pay for their schema.
func present[T any](inner func() node[T]) node[*T] {
	return node[*T]{
		decode: func(w *walk, path string, tree any, out **T) {
			*out = new(T)
			inner().decode(w, path, tree, *out)
		},
		check: func(w *walk, path string, in **T) {
			if *in != nil {
				inner().check(w, path, *in)
			}
		},
		absent: func(in **T) bool { return *in == nil },
	}
}

// section makes the node of an object that only holds optional keys, built when it is needed like that of present.
func section[T any](inner func() node[T]) node[T] {
	return node[T]{
		decode: func(w *walk, path string, tree any, out *T) { inner().decode(w, path, tree, out) },
		check:  func(w *walk, path string, in *T) { inner().check(w, path, in) },
		absent: func(*T) bool { return false }, // all zero values pass its checks
	}
}

// field is one key of an object S.
type field[S any] struct {
	name     string
	required bool
	decode   func(w *walk, path string, tree any, out *S)
	check    func(w *walk, path string, in *S)
}

// optional is a key that may be left out; the zero value of the Go field means that it is.
func optional[S, F any](name string, get func(*S) *F, n node[F]) field[S] {
	return field[S]{
		name:   name,
		decode: func(w *walk, path string, tree any, out *S) { n.decode(w, path, tree, get(out)) },
		check: func(w *walk, path string, in *S) {
			if value := get(in); !n.absent(value) {
				n.check(w, path, value)
			}
		},
	}
}

// required is a key that a file must hold (CFG-15).
func required[S, F any](name string, get func(*S) *F, n node[F]) field[S] {
	return field[S]{
		name:     name,
		required: true,
		decode:   func(w *walk, path string, tree any, out *S) { n.decode(w, path, tree, get(out)) },
		check:    func(w *walk, path string, in *S) { n.check(w, path, get(in)) },
	}
}

// forbidden is a key that a file must not hold.
func forbidden[S any](name, reason string) field[S] {
	return field[S]{
		name:   name,
		decode: func(w *walk, path string, _ any, _ *S) { w.fail(path, reason) },
		check:  func(*walk, string, *S) {},
	}
}

// objectRule is a check across the keys of one object. It runs once each key by itself is right.
type objectRule[S any] func(w *walk, path string, in *S)

// shape says what an object does with keys it does not know (CFG-14).
type shape bool

const (
	open   shape = false // ignored, and listed by UnknownKeys
	strict shape = true  // an error that names them
)

// object makes the node of an object with known keys.
func object[S any](unknown shape, fields []field[S], rules ...objectRule[S]) node[S] {
	finish := func(w *walk, before int, path string, in *S) {
		if len(w.issues) > before {
			return
		}
		for _, r := range rules {
			r(w, path, in)
		}
	}
	return node[S]{
		decode: func(w *walk, path string, tree any, out *S) {
			members, reason := readAs[map[string]any]("object")(tree)
			if reason != "" {
				w.fail(path, reason)
				return
			}
			before := len(w.issues)
			for _, f := range fields {
				if value, ok := members[f.name]; ok {
					f.decode(w, join(path, f.name), value, out)
				} else if f.required {
					w.fail(join(path, f.name), "Required")
				}
			}
			names := make([]string, len(fields))
			for i, f := range fields {
				names[i] = f.name
			}
			unknownKeys(w, path, members, unknown, names)
			finish(w, before, path, out)
		},
		check: func(w *walk, path string, in *S) {
			before := len(w.issues)
			for _, f := range fields {
				f.check(w, join(path, f.name), in)
			}
			finish(w, before, path, in)
		},
		absent: func(*S) bool { return false }, // its own keys are optional or not
	}
}

// unknownKeys deals with the keys of an object that its schema does not list (CFG-14).
func unknownKeys(w *walk, path string, members map[string]any, unknown shape, known []string) {
	var quoted []string
	for _, key := range sortedKeys(members) {
		switch {
		case slices.Contains(known, key):
		case unknown == strict:
			quoted = append(quoted, "'"+join("", key)+"'")
		default:
			w.unknown = append(w.unknown, UnknownKey{Path: join(path, key), Meant: meant(key, known)})
		}
	}
	if len(quoted) > 0 {
		w.fail(path, "Unrecognized key(s) in object: "+strings.Join(quoted, ", "))
	}
}

package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// text is the node of a string.
func text(rules ...rule[string]) node[string] { return leaf(readAs[string]("string"), rules...) }

// boolean is the node of a bool.
func boolean() node[bool] { return leaf(readAs[bool]("boolean")) }

// enum is the node of a string out of a few.
func enum(values ...string) node[string] { return text(oneOf(values)) }

// integer is the node of an int in an inclusive range.
func integer(low, high int) node[int] { return leaf(readInteger, between(low, high)) }

// readAs reads a JSON value of exactly one type: null is a type error (CFG-12) and nothing is converted (CFG-13).
func readAs[T any](want string) func(tree any) (T, string) {
	return func(tree any) (T, string) {
		value, ok := tree.(T)
		if !ok {
			return value, "Expected " + want + ", received " + typeName(tree)
		}
		return value, ""
	}
}

// readInteger reads a number without a fraction; 3, 3.0 and 3e0 are the same (CFG-13).
func readInteger(tree any) (int, string) {
	number, ok := tree.(json.Number)
	if !ok {
		return 0, "Expected number, received " + typeName(tree)
	}
	f, err := number.Float64()
	if err == nil && f != math.Trunc(f) {
		return 0, "Expected integer, received float"
	}
	const most = 1 << 30 // fits an int everywhere, and every range ends far below
	return int(max(-most, min(most, f))), ""
}

// typeName is the JSON type of a value of a generic tree.
func typeName(tree any) string {
	switch tree.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// oneOf refuses every value but the listed ones.
func oneOf(values []string) rule[string] {
	return func(s string) string {
		if slices.Contains(values, s) {
			return ""
		}
		return fmt.Sprintf("Invalid enum value. Expected '%s', received %s", strings.Join(values, "' | '"), quoteEntry(s))
	}
}

// between refuses integers outside an inclusive range.
func between(low, high int) rule[int] {
	return func(n int) string {
		switch {
		case n < low:
			return fmt.Sprintf("Number must be greater than or equal to %d", low)
		case n > high:
			return fmt.Sprintf("Number must be less than or equal to %d", high)
		}
		return ""
	}
}

// atLeastOne refuses an empty list.
func atLeastOne(n int) string {
	if n == 0 {
		return "Array must contain at least 1 element(s)"
	}
	return ""
}

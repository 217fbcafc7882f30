// Package config is the settings file: its types, strict decoding and validation (rules CFG-1 to CFG-78).
//
// What belongs here: the schema, every check that needs nothing but the text of the file, and the grammar of domain,
// address and path entries. The package is pure: it reads no file, no environment variable and no clock.
//
// What does not belong here: what a key does once it is accepted (runtime/policy and the packages below runtime).
package config

// Package credential keeps the real values of masked credentials and gives commands fakes in their place (rules CRED-*).
//
// What belongs here: reading what is to be masked, making the fakes, and putting the real values into requests on their
// way out (the substitution and the AWS re-signing). What does not: which file is shown where (fsview), which request
// may go out at all (proxy), and what the settings mean (runtime/config).
//
// A value goes this way; each step is a file:
//
//	vault.go    one launch: which entries count            / variables.go what its command has in its environment
//	source.go   reading a file once                         / pairs.go     AWS keys that belong together
//	mask.go     a text becomes its fake: whole, by the captures of extract.go, or by the tokens of jwt.go (json.go)
//	splice.go   the values in a text, and what stands in their places
//	sentinel.go what stands for a value                     / group.go     which launches and rotations share it
//	store.go    the session: sentinels, their values and their hosts
//	region.go   the memory that values live in
//	inject.go   one request to one host: what may be put into it           / body_scan.go finding sentinels in bytes
//	header.go   into its fields, basic.go into encoded ones                / body.go     into its body, as it streams
//	sigv4.go    signing it again: the steps                                / sigv4_shape.go what the client signed
//	sigv4_canonical.go what a signature covers                             / sigv4_sign.go the signature itself
//
// # What is kept secret, and what cannot be
//
// A real value lives in anonymous mappings that no child of srt inherits (MADV_DONTFORK), that no core file holds
// (MADV_DONTDUMP), that stay out of swap as far as the memory lock limit allows, and that are overwritten before they
// are given back. Files are read into such memory, and the buffers they are taken apart in are of it too.
//
// What is not within reach of this package: the environment that srt itself was started with lies on its stack, where
// the kernel put it. An extract pattern runs over a heap copy of the text, which is overwritten as soon as the search
// ends; the runtime does not move heap objects, so it is the only one, but for a search that runs out of time: the
// engine puts the text into its error, which is dropped unseen, and the launch ends. A request that carries a value
// passes through the buffers of the proxy and of the TLS stack.
package credential

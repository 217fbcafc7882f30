package seccomp

import _ "embed" // the filters

//go:embed filters/base_arm64.bpf
var base string

//go:embed filters/namespaces_arm64.bpf
var namespaces string

//go:embed filters/unix_arm64.bpf
var unix string

//go:embed filters/unix-datagram_arm64.bpf
var unixDatagram string

package seccomp

import _ "embed" // the filters

//go:embed filters/base_amd64.bpf
var base string

//go:embed filters/namespaces_amd64.bpf
var namespaces string

//go:embed filters/unix_amd64.bpf
var unix string

//go:embed filters/unix-datagram_amd64.bpf
var unixDatagram string

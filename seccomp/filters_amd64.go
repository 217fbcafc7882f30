package seccomp

import _ "embed" // the filters

//go:embed filters/base_amd64.bpf
var baseProgram string

//go:embed filters/namespaces_amd64.bpf
var namespacesProgram string

//go:embed filters/unix_amd64.bpf
var unixProgram string

//go:embed filters/unix-datagram_amd64.bpf
var unixDatagramProgram string

//go:embed filters/ioctl-names_amd64.bpf
var ioctlNamesProgram string

//go:embed filters/names_amd64.bpf
var namesProgram string

//go:embed filters/opens_amd64.bpf
var opensProgram string

//go:embed filters/network_amd64.bpf
var networkProgram string

//go:embed filters/observe-writes_amd64.bpf
var observeWritesProgram string

//go:embed filters/observe-all_amd64.bpf
var observeAllProgram string

//go:embed filters/confined-sockets_amd64.bpf
var confinedSocketsProgram string

//go:embed filters/confined-network_amd64.bpf
var confinedNetworkProgram string

//go:embed filters/made-sockets_amd64.bpf
var madeSocketsProgram string

//go:embed filters/changes_amd64.bpf
var changesProgram string

//go:embed filters/confined_amd64.bpf
var confinedProgram string

package hostfacts

// The remedies of containers. Each names what the container must allow, in the words of what made it.

// open is what gives srt all it needs, for each kind of container.
var open = map[Container]Remedy{
	Docker: {Text: "The container's seccomp and AppArmor profiles refuse namespaces. Start it with",
		Commands: []string{"docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined ..."}},
	Podman: {Text: "The container's seccomp profile refuses namespaces. Start it with",
		Commands: []string{"podman run --security-opt seccomp=unconfined --security-opt unmask=ALL ..."}},
	Kubernetes: {Text: "The pod's seccomp and AppArmor profiles refuse namespaces. Set in its specification: hostUsers: false, and in the container's " +
		"securityContext: seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}, procMount: Unmasked"},
}

// container opens the surrounding container to namespaces.
func container(f Facts) Remedy {
	if r, ok := open[f.Container]; ok {
		return r
	}
	return Remedy{Text: "A system call filter around this process refuses namespaces. Run it with a profile that allows clone, unshare, mount, " +
		"pivot_root and the like, for example docker run --security-opt seccomp=unconfined"}
}

// mappable lets root map its id, and opens the container to namespaces besides: a profile that refuses them cannot be told from
// one that does not.
var mappable = map[Container]Remedy{
	Docker: {Text: "Root without CAP_SETFCAP can map no id into a user namespace, and the container's profiles may refuse namespaces too. Start it with",
		Commands: []string{"docker run --cap-add SETFCAP --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined ..."}},
	Podman: {Text: "Root without CAP_SETFCAP can map no id into a user namespace, and the container's profile may refuse namespaces too. Start it with",
		Commands: []string{"podman run --cap-add SETFCAP --security-opt seccomp=unconfined --security-opt unmask=ALL ..."}},
	Kubernetes: {Text: "Root without CAP_SETFCAP can map no id into a user namespace, and the pod's profiles may refuse namespaces too. Set in its " +
		"specification: hostUsers: false, and in the container's securityContext: capabilities: {add: [SETFCAP]}, seccompProfile: {type: Unconfined}, " +
		"appArmorProfile: {type: Unconfined}, procMount: Unmasked"},
}

// mapRoot gives root the right to map its id. Another user needs no capability for that.
func mapRoot(f Facts) Remedy {
	if r, ok := mappable[f.Container]; ok {
		return r
	}
	return Remedy{Text: "Root without CAP_SETFCAP can map no id into a user namespace. Run srt as another user, or with that capability"}
}

// masks is what takes the masks off /proc.
var masks = map[Container]Remedy{
	Docker: {Text: "The container masks parts of its /proc, so that no other can be mounted. Start it with",
		Commands: []string{"docker run --security-opt systempaths=unconfined ..."}},
	Podman: {Text: "The container masks parts of its /proc, so that no other can be mounted. Start it with",
		Commands: []string{"podman run --security-opt unmask=ALL ..."}},
	Kubernetes: {Text: "The container masks parts of its /proc, so that no other can be mounted. Set hostUsers: false in the pod's specification, and " +
		"procMount: Unmasked in the container's securityContext"},
	InSandbox: {Text: "This process runs in another sandbox, which protects parts of /proc, so that no other can be mounted. Nothing can be done about " +
		"that: run srt outside of it for mode full"},
}

// unmask takes the masks off /proc.
func unmask(f Facts) Remedy {
	if r, ok := masks[f.Container]; ok {
		return r
	}
	return Remedy{Text: "A fresh /proc is refused where the surrounding container masks parts of its own. Run it with an unmasked one " +
		"(docker run --security-opt systempaths=unconfined, podman run --security-opt unmask=ALL, Kubernetes procMount: Unmasked)"}
}

// capability gives what Docker's profile has pidfd_getfd and process_vm_readv depend on.
func capability(f Facts) Remedy {
	const what = "The container's system call filter refuses to look into other processes without CAP_SYS_PTRACE"
	switch f.Container {
	case Docker:
		return Remedy{Text: what + ". Start it with", Commands: []string{"docker run --cap-add SYS_PTRACE ..."}}
	case Podman:
		return Remedy{Text: what + ". Start it with", Commands: []string{"podman run --cap-add SYS_PTRACE ..."}}
	case Kubernetes:
		return Remedy{Text: what + ". Set in the container's securityContext: capabilities: {add: [SYS_PTRACE]}"}
	}
	return Remedy{Text: what + ". Add that capability, or allow the calls in the filter"}
}

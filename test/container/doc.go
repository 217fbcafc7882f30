// Package container runs srt inside containers, as CI runners do: started by runc and by crun, with what Docker, Podman and
// Kubernetes give a container unless told otherwise, and with what docs/containers.md recommends.
//
// A container is an OCI specification that is made here from the very text of a recipe: the flags of a docker run, or the
// securityContext of a manifest beneath examples/containers. Its system call filter is Docker's default one, as the library
// of the Moby project makes it (github.com/moby/profiles). Its root is an overlay over that of this machine, thrown away
// afterwards. In it the test binary itself looks at what srt says and does: the mode, and a core of promises that hold in
// every mode in which commands run at all.
//
// Everything happens in a mount and pid namespace that ends with the tests, so that a killed run leaves no container and no
// mount. TestMain looks for what is left outside of these, control groups above all, and fails if it finds any.
//
// Needs root, runc, crun and newuidmap; build/prepare.sh installs them. SRT_BINARY names a finished srt; without it one is
// built. What belongs here: containers. What does not belong here: promises in detail (test, test/escape), which
// build/containers.sh runs inside such containers.
package container
